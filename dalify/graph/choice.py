"""One of many branches for each sample, by number: what a chain of ``if index == k`` would be, in one step.

Alone because Python has no statement for it; automatic augmentation is its user. Samples are split and put together
once, however many branches there are, where nested conditions would do both at each level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalify.base.errors import ConditionError
from dalify.base.source_line import SourceLine
from dalify.graph.branch import Branch, current_branch, entered
from dalify.graph.datanode import DataNode
from dalify.graph.node import Edge, Node
from dalify.graph.trace import transfer
from dalify.registry import catalogue

__all__ = ["choose"]


def choose(index: DataNode, sides: Sequence[Callable[[], DataNode]]) -> DataNode:
    """Trace all sides and make the value that is ``sides[index]()`` for each sample.

    Args:
        index: one integer per sample, on the CPU, at least 0 and less than the number of sides; another one is an
            error when the pipeline runs.
        sides: at least one; each makes the value of its branch.

    Raises:
        ConditionError: the index lies on the GPU.
    """
    line = SourceLine.capture()
    if index.device == "gpu":
        raise ConditionError(
            "the index that chooses a branch lies on the GPU; the samples are told apart on the CPU.",
            line=line,
            hint="Compute it with device='cpu', or copy it with .cpu().",
        )
    parent = current_branch()
    edges: list[Edge] = []
    values: list[DataNode] = []
    for number, side in enumerate(sides):
        with entered(Branch(index.edge, number, parent, line)):
            values.append(side())
    device = "gpu" if any(value.device == "gpu" for value in values) else "cpu"
    for value in values:
        with entered(value.edge.node.branch):  # outside its branch a value exists only for some samples
            edges.append(transfer(value, "gpu").edge if device == "gpu" else value.edge)
    node = Node(catalogue.find("_conditional.join"), (index.edge, *edges), {}, device=device, branch=parent, line=line)
    return DataNode(Edge(node, 0))
