"""Run every operator's rule with what is known before anything runs, so that mistakes show when the graph is built."""

from __future__ import annotations

from dalify.graph import Graph, node_specs

__all__ = ["infer_specs"]


def infer_specs(graph: Graph) -> Graph:
    """Return the graph unchanged, after checking dtype, dimensions and layout along all edges.

    Raises:
        DalifyError: an operator cannot take its inputs or arguments; with the user's line.
    """
    for node in graph.nodes():
        node_specs(node)
    return graph
