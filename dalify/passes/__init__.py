"""The passes that transform a traced graph, in the order of ``PASSES``.

No pass prunes the graph, because a graph consists of the nodes that its outputs depend on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dalify.data import DALIDataType
from dalify.graph import Graph
from dalify.passes.deduplicate import deduplicate
from dalify.passes.fold_constants import fold_constants
from dalify.passes.fuse import fuse
from dalify.passes.infer_specs import infer_specs
from dalify.passes.insert_caches import CACHE_ARGUMENTS, insert_caches
from dalify.passes.narrow import narrow
from dalify.passes.place import place
from dalify.passes.push_crop import push_crop
from dalify.passes.report import Report
from dalify.passes.share_cached import share_cached
from dalify.passes.split_branches import split_branches
from dalify.passes.verify import Stage, verify

__all__ = [
    "CACHE_ARGUMENTS",
    "PASSES",
    "Pass",
    "Report",
    "deduplicate",
    "fold_constants",
    "fuse",
    "infer_specs",
    "insert_caches",
    "narrow",
    "optimize",
    "place",
    "push_crop",
    "share_cached",
    "split_branches",
    "verify",
]


class Pass(NamedTuple):
    """A pass.

    Attributes:
        run: returns the new graph, from a graph and a report, and for some passes options of the pipeline.
        stage: the invariants that `verify` checks afterwards.
    """

    run: Callable[..., Graph]
    stage: Stage


# By name, in order. Types are inferred first, so that errors refer to the user's graph.
PASSES: dict[str, Pass] = {
    "infer_specs": Pass(infer_specs, "traced"),
    "insert_caches": Pass(insert_caches, "traced"),
    "narrow": Pass(narrow, "traced"),
    "fold_constants": Pass(fold_constants, "traced"),
    "deduplicate": Pass(deduplicate, "traced"),
    "split_branches": Pass(split_branches, "split"),
    "push_crop": Pass(push_crop, "split"),
    "fuse": Pass(fuse, "split"),
    "place": Pass(place, "placed"),
    "share_cached": Pass(share_cached, "placed"),
}


def optimize(
    graph: Graph,
    precision: DALIDataType | None = None,
    outputs: int = 0,
    *,
    with_caches: bool = False,
    on_error: str = "raise",
) -> tuple[Graph, Report]:
    """Run the passes.

    Args:
        graph: the traced graph.
        precision: dtype of float32 output images; None to keep it.
        outputs: `precision` applies to this number of outputs, from the first.
        with_caches: enable caches across epochs.
        on_error: handling of bad samples for nodes that do not specify it.

    Raises:
        DalifyError: the graph cannot run; the message names the operator and the user's line.
    """
    report = Report()
    report.counts["trace and prune"] = len(graph.nodes())
    omitted: set[str] = set()
    if precision is None:
        omitted.add("narrow")
    if not with_caches or not any("cache_type" in node.operator.parameters for node in graph.nodes()):
        omitted |= {"insert_caches", "share_cached"}
    options = {"narrow": {"dtype": precision, "count": outputs}, "place": {"on_error": on_error}}
    for name, (run, stage) in PASSES.items():
        if name not in omitted:
            graph = run(graph, report, **options.get(name, {}))
            verify(graph, stage)
            report.counts[name] = len(graph.nodes())
    return graph, report
