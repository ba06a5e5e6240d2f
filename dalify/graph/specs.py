"""Infer the specs of all edges by applying the operators' rules along the graph."""

from __future__ import annotations

import weakref
from typing import Any

from dalify.base.errors import DalifyError
from dalify.data.spec import Spec
from dalify.graph.node import Edge, Node
from dalify.registry import VARIES, VARIES_BY_FRAME, Parameter

_known: weakref.WeakKeyDictionary[Node, tuple[Spec, ...]] = weakref.WeakKeyDictionary()


def rule_arguments(node: Node) -> dict[str, Any]:
    """Return the arguments of a node's rule at build: constants, defaults, VARIES for nodes."""
    parameters = node.operator.parameters
    given = node.arguments
    arguments = {name: given.get(name, parameter.default) for name, parameter in parameters.items()}
    return {
        name: _varying(parameters[name], value) if isinstance(value, Edge) else value
        for name, value in arguments.items()
    }


def _varying(parameter: Parameter, edge: Edge) -> Any:
    if parameter.makes_sequences and (edge_spec(edge).layout or "").startswith("F"):
        return VARIES_BY_FRAME
    return VARIES


def node_specs(node: Node) -> tuple[Spec, ...]:
    """Return the spec of each output of a node.

    Raises:
        DalifyError: the operator does not accept these inputs or arguments; with the user's line.
    """
    found = _known.get(node)
    if found is None:
        # Inputs first, without recursion, because graphs may be thousands of nodes deep.
        stack = [node]
        while stack:
            waiting = [edge.node for edge in stack[-1].edges() if edge.node not in _known]
            if waiting:
                stack.extend(waiting)
            else:
                top = stack.pop()
                if top not in _known:
                    _known[top] = _apply_rule(top)
        found = _known[node]
    return found


def edge_spec(edge: Edge) -> Spec:
    """Return the spec of one edge."""
    return node_specs(edge.node)[edge.output]


def _apply_rule(node: Node) -> tuple[Spec, ...]:
    operator = node.operator
    inputs = [None if edge is None else edge_spec(edge) for edge in node.inputs]
    device = node.output_device
    # The layout of an argument determines whether it has entries by frame, which affects the rule.
    inputs_and_frames = inputs + [
        edge_spec(value)
        for name, value in node.arguments.items()
        if isinstance(value, Edge) and operator.parameters[name].makes_sequences
    ]
    if any(spec is not None and not spec.is_known for spec in inputs_and_frames):
        dtype = node.arguments.get("dtype")
        return tuple(Spec(dtype, device=device) for _ in range(node.output_count))
    try:
        specs = operator.apply_rule(inputs, rule_arguments(node))
    except DalifyError as error:
        node.locate(error)
        raise
    return tuple(Spec(s.dtype, s.ndim, s.layout, None, device) for s in specs)
