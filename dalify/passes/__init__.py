"""What happens to a graph between tracing and running: ``Graph -> Graph``, one verb per file, in the order of ``PASSES``.

Pruning needs no pass of its own: a graph is found by walking back from its outputs, and every rewrite drops what nothing needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dalify.graph import Graph
from dalify.passes.infer_specs import infer_specs
from dalify.passes.place import place
from dalify.passes.split_branches import split_branches

__all__ = ["PASSES", "Report", "infer_specs", "optimise", "place", "split_branches"]

PASSES = (infer_specs, split_branches, place)


@dataclass(slots=True)
class Report:
    """What the passes did, for ``Pipeline.explain``."""

    notes: list[str] = field(default_factory=list)


def optimise(graph: Graph) -> tuple[Graph, Report]:
    """Run all passes.

    Returns:
        the graph to execute, and what was done to it.
    """
    report = Report()
    for run in PASSES:
        graph = run(graph)
    return graph, report
