"""``fn._conditional``: explicit splits and merges, as in NVIDIA's notebooks. New programs use ``if``."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, constant, datanode, is_promotable

__all__ = ["merge", "not_", "split"]


def split(data: Any, /, *, predicate: Any, **_: Any) -> tuple[DataNode, DataNode]:
    """Split a batch by a predicate.

    Args:
        data: any graph value.
        predicate: one boolean or number per sample.

    Returns:
        the samples whose predicate is true, and the others. Nodes that read one of them have the same samples.

    Raises:
        ArgumentTypeError: not a graph value.
    """
    return datanode.split(_node(data), _node(predicate))


def merge(if_true: Any, if_false: Any, /, *, predicate: Any, **_: Any) -> DataNode:
    """Merge the two parts of a batch in the original order.

    Args:
        if_true: computed from the first result of ``split``.
        if_false: computed from the second one.
        predicate: predicate of the ``split``.

    Raises:
        ArgumentTypeError: not a graph value.
        DivergentBranchesError: (when the pipeline is built) parts of different types.
    """
    return datanode.merge(_node(predicate), _node(if_true), _node(if_false))


def not_(data: Any, /, **_: Any) -> DataNode:
    """Return whether a value is false or zero.

    Args:
        data: one boolean or number per sample.

    Raises:
        ArgumentTypeError: not a graph value.
    """
    return datanode.logical_not(_node(data))


def _node(value: Any) -> DataNode:
    if not is_promotable(value):
        raise ArgumentTypeError(
            f"an input must be a graph node, a number or an array; got {value!r}.", line=SourceLine.capture()
        )
    return constant(value)
