"""Store images as 16-bit floats at the very end, for ``precision=``.

Everything before computes in float32: only what leaves the pipeline gets smaller, by half, and with it the copies to
the accelerator. Boxes, coordinates and sound, whose layouts have no H and W, stay float32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dalify.data import DALIDataType
from dalify.graph import Edge, Graph, Node, edge_spec, rewrite
from dalify.passes.report import Report
from dalify.registry import catalogue

__all__ = ["narrow"]

_STORES_ANY_TYPE = "crop_mirror_normalize"


def narrow(graph: Graph, report: Report, dtype: DALIDataType, count: int) -> Graph:
    """Return the graph whose outputs are of 16 bits where they are images of float32.

    Args:
        graph: as traced.
        report: gets a note on every output that changes.
        dtype: FLOAT16 or BFLOAT16.
        count: how many of the outputs, from the first on, to look at.
    """
    uses = Counter(edge for node in graph.nodes() for edge in node.edges())
    uses.update(graph.outputs[count:])
    last = dict.fromkeys(edge for edge in graph.outputs[:count] if _may_be_images(edge))
    direct = {edge.node.number for edge in last if not uses[edge] and _stores_float(edge.node)}

    def change(node: Node, new_edge: Callable[[Edge], Edge]) -> Node:
        if node.number not in direct:
            return node
        report.note("narrow", f"{node!r} stores {dtype.name}")
        return replace(node, arguments={**node.arguments, "dtype": dtype})

    narrowed: dict[Edge, Edge] = {}
    for edge in last:
        if edge.node.number not in direct:
            made = Node(
                catalogue.find("_narrow"),
                (edge,),
                {"dtype": dtype},
                edge.device,
                branch=edge.node.branch,
                line=edge.node.line,
            )
            report.note("narrow", f"{edge.node!r} is stored as {dtype.name}, if it is an image")
            narrowed[edge] = Edge(made, 0)
    outputs = tuple(narrowed.get(edge, edge) for edge in graph.outputs[:count])
    return rewrite(Graph((*outputs, *graph.outputs[count:]), graph.sinks), change)


def _may_be_images(edge: Edge) -> bool:
    spec = edge_spec(edge)
    is_float = spec.dtype is None or spec.dtype is DALIDataType.FLOAT
    return is_float and (spec.layout is None or {"H", "W"} <= set(spec.layout))


def _stores_float(node: Node) -> bool:
    return node.operator.name == _STORES_ANY_TYPE and node.arguments.get("dtype") in (None, DALIDataType.FLOAT)
