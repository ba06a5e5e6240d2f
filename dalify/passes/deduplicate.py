"""Merges nodes with the same operator, inputs and arguments.

Exceptions are random operators without ``seed``, readers, users' functions, sources, and named or preserved nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from dalify.base.narrow import is_array, is_tuple
from dalify.graph import Edge, Graph, Node, rewrite
from dalify.passes.report import Report
from dalify.registry import Source


def deduplicate(graph: Graph, report: Report) -> Graph:
    """Return the graph without repeated nodes.

    Args:
        graph: any graph.
        report: a note is added for every node that was replaced by an equal one.
    """
    seen: dict[Hashable, Node] = {}

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node:
        operator = node.operator
        draws = operator.is_random and node.seed is None
        is_unique = draws or isinstance(operator, Source) or operator.is_serial or operator.has_side_effect
        if is_unique or node.preserve or node.name is not None:
            return node
        try:
            arguments = tuple(
                sorted((name, _key(value)) for name, value in node.arguments.items() if name not in _NOTES)
            )
            first = seen.setdefault((operator, node.inputs, arguments, node.device, node.branch, node.seed), node)
        except TypeError:  # an argument that cannot be compared
            return node
        if first is not node and operator.name[0] != "_":
            report.note("deduplicate", f"{node!r} is computed once, together with {first!r}")
        return first

    return rewrite(graph, change)


# Arguments that are only used in messages.
_NOTES = frozenset({"variable", "lines"})


def _key(value: Any) -> Hashable:
    if is_array(value):
        return (value.dtype.str, value.shape, value.tobytes())
    hash(value)
    # 1, 1.0 and True are equal in Python but different constants.
    return (type(value).__name__, repr(value) if is_tuple(value) and not isinstance(value, Edge) else value)
