"""Replaces pairs of operators that are faster together; operators declare them (``Operator.before``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dalify.graph import Edge, Graph, Node, edge_spec, rewrite
from dalify.registry import VARIES, KernelOperator, catalog
from dalify.registry.pairs import Pair, PairKind


def join_pairs(graph: Graph, note: Callable[[Node, Node], None], *, kind: PairKind) -> Graph:
    """Return the graph with all pairs of a kind replaced where they apply; `note` is called with both nodes."""
    uses = Counter(edge for node in graph.nodes() for edge in node.edges())
    uses.update(graph.outputs)
    # By number and operator, because a node that replaces another one can have the number of its consumer.
    firsts: dict[tuple[int, str], tuple[Pair, Node]] = {}
    seconds: dict[tuple[int, str], Pair] = {}
    for node in graph.nodes():
        edge = node.inputs[0] if node.inputs else None
        if edge is None or not isinstance(edge.node.operator, KernelOperator) or uses[edge] > 1:
            continue
        pair = edge.node.operator.pairs.get((node.operator.name, kind))
        if pair is None:
            continue
        if _applies(pair, edge.node, node, kind):
            firsts[_key(edge.node)] = pair, node
            seconds[_key(node)] = pair

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node:
        pair = seconds.get(_key(node))
        if pair is not None and kind == "moves":
            kept = {name: value for name, value in node.arguments.items() if name not in pair.takes}
            return replace(node, arguments=kept)
        if pair is not None and kind == "merges":
            return _merged(pair, node.first_input.node, node, note)
        pair, second = firsts.get(_key(node), (None, node))
        if pair is None or kind == "merges":
            return node
        note(node, second)
        own, taken = _arguments(pair, node, second)
        # Nodes with the same number draw the same random numbers.
        number = second.number if kind == "narrows" else node.number
        calls = node.user_calls + second.user_calls
        operator = catalog.find(pair.into)
        return replace(node, operator=operator, arguments={**own, **taken}, number=number, calls=calls)

    return rewrite(graph, change) if firsts else graph


def _merged(pair: Pair, first: Node, second: Node, note: Callable[[Node, Node], None]) -> Node:
    """Return the node that replaces two; it draws the random numbers of the first one."""
    note(first, second)
    own, taken = _arguments(pair, first, second)
    operator = catalog.find(pair.into)
    numbers = {"number": first.number, "seed": first.seed} if operator.is_random else {}
    return replace(
        second,
        operator=operator,
        inputs=first.inputs,
        arguments={**own, **taken},
        line=first.line,
        calls=first.user_calls + second.user_calls,
        **numbers,
    )


def _arguments(pair: Pair, first: Node, second: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the kept and added arguments of the first node, and the arguments taken from the second one.

    The latter include defaults that differ from those of the new operator.
    """
    own = first.arguments
    kept = {name: own[name] for name in (own if pair.keeps is None else pair.keeps) if name in own}
    new = catalog.find(pair.into).parameters
    kept.update(pair.adds)
    taken: dict[str, Any] = {}
    for name in pair.takes:
        default = second.operator.parameters[name].default
        if name in second.arguments or default != new[name].default:
            taken[name] = second.arguments.get(name, default)
    return kept, taken


def _key(node: Node) -> tuple[int, str]:
    return node.number, node.operator.name


def _applies(pair: Pair, first: Node, second: Node, kind: PairKind) -> bool:
    source = first.inputs[0] if first.inputs else None
    if source is None or first.preserve or first.output_count != 1 or first.branch is not second.branch:
        return False
    return pair.applies(_constants(first), _constants(second), edge_spec(source), first.device) and (
        kind == "narrows" or first.device == second.device
    )


def _constants(node: Node) -> dict[str, Any]:
    return {name: VARIES if isinstance(value, Edge) else value for name, value in node.arguments.items()}
