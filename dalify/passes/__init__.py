"""The passes that transform a traced graph, ``Graph -> Graph``, in the order of ``PASSES``.

`optimize` adds ``narrow``, ``insert_caches`` and ``share_cached`` if options of the pipeline need them. There is no
pass for pruning: a graph is found by walking back from its outputs, and every rewrite drops nodes that are not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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

Pass = Callable[[Graph, Report], Graph]

# In order, each with the stage that `verify` checks afterwards. Types are inferred first, so that errors refer to the
# user's graph and not to a transformed one.
PASSES: tuple[tuple[Pass, Stage], ...] = (
    (infer_specs, "traced"),
    (fold_constants, "traced"),
    (deduplicate, "traced"),
    (split_branches, "split"),
    (push_crop, "split"),
    (fuse, "split"),
    (place, "placed"),
)


def optimize(
    graph: Graph,
    precision: DALIDataType | None = None,
    outputs: int = 0,
    *,
    with_caches: bool = False,
    on_error: str = "raise",
) -> tuple[Graph, Report]:
    """Run all passes.

    Args:
        graph: the traced graph.
        precision: element type of float32 output images; None: unchanged.
        outputs: number of outputs, from the first, to which `precision` applies.
        with_caches: enable caches across epochs.
        on_error: handling of bad samples for nodes that do not specify it.

    Returns:
        the graph to execute, and the report.

    Raises:
        DalifyError: the graph cannot run; the message names the operator and the user's line.
    """
    report = Report()
    report.counts["trace and prune"] = len(graph.nodes())
    passes: tuple[tuple[Pass, Stage], ...] = PASSES
    if precision is not None:
        passes = (*PASSES[:1], (partial(narrow, dtype=precision, count=outputs), "traced"), *PASSES[1:])
    if with_caches and any("cache_type" in node.operator.parameters for node in graph.nodes()):
        passes = (*passes[:1], (insert_caches, "traced"), *passes[1:], (share_cached, "placed"))
    for run, stage in passes:
        graph = place(graph, report, on_error) if run is place else run(graph, report)
        verify(graph, stage)
        report.counts[getattr(run, "__name__", "narrow")] = len(graph.nodes())
    return graph, report
