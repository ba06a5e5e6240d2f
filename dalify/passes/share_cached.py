"""Caches other outputs of a reader together with the samples, so that a hit does not call the reader.

With ``images = fn.cache(fn.decoders.image(encoded))`` and labels from the reader, each file would still be read for its
label. So the cache also stores the labels.
"""

from __future__ import annotations

from dataclasses import replace

from dalify.graph import Edge, Graph, Node, upstream
from dalify.graph.graph import branch_mapping
from dalify.passes.report import Report
from dalify.registry import Reader, Role


def share_cached(graph: Graph, report: Report) -> Graph:
    """Return the graph in which caches store further outputs of their readers.

    Args:
        graph: a placed graph.
        report: a note is added for every output of a reader that a cache stores.
    """
    # In reverse order, because there may be another cache before a cache.
    for number in [node.number for node in reversed(graph.nodes()) if node.role is Role.CACHE]:
        cache = next((node for node in graph.nodes() if node.number == number and node.role is Role.CACHE), None)
        if cache is not None:
            graph = _shared(graph, cache, report)
    return graph


def _shared(graph: Graph, cache: Node, report: Report) -> Graph:
    before = set(upstream(cache))
    read_before = {edge for node in before for edge in node.needs()}
    downstream = [node for node in graph.nodes() if node not in before and node is not cache]
    read_downstream = {edge for node in downstream for edge in node.needs()} | set(graph.outputs)
    inputs = cache.given_inputs
    shared = [
        edge
        for edge in sorted(read_downstream, key=lambda item: (item.node.number, item.output))
        if edge.node in before and isinstance(edge.node.operator, Reader) and edge not in inputs
    ]
    other_caches = {node for node in downstream if node.role is Role.CACHE}
    readers = {edge.node for edge in shared}
    # Sharing is useless if the reader must read anyway.
    reads_anyway = any(edge.node in readers and edge in read_downstream for edge in read_before) or any(
        readers & set(upstream(other)) for other in other_caches if cache not in upstream(other)
    )
    if reads_anyway:
        shared = []
    if not shared and not any(edge in read_downstream for edge in inputs):
        return graph
    for edge in shared:
        report.note("share_cached", f"{cache!r} also stores output {edge.output} of {edge.node!r}")
    stored = (*inputs, *shared)
    new_cache = replace(cache, inputs=stored, output_count=len(stored))
    table = {edge: Edge(new_cache, place) for place, edge in enumerate(stored)}
    table |= {Edge(cache, output): Edge(new_cache, output) for output in range(cache.output_count)}
    return _redirected(graph, downstream, table)


def _redirected(graph: Graph, downstream: list[Node], table: dict[Edge, Edge]) -> Graph:
    """Return the graph with the edges in ``table`` replaced; ``downstream`` is in topological order."""
    nodes: dict[Node, Node] = {}

    def new_edge(edge: Edge) -> Edge:
        found = table.get(edge)
        return found if found is not None else Edge(nodes.get(edge.node, edge.node), edge.output)

    new_branch = branch_mapping(new_edge)
    for node in downstream:
        nodes[node] = node.with_edges(new_edge, new_branch(node.branch))
    return Graph(tuple(map(new_edge, graph.outputs)), tuple(nodes.get(node, node) for node in graph.sinks))
