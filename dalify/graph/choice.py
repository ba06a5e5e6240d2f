"""Select one of many branches per sample by an integer, like a chain of ``if index == k``.

Used by automatic augmentation. Samples are split and joined once for any number of branches; nested conditions would
split and merge at each level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalify.base.errors import ConditionError
from dalify.base.source_line import SourceLine
from dalify.graph.branch import current_branch, entered
from dalify.graph.datanode import DataNode
from dalify.graph.node import Branch, Edge, new_edge
from dalify.graph.trace import on_one_device
from dalify.registry import Role

__all__ = ["choose"]


def choose(index: DataNode, sides: Sequence[Callable[[], DataNode]]) -> DataNode:
    """Trace all sides and return the value that is ``sides[index]()`` for each sample.

    Args:
        index: one integer per sample, on the CPU, at least 0 and less than the number of sides; other values are an
            error when the pipeline runs.
        sides: at least one; each returns the value of its branch.

    Raises:
        ConditionError: the index is on the GPU.
    """
    line = SourceLine.capture()
    if index.device == "gpu":
        raise ConditionError(
            "the index that selects a branch is on the GPU; the branch of each sample is decided on the CPU.",
            line=line,
            hint="Compute it with device='cpu', or copy it with .cpu().",
        )
    parent = current_branch()
    values: list[Edge] = []
    for number, side in enumerate(sides):
        with entered(Branch(index.edge, number, parent, line)):
            values.append(side().edge)
    edges, device = on_one_device(values)
    return DataNode(new_edge(Role.JOIN, (index.edge, *edges), {}, device, branch=parent, line=line))
