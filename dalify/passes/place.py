"""Assigns a device to every node, and inserts copies between devices.

``mixed`` becomes a CPU node and a copy, unless the operator has a usable kernel for it. A GPU node without a GPU kernel
runs on the CPU, with copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dalify.graph import Edge, Graph, Node, new_edge, new_node, rewrite
from dalify.passes.report import Report
from dalify.registry import FedSource, KernelOperator, Reader, Role, catalog


def place(graph: Graph, report: Report, on_error: str = "raise") -> Graph:
    """Return the graph in which every node has a kernel on its device and reads inputs from it.

    Args:
        graph: any graph.
        report: a note is added for every node that was moved to the CPU, and for every copy.
        on_error: handling of bad samples for nodes that do not specify it.
    """
    copies: dict[tuple[Edge, str], Edge] = {}

    def moved(edge: Edge, device: str) -> Edge:
        if edge.device == device:
            return edge
        found = copies.get((edge, device))
        if found is None:
            if edge.node.role is Role.TRANSFER:
                source = edge.node.first_input
                if source.device == device:
                    return source
            where = "mixed" if device == "gpu" else "cpu"
            found = new_edge(Role.TRANSFER, (edge,), {}, where, branch=edge.node.branch, line=edge.node.line)
            copies[edge, device] = found
            report.note("place", f"the result of {edge.node!r} is copied to the {device.upper()}")
        return found

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node | tuple[Edge, ...]:
        if node.role is Role.TRANSFER:
            return (moved(node.first_input, node.output_device),)
        device, operator = node.device, node.operator
        if isinstance(operator, FedSource):
            return replace(node, device=node.output_device)  # fed data are copied there before the batch starts
        runs_on = "cpu" if device == "mixed" or isinstance(operator, Reader) else device
        if isinstance(operator, KernelOperator):
            if device == "mixed" and operator.mixed is not None:
                policy = node.arguments.get("on_error") or on_error
                applies, reason = operator.mixed.applies(node.arguments)
                report.note("place", f"{node!r} decodes on the {'device' if applies else 'host'} ({reason})")
                if applies:
                    runs_on = "mixed"
                    if policy == "skip":
                        node = _checked(node, operator.mixed.checked_by, moved)
            elif operator.devices and runs_on not in operator.devices:
                (runs_on,) = operator.devices
                if runs_on == "cpu" and node.inputs:
                    report.note("place", f"{node!r} has no GPU kernel and runs on the CPU, with copies")
        placed = _with_inputs(node, runs_on, moved)
        if not node.output_count:
            return placed
        return tuple(moved(Edge(placed, output), node.output_device) for output in range(node.output_count))

    return rewrite(graph, change)


def _checked(node: Node, checked_by: str, moved: Callable[[Edge, str], Edge]) -> Node:
    """Return a node for ``mixed`` with a check of its samples on the CPU before it."""
    operator = catalog.find(checked_by)
    arguments = {key: value for key, value in node.arguments.items() if key in operator.parameters}
    given = {**arguments, "on_error": "skip"}
    first = moved(node.first_input, "cpu")
    check = new_node(operator, (first,), given, branch=node.branch, line=node.line, calls=node.user_calls)
    arguments = {**node.arguments, "on_error": "raise"}
    return replace(node, inputs=(Edge(check, 0), *node.inputs[1:]), arguments=arguments)


def _with_inputs(node: Node, device: str, moved: Callable[[Edge, str], Edge]) -> Node:
    wanted = "cpu" if device == "mixed" else device
    inputs = list(node.inputs)
    for index, edge in enumerate(inputs):
        # Predicates are read on the host, also for samples on a device.
        predicate = index == node.selecting_input
        if edge is not None:
            inputs[index] = moved(edge, "cpu" if predicate else wanted)
    arguments = {
        key: moved(value, "cpu") if isinstance(value, Edge) else value for key, value in node.arguments.items()
    }
    return replace(node, device=device, inputs=tuple(inputs), arguments=arguments)
