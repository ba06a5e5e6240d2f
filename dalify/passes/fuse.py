"""Run two operators as one, for example a resize and the normalization after it.

What the first one computes is not written to memory on a GPU, nor is a window that the CPU resizes or filters, nor
spectra that it sums in bands. On the CPU, images that are normalized are in the memory of the results, and so their
colors are changed there. The first operator declares what it fuses with.
"""

from __future__ import annotations

from dalify.graph import Graph, Node
from dalify.passes.pairs import join_pairs
from dalify.passes.report import Report

__all__ = ["fuse"]


def fuse(graph: Graph, report: Report) -> Graph:
    """Return the graph in which pairs of operators that do the work of both in one launch are one operator.

    Args:
        graph: any graph.
        report: receives a note for every fused pair.
    """

    def note(first: Node, second: Node) -> None:
        calls = dict.fromkeys((call.operator, call.line) for call in (*first.user_calls, *second.user_calls))
        *others, last = (f"{operator} at {line}" if line else operator for operator, line in calls)
        report.note("fuse", f"{', '.join(others)} and {last} run as one operator")

    # A fused operator may be part of another pair. Each round removes a node, so there is an end.
    while (fused := join_pairs(graph, note, kind="merges")) is not graph:
        graph = fused
    return graph
