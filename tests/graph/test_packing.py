"""A graph that is sent to another process is unchanged."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np

from dalify import fn, pipeline_def, types
from dalify.graph import Edge, Graph, Node
from dalify.graph.packing import branches_of, pack, unpack
from dalify.pipeline.pipeline import parts_of


def graph_of(pipe: Any) -> Graph:
    return parts_of(pipe).builder.graph()


def described(graph: Graph) -> list[Any]:
    """Return nodes, edges and branches as plain data."""
    nodes = graph.nodes()
    places = {node: place for place, node in enumerate(nodes)}
    branches = branches_of(graph)

    def edge(value: Edge | None) -> Any:
        return None if value is None else (places[value.node], value.output)

    def node_data(node: Node) -> Any:
        arguments = {
            name: edge(value) if isinstance(value, Edge) else repr(value) for name, value in node.arguments.items()
        }
        branch = None if node.branch is None else branches.index(node.branch)
        own = (node.device, node.output_count, node.line, node.name, node.seed, node.preserve, node.number)
        return node.operator.name, [edge(item) for item in node.inputs], arguments, branch, own

    return [
        [node_data(node) for node in nodes],
        [
            (
                edge(branch.condition),
                branch.taken,
                None if branch.parent is None else branches.index(branch.parent),
                branch.line,
                branch.is_open,
            )
            for branch in branches
        ],
        [edge(item) for item in graph.outputs],
        [places[node] for node in graph.sinks],
    ]


@pipeline_def(batch_size=2, num_threads=1, seed=1)
def branching():
    value = fn.random.uniform(range=[0.0, 1.0], shape=[3], name="drawn")
    if fn.random.coin_flip(dtype=types.BOOL, seed=3):
        value = value * 2 + types.Constant(np.float32([1, 2, 3]))
        if fn.reductions.mean(value) > 0.5:
            value = -value
    return value, fn.python_function(value, function=abs, num_outputs=1)


def test_a_graph_is_restored_unchanged() -> None:
    graph = graph_of(branching())
    packed = pickle.loads(pickle.dumps(pack(graph)))
    assert described(unpack(packed)) == described(graph)
    assert len(branches_of(graph)) >= 2


def test_thousands_of_nodes_do_not_exceed_the_limit_on_recursion() -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=1, enable_conditionals=False)
    def long():
        value = fn.random.uniform(range=[0.0, 1.0])
        for _ in range(3 * sys.getrecursionlimit()):
            value = value + 1
        return value

    graph = graph_of(long())
    assert len(unpack(pickle.loads(pickle.dumps(pack(graph)))).nodes()) == len(graph.nodes())
