"""``fn._conditional``: conditions by hand, as NVIDIA's notebooks write them.

Alone because users write ``if``; these functions are what DALI makes of it.
"""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, constant, is_promotable, trace

__all__ = ["merge", "not_", "split"]


def split(data: Any, /, *, predicate: Any, **_: Any) -> tuple[DataNode, DataNode]:
    """Divide the samples of a batch.

    Args:
        data: any graph value.
        predicate: one boolean or number per sample.

    Returns:
        the samples whose predicate is true, and the others; what is made of either has as many samples.

    Raises:
        ArgumentTypeError: no graph values.
    """
    return trace.split(_node(data), _node(predicate))


def merge(if_true: Any, if_false: Any, /, *, predicate: Any, **_: Any) -> DataNode:
    """Put the two parts of a batch together in the original order.

    Args:
        if_true: made of the first result of ``split``.
        if_false: made of the second one.
        predicate: that of the ``split``.

    Raises:
        ArgumentTypeError: no graph values.
        DivergentBranchesError: (when the pipeline is built) parts of different types.
    """
    return trace.merge(_node(predicate), _node(if_true), _node(if_false))


def not_(data: Any, /, **_: Any) -> DataNode:
    """Return whether a value is false or zero.

    Args:
        data: one boolean or number per sample.

    Raises:
        ArgumentTypeError: no graph value.
    """
    return trace.logical_not(_node(data))


def _node(value: Any) -> DataNode:
    if not is_promotable(value):
        raise ArgumentTypeError(
            f"an input must be a graph node, a number or an array; got {value!r}.", line=SourceLine.capture()
        )
    return constant(value)
