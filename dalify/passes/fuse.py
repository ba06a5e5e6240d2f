"""Replaces two operators by one, for example a resize and the normalization after it.

On a GPU, and on the CPU for windows that are resized or filtered and for spectra that are summed in bands, the first
result is not written to memory. Other pairs on the CPU compute in the memory of the results. The first operator
declares its pairs.
"""

from __future__ import annotations

from dalify.graph import Graph, Node
from dalify.passes.pairs import join_pairs
from dalify.passes.report import Report


def fuse(graph: Graph, report: Report) -> Graph:
    """Return the graph in which pairs of operators are replaced by fused operators.

    Args:
        graph: any graph.
        report: a note is added for every fused pair.
    """

    def note(first: Node, second: Node) -> None:
        calls = dict.fromkeys((call.operator, call.line) for call in (*first.user_calls, *second.user_calls))
        *others, last = (f"{operator} at {line}" if line else operator for operator, line in calls)
        report.note("fuse", f"{', '.join(others)} and {last} run as one operator")

    # A fused operator may be part of another pair. Each iteration removes a node, so the loop ends.
    while (fused := join_pairs(graph, note, kind="merges")) is not graph:
        graph = fused
    return graph
