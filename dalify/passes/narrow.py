"""Stores output images as 16-bit floats, for ``precision=``.

Computations are in float32; only outputs, and copies of them to the accelerator, are half as large. Boxes, coordinates
and audio remain float32; their layouts do not contain H and W.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dalify.data import DALIDataType
from dalify.graph import Edge, Graph, Node, edge_spec, new_edge, rewrite
from dalify.passes.report import Report
from dalify.registry import KernelOperator, Role


def narrow(graph: Graph, report: Report, dtype: DALIDataType, count: int) -> Graph:
    """Return the graph with 16-bit outputs for images of float32.

    Args:
        graph: the traced graph.
        report: a note is added for every output that changes.
        dtype: FLOAT16 or BFLOAT16.
        count: number of outputs to process, from the first.
    """
    uses = Counter(edge for node in graph.nodes() for edge in node.edges())
    uses.update(graph.outputs[count:])
    last = dict.fromkeys(edge for edge in graph.outputs[:count] if _may_be_images(edge))
    direct = {edge.node.number for edge in last if not uses[edge] and _stores_float(edge.node)}

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node:
        if node.number not in direct:
            return node
        report.note("narrow", f"{node!r} stores {dtype.text}")
        return replace(node, arguments={**node.arguments, "dtype": dtype})

    narrowed: dict[Edge, Edge] = {}
    for edge in last:
        if edge.node.number not in direct:
            report.note("narrow", f"{edge.node!r} is stored as {dtype.text}, if it is an image")
            narrowed[edge] = new_edge(
                Role.NARROW, (edge,), {"dtype": dtype}, edge.device, branch=edge.node.branch, line=edge.node.line
            )
    outputs = tuple(narrowed.get(edge, edge) for edge in graph.outputs[:count])
    return rewrite(Graph((*outputs, *graph.outputs[count:]), graph.sinks), change)


def _may_be_images(edge: Edge) -> bool:
    spec = edge_spec(edge)
    is_float = spec.dtype is None or spec.dtype is DALIDataType.FLOAT
    return is_float and (spec.layout is None or {"H", "W"} <= set(spec.layout))


def _stores_float(node: Node) -> bool:
    operator = node.operator
    can_store = isinstance(operator, KernelOperator) and operator.stores_any_float
    return can_store and node.arguments.get("dtype") in (None, DALIDataType.FLOAT)
