"""Checks of arguments that several transforms have.

Their errors derive from the built-in classes that torchvision and DALI raise.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.torchvision_rules import integers


def size_of(size: Any) -> tuple[int, ...]:
    """Return a size as one or two positive integers.

    Raises:
        ArgumentTypeError: the size is neither an integer nor a list.
        ArgumentValueError: the number of values is wrong, or a value is below 1.
    """
    if not isinstance(size, int | list | tuple) or isinstance(size, bool):
        raise ArgumentTypeError(f"size must be an integer or a list of integers; got {type(size).__name__}.")
    found = integers(size, 1, 2)
    if min(found) < 1:
        raise ArgumentValueError(f"size must be positive; got {size!r}.")
    return found


def pair_of(size: Any) -> tuple[int, int]:
    """Return height and width; one integer is used for both. Raises the errors of `size_of`."""
    found = size_of(size)
    return found[0], found[-1]


def fraction(p: Any) -> float:
    """Return a probability as float.

    Raises:
        ArgumentValueError: not a number between 0 and 1.
    """
    if not isinstance(p, int | float) or not 0.0 <= p <= 1.0:
        raise ArgumentValueError(f"p must be a number between 0 and 1; got {p!r}.")
    return float(p)


def interval(values: Any, name: str, *, is_positive: bool = False) -> tuple[float, float]:
    """Return minimum and maximum as floats.

    Args:
        values: argument of the user.
        name: name of the argument.
        is_positive: require numbers above 0.

    Raises:
        ArgumentTypeError: not two numbers.
        ArgumentValueError: the first number is greater than the second, or a number is not positive.
    """
    are_two = isinstance(values, list | tuple) and len(values) == 2
    if not are_two or not all(isinstance(value, numbers.Real) for value in values):
        raise ArgumentTypeError(f"{name} must be two numbers (min, max); got {values!r}.")
    low, high = float(values[0]), float(values[1])
    if is_positive and min(low, high) <= 0:
        raise ArgumentValueError(f"{name} must be positive; got {values!r}.")
    if low > high:
        raise ArgumentValueError(f"{name} must be (min, max), with min at most max; got {values!r}.")
    return low, high


def fill_of(fill: Any) -> list[float]:
    """Return fill values as a list: one, or one per channel. None is 0.

    Args:
        fill: a number, a sequence of numbers, or torchvision's dictionary by type; its value for images is used.

    Raises:
        ArgumentTypeError: another type.
        ArgumentValueError: an empty sequence.
    """
    if isinstance(fill, dict):
        named = {getattr(kind, "__name__", kind): value for kind, value in fill.items()}
        fill = next((named[name] for name in ("Image", "Tensor", "others") if name in named), 0)
    if fill is None:
        return [0.0]
    if isinstance(fill, numbers.Real):
        return [float(fill)]
    if not isinstance(fill, Sequence) or isinstance(fill, str) or not all(isinstance(v, numbers.Real) for v in fill):
        raise ArgumentTypeError(f"fill must be a number, or one per channel; got {fill!r}.")
    if not fill:
        raise ArgumentValueError("fill must not be empty.", hint="Write a number, or one per channel.")
    return [float(value) for value in fill]
