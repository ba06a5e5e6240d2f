"""``fn._conditional``: explicit splits and merges, as in NVIDIA's notebooks. New programs use ``if``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.base.wording import counted
from dalify.graph import DataNode, constant, datanode, is_promotable


def split(*data: Any, predicate: Any = None, **_: Any) -> tuple[DataNode, DataNode]:
    """Split a batch by a predicate.

    Returns:
        the samples whose predicate is true, and the others. Nodes that read one of them have the same samples.

    Raises:
        ArgumentTypeError: not one input, no predicate, or not a graph value.
    """
    _check_call("split", data, 1, predicate)
    return datanode.split(_node(data[0]), _node(predicate))


def merge(*parts: Any, predicate: Any = None, **_: Any) -> DataNode:
    """Merge the two parts of a batch in the original order.

    Args:
        parts: two: computed from the first result of ``split``, and from the second one.
        predicate: predicate of the ``split``.

    Raises:
        ArgumentTypeError: not two inputs, no predicate, or not a graph value.
        DivergentBranchesError: (when the pipeline is built) parts of different types.
    """
    _check_call("merge", parts, 2, predicate)
    if_true, if_false = parts
    return datanode.merge(_node(predicate), _node(if_true), _node(if_false))


def not_(*data: Any, **_: Any) -> DataNode:
    """Return whether a value is false or zero.

    Args:
        data: one graph value: a boolean or number per sample.

    Raises:
        ArgumentTypeError: not one input, or not a graph value.
    """
    _check_call("not_", data, 1)
    return datanode.logical_not(_node(data[0]))


def _check_call(name: str, inputs: Sequence[Any], count: int, predicate: Any = True) -> None:
    """Reject calls that Python would reject with a TypeError: DALI raises ValueError or RuntimeError."""
    operator = f"fn._conditional.{name}"
    if len(inputs) != count:
        wanted = counted(count, "input")
        raise ArgumentTypeError.here(f"the operator takes {wanted}; got {len(inputs)}.", operator=operator)
    if predicate is None:
        raise ArgumentTypeError.here("the operator requires the argument predicate.", operator=operator)


def _node(value: Any) -> DataNode:
    if not is_promotable(value):
        raise ArgumentTypeError.here(f"an input must be a graph value, a number or an array; got {value!r}.")
    return constant(value)
