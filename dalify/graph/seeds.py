"""The seeds and random streams of the nodes of a graph."""

from __future__ import annotations

import zlib
from collections import Counter

from dalify.graph.graph import Graph
from dalify.graph.node import Node
from dalify.registry import Reader

__all__ = ["node_seeds"]


def node_seeds(graph: Graph, seed: int) -> dict[Node, tuple[int, int]]:
    """Return seed and stream number of every random node and reader.

    A stream depends on the operator's name and its occurrence (or on the name specified by the user), so that an
    operator that is added to the graph does not change the random numbers of others. Two operators with the same
    explicit seed draw the same numbers.
    """
    found: dict[Node, tuple[int, int]] = {}
    occurrences: Counter[str] = Counter()
    nodes = [node for node in graph.nodes() if node.operator.takes_seed]
    for node in sorted(nodes, key=lambda item: item.number):
        operator_name = node.operator.name
        label = node.name or f"{operator_name}#{occurrences[operator_name]}"
        occurrences[operator_name] += 1
        if node.seed is not None:
            found[node] = (node.seed, 0)
        elif isinstance(node.operator, Reader):
            found[node] = (seed ^ zlib.crc32(label.encode(errors="surrogatepass")), 0)
        else:
            found[node] = (seed, zlib.crc32(label.encode(errors="surrogatepass")))
    return found
