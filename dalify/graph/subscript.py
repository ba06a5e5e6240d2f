"""Indexing of graph values: from Python's index syntax to the arguments of the indexing operator."""

from __future__ import annotations

import operator as python_operator
from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.base.source_line import SourceLine
from dalify.graph import datanode
from dalify.graph.datanode import DataNode, new_axis

__all__ = ["subscript"]


def subscript(node: DataNode, index: Any) -> DataNode:
    """Make the node for ``node[index]``.

    The operator ``tensor_subscript`` gets ``items``, one entry per item of the index: ``("at", i)``, ``("slice",
    start, stop, step)``, ``("newaxis", letter or None)``, ``("ellipsis",)``; where a number is a graph value,
    ``("node", k)`` stands for its k-th further input.

    Raises:
        ArgumentTypeError: an index that is no integer, slice, node, newaxis or Ellipsis.
    """
    nodes: list[DataNode] = []

    def number(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, DataNode):
            nodes.append(value)
            return ("node", len(nodes) - 1)
        try:
            return python_operator.index(value)
        except TypeError:
            raise ArgumentTypeError(
                f"an index must be an integer, a slice, a graph value or newaxis; got {value!r} of type "
                f"{type(value).__name__}.",
                line=SourceLine.capture(),
            ) from None

    items: list[tuple[Any, ...]] = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, slice):
            items.append(("slice", number(item.start), number(item.stop), number(item.step)))
        elif item is Ellipsis:
            items.append(("ellipsis",))
        elif item is None or isinstance(item, type(new_axis)):
            items.append(("newaxis", None if item is None else item.name))
        else:
            items.append(("at", number(item)))
    return datanode.hook("apply")("tensor_subscript", node, *nodes, items=tuple(items))
