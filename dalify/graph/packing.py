"""Convert a graph to a flat list, for pickling and for JSON.

Pickle recurses along edges, so a graph with thousands of nodes would exceed Python's recursion limit. The list contains
Python functions; use ``serialize`` to write graphs to files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dalify.base.source_line import SourceLine
from dalify.graph.graph import Graph
from dalify.graph.node import Branch, Edge, Node


class PackedEdge(NamedTuple):
    """An edge: number of a node in the list, and of its output."""

    node: int
    output: int


class _PackedBranch(NamedTuple):
    condition: PackedEdge
    taken: bool | int
    parent: int | None
    line: SourceLine | None
    is_open: bool


class PackedNode(NamedTuple):
    """A node without inputs, arguments and branch, and these with indices in place of nodes."""

    node: Node
    inputs: tuple[PackedEdge | None, ...]
    arguments: Mapping[str, Any]
    branch: int | None


class PackedGraph(NamedTuple):
    """A graph without references between nodes.

    Attributes:
        nodes: the nodes in topological order.
        branches: the branches, each after its parent.
        outputs: outputs of the graph.
        sinks: indices of nodes in the list.
    """

    nodes: Sequence[PackedNode]
    branches: Sequence[_PackedBranch]
    outputs: Sequence[PackedEdge]
    sinks: Sequence[int]


def branches_of(graph: Graph) -> list[Branch]:
    """Return all branches of a graph, each after its parent; packing preserves the order."""
    found: dict[Branch, None] = {}
    for node in graph.nodes():
        found.update(dict.fromkeys(reversed([*node.branches()])))
    return list(found)


def pack(graph: Graph) -> PackedGraph:
    """Return a graph as a flat list."""
    nodes = graph.nodes()
    indices = {node: index for index, node in enumerate(nodes)}
    branches = branches_of(graph)
    ranks = {branch: rank for rank, branch in enumerate(branches)}

    def packed(edge: Edge) -> PackedEdge:
        return PackedEdge(indices[edge.node], edge.output)

    packed_nodes = [
        PackedNode(
            replace(node, inputs=(), arguments={}, branch=None),
            tuple(None if edge is None else packed(edge) for edge in node.inputs),
            {name: packed(value) if isinstance(value, Edge) else value for name, value in node.arguments.items()},
            None if node.branch is None else ranks[node.branch],
        )
        for node in nodes
    ]
    packed_branches = [
        _PackedBranch(
            packed(branch.condition),
            branch.taken,
            None if branch.parent is None else ranks[branch.parent],
            branch.line,
            branch.is_open,
        )
        for branch in branches
    ]
    return PackedGraph(
        packed_nodes, packed_branches, [packed(edge) for edge in graph.outputs], [indices[node] for node in graph.sinks]
    )


def unpack(packed: PackedGraph) -> Graph:
    """Return the packed graph. Nodes keep their numbers."""
    nodes: list[Node] = []
    branches: dict[int, Branch] = {}

    def edge(item: PackedEdge) -> Edge:
        return Edge(nodes[item.node], item.output)

    def branch(rank: int | None) -> Branch | None:
        if rank is None:
            return None
        found = branches.get(rank)
        if found is None:
            item = packed.branches[rank]
            found = Branch(edge(item.condition), item.taken, branch(item.parent), item.line, item.is_open)
            branches[rank] = found
        return found

    for item in packed.nodes:
        inputs = tuple(None if each is None else edge(each) for each in item.inputs)
        arguments = {
            name: edge(value) if isinstance(value, PackedEdge) else value for name, value in item.arguments.items()
        }
        nodes.append(replace(item.node, inputs=inputs, arguments=arguments, branch=branch(item.branch)))
    return Graph(tuple(edge(each) for each in packed.outputs), tuple(nodes[number] for number in packed.sinks))
