"""Evaluates operators on constants, such as arithmetic, when the graph is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.data import Spec, array_dtype
from dalify.data.samples import Samples
from dalify.graph import Edge, Graph, Node, new_edge, rewrite, rule_arguments
from dalify.passes.report import Report
from dalify.registry import KernelOperator, Role

# Larger results are computed for every batch, because a constant occupies memory until the pipeline is deleted.
_LIMIT_BYTES = 1 << 20


def fold_constants(graph: Graph, report: Report) -> Graph:
    """Return the graph in which foldable operators on constants are replaced by constants.

    Args:
        graph: any graph.
        report: a note is added for every node that became a constant.
    """

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node:
        operator = node.operator
        if not isinstance(operator, KernelOperator) or not operator.is_foldable:
            return node
        if not all(_is_literal(edge) for edge in node.inputs):
            return node
        value = _evaluated(node, operator)
        if value is None:
            return node
        report.note("fold_constants", f"{node!r} is the constant {np.array2string(value, threshold=6)}")
        return new_edge(Role.LITERAL, (), {"value": value}, line=node.line, name=node.name, preserve=node.preserve).node

    return rewrite(graph, change)


def _is_literal(edge: Edge | None) -> bool:
    return edge is not None and edge.node.role is Role.LITERAL


def _evaluated(node: Node, operator: KernelOperator) -> np.ndarray[Any, Any] | None:
    literals = [edge.node.arguments for edge in node.given_inputs]
    if any(literal.get("layout") for literal in literals):
        return None
    values = [literal["value"] for literal in literals]
    arguments = rule_arguments(node)
    specs = tuple(Spec(array_dtype(value), None, "", value.shape) for value in values)
    out_spec = operator.apply_rule(specs, arguments)[0]
    if out_spec.shape is None or out_spec.dtype is None:
        return None
    out = np.empty((1, *out_spec.shape), out_spec.dtype.numpy)
    kernel = operator.kernels["cpu"]
    known = {**arguments, "spec": specs[0], "specs": specs, "out_spec": out_spec, "out_specs": (out_spec,), "count": 1}
    if out.nbytes > _LIMIT_BYTES or not set(kernel.names) <= set(known):
        return None
    try:
        xs = [Samples.of_dense(np.ascontiguousarray(value[None])) for value in values]
        kernel.function(Samples.of_dense(out), *xs, **{name: known[name] for name in kernel.names})
    except (DalifyError, ArithmeticError, ValueError):
        return None  # the first batch raises the same error, with its sample
    result = out[0, ...]
    result.flags.writeable = False
    return result
