"""Checks the invariants of a graph after every pass; a violation is an internal error."""

from __future__ import annotations

from typing import Literal

from dalify.graph import Branch, Graph, Node
from dalify.registry import KernelOperator, Role

Stage = Literal["traced", "split", "placed"]


def verify(graph: Graph, stage: Stage) -> None:
    """Check a graph.

    Args:
        graph: result of a pass.
        stage: ``traced``: edges refer to existing outputs, arguments are on the CPU; ``split``: also, a node reads
            only values of its own branch; ``placed``: also, edges do not change the device, and every node has a
            kernel on its device.

    Raises:
        AssertionError: an invariant is violated.
    """
    for node in graph.nodes():
        for edge in node.edges():
            assert edge.output < edge.node.output_count, (
                f"dalify bug: {node!r} reads output {edge.output} of {edge.node!r}"
            )
        if stage != "traced":
            _check_branches(node)
        if stage == "placed":
            _check_devices(node)


def _check_branches(node: Node) -> None:
    if node.role is Role.SPLIT:
        homes = {edge.node.branch for edge in node.edges()}
        expected: set[Branch | None] = {node.branch.parent} if node.branch is not None else set()
        assert homes == expected, f"dalify bug: {node!r} does not split values of the branch around its own"
        return
    for index, edge in enumerate(node.inputs):
        source_branch = None if edge is None else edge.node.branch
        if node.ends_branches and index > 0:
            assert source_branch is not None, f"dalify bug: {node!r} merges a value that was not split"
            assert source_branch.parent is node.branch, f"dalify bug: {node!r} merges a value of another condition"
            assert source_branch.taken == node.sides[index - 1], f"dalify bug: {node!r} merges the wrong branch"
        elif edge is not None:
            assert source_branch is node.branch, f"dalify bug: {node!r} reads a value of another branch"


def _check_devices(node: Node) -> None:
    is_mixed = node.device == "mixed"
    if node.role is Role.TRANSFER:
        assert node.first_input.device != node.output_device, f"dalify bug: {node!r} copies to where the data are"
        return
    for index, edge in enumerate(node.inputs):
        predicate = index == node.selecting_input
        wanted = "cpu" if predicate or is_mixed else node.device
        assert edge is None or edge.device == wanted, f"dalify bug: {node!r} reads {edge!r} from another device"
    devices = node.operator.kernels if isinstance(node.operator, KernelOperator) else ("cpu", "gpu")
    assert node.device in devices, f"dalify bug: {node!r} has no kernel where it was placed"
