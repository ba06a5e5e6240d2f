"""Find the nodes that only a cache needs, which need not run for cached samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from dalify.graph import Graph, Node

__all__ = ["cached_nodes"]


def cached_nodes(graph: Graph, can_move: Callable[[Node], bool]) -> dict[Node, Node]:
    """Return, by node, the innermost cache that is the only one to need it.

    Args:
        graph: a placed one.
        can_move: tells whether a node can run within a chunk.
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
    # A function that depends on its inputs alone need not be called for its own sake.
    called = {node for node in graph.sinks if not node.arguments.get("deterministic")}
    kept = {edge.node for edge in graph.outputs} | called
    found: dict[Node, Node] = {}
    # From the last one to the first: what a cache in front of another one has to itself is its own.
    for cache in [node for node in reversed(nodes) if node.operator.name == "cache"]:
        in_front = Graph(tuple(cache.edges())).nodes()
        if not any(node.operator.is_reader for node in in_front):
            continue  # of data that are given: nothing is kept
        own = {cache}
        for node in reversed(in_front):
            if node not in kept and can_move(node) and users[node] <= own:
                own.add(node)
                found[node] = cache
    return found
