"""Find the nodes that only a cache needs, which need not run for cached samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from dalify.graph import Graph, Node
from dalify.registry import Role

__all__ = ["cached_nodes"]


def cached_nodes(graph: Graph, can_move: Callable[[Node], bool]) -> dict[Node, Node]:
    """Return, by node, the innermost cache that is the only consumer of the node.

    Args:
        graph: a graph with placed nodes.
        can_move: returns whether a node can run within a chunk.
    """
    nodes = graph.nodes()
    users: defaultdict[Node, set[Node]] = defaultdict(set)
    for node in nodes:
        for edge in node.edges():
            users[edge.node].add(node)
        branch = node.branch
        while branch is not None:
            users[branch.condition.node].add(node)
            branch = branch.parent
    # A function that depends only on its inputs has no side effects that would require a call.
    called = {node for node in graph.sinks if not node.arguments.get("deterministic")}
    kept = {edge.node for edge in graph.outputs} | called
    found: dict[Node, Node] = {}
    # From the last cache to the first: nodes that only an earlier cache needs belong to the earlier one.
    for cache in [node for node in reversed(nodes) if node.role is Role.CACHE]:
        in_front = Graph(tuple(cache.edges())).nodes()
        if not any(node.operator.is_reader for node in in_front):
            continue  # of constant data: nothing is cached
        own = {cache}
        for node in reversed(in_front):
            if node not in kept and can_move(node) and users[node] <= own:
                own.add(node)
                found[node] = cache
    return found
