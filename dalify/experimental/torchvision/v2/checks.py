"""The checks of arguments that several transforms share. Errors are of the classes that torchvision and DALI raise."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.torchvision_rules import integers

__all__ = ["fill_of", "fraction", "interval", "pair_of", "size_of"]


def size_of(size: Any) -> tuple[int, ...]:
    """Return a size as one or two positive integers.

    Raises:
        ArgumentTypeError: neither an integer nor a list.
        ArgumentValueError: another number of values, or values below 1.
    """
    if not isinstance(size, int | list | tuple) or isinstance(size, bool):
        raise ArgumentTypeError(f"size is an integer or a list of integers, not {type(size).__name__}.")
    found = integers(size, 1, 2)
    if min(found) < 1:
        raise ArgumentValueError(f"size is positive, and {size!r} is not.")
    return found


def pair_of(size: Any) -> tuple[int, int]:
    """Return height and width; one integer stands for both. Raises as `size_of` does."""
    found = size_of(size)
    return found[0], found[-1]


def fraction(p: Any) -> float:
    """Return a probability.

    Raises:
        ArgumentValueError: it is no number between 0 and 1.
    """
    if not isinstance(p, int | float) or not 0.0 <= p <= 1.0:
        raise ArgumentValueError(f"p is a number between 0 and 1, not {p!r}.")
    return float(p)


def interval(values: Any, name: str, *, is_positive: bool = False) -> tuple[float, float]:
    """Return two numbers in their order.

    Args:
        values: given.
        name: of the argument.
        is_positive: refuse numbers that are not above 0.

    Raises:
        ArgumentTypeError: not two numbers.
        ArgumentValueError: the first is larger, or one is not positive.
    """
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise ArgumentTypeError(f"{name} is two numbers (min, max), not {values!r}.")
    if not all(isinstance(value, numbers.Real) for value in values):
        raise ArgumentTypeError(f"{name} is two numbers (min, max), not {values!r}.")
    low, high = float(values[0]), float(values[1])
    if is_positive and min(low, high) <= 0:
        raise ArgumentValueError(f"{name} is positive, and {values!r} is not.")
    if low > high:
        raise ArgumentValueError(f"{name} is (min, max), and in {values!r} the first is larger.")
    return low, high


def fill_of(fill: Any) -> list[float]:
    """Return fill values as a list: one, or one for each channel. None is 0.

    Args:
        fill: a number, a sequence of them, or a dictionary of torchvision's, by type; that of images counts.

    Raises:
        ArgumentTypeError: something else.
        ArgumentValueError: no values.
    """
    if isinstance(fill, dict):
        named = {getattr(kind, "__name__", kind): value for kind, value in fill.items()}
        fill = next((named[name] for name in ("Image", "Tensor", "others") if name in named), 0)
    if fill is None:
        return [0.0]
    if isinstance(fill, numbers.Real):
        return [float(fill)]
    if not isinstance(fill, Sequence) or isinstance(fill, str) or not all(isinstance(v, numbers.Real) for v in fill):
        raise ArgumentTypeError(f"fill is a number or one for each channel, not {fill!r}.")
    if not fill:
        raise ArgumentValueError("fill has no values.", hint="Write a number, or one for each channel.")
    return [float(value) for value in fill]
