"""``Graph``: its outputs and sinks. All other nodes are found by walking back from them."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from dalify.graph.node import Branch, Edge, Node
from dalify.registry import Reader


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """The graph of a pipeline.

    Attributes:
        outputs: edges in the order in which the user returned them.
        sinks: nodes that run although no output needs them.
    """

    outputs: tuple[Edge, ...]
    sinks: tuple[Node, ...] = ()

    def nodes(self) -> list[Node]:
        """Return all nodes in topological order, depth first from the first output on."""
        order: list[Node] = []
        done: set[Node] = set()
        for root in (*(edge.node for edge in self.outputs), *self.sinks):
            # An explicit stack, because pipelines with thousands of nodes would exceed Python's recursion limit.
            stack: list[tuple[Node, bool]] = [(root, False)]
            while stack:
                node, expanded = stack.pop()
                if node in done:
                    continue
                if expanded:
                    done.add(node)
                    order.append(node)
                    continue
                stack.append((node, True))
                stack.extend((edge.node, False) for edge in reversed([*node.needs()]) if edge.node not in done)
        return order

    def __repr__(self) -> str:
        return "\n".join(repr(node) for node in self.nodes())


def upstream(node: Node) -> list[Node]:
    """Return all nodes that compute the edges that a node reads, in topological order."""
    return Graph(tuple(node.edges())).nodes()


def upstream_readers(node: Node) -> list[Node]:
    """Return the readers among the `upstream` nodes."""
    return [found for found in upstream(node) if isinstance(found.operator, Reader)]


def rewrite(graph: Graph, change: Callable[[Node, Callable[[Edge], Edge]], Node | tuple[Edge, ...]]) -> Graph:
    """Apply a function to each node of a graph, in topological order, and return the new graph.

    Args:
        graph: any graph.
        change: called with each node, whose inputs, arguments and branch are already replaced, and a function from
            old edges to new ones; returns the node itself or another node, or edges that replace its outputs.

    Returns:
        the graph of the new nodes, without nodes that are no longer needed.
    """
    table: dict[Edge, Edge] = {}
    new_edge = table.__getitem__
    new_branch = branch_mapping(new_edge)
    sinks: list[Node] = []
    for node in graph.nodes():
        result = change(node.with_edges(new_edge, new_branch(node.branch)), new_edge)
        if isinstance(result, Node):
            kept = [result]  # a node without outputs is also a sink
            result = tuple(Edge(result, output) for output in range(result.output_count))
        else:
            kept = [edge.node for edge in result[:1]]
        for output, edge in enumerate(result):
            table[Edge(node, output)] = edge
        if node in graph.sinks:
            sinks.extend(kept)
    return Graph(tuple(table[edge] for edge in graph.outputs), tuple(dict.fromkeys(sinks)))


def branch_mapping(new_edge: Callable[[Edge], Edge]) -> Callable[[Branch | None], Branch | None]:
    """Return the function from old branches to new ones, for a function from old edges to new ones."""
    branches: dict[Branch, Branch] = {}

    def new_branch(branch: Branch | None) -> Branch | None:
        if branch is None:
            return None
        if branch not in branches:
            condition, parent = new_edge(branch.condition), new_branch(branch.parent)
            is_same = condition == branch.condition and parent is branch.parent
            branches[branch] = branch if is_same else Branch(condition, branch.taken, parent, branch.line)
        return branches[branch]

    return new_branch


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
