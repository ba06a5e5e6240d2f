"""Type guards for untyped values; unlike after ``isinstance``, type checkers infer the type of the elements, too."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np


def is_array(value: object) -> TypeGuard[np.ndarray]:
    """Return whether a value is a NumPy array."""
    return isinstance(value, np.ndarray)


def is_dictionary(value: object) -> TypeGuard[dict[Any, Any]]:
    """Return whether a value is a dictionary."""
    return isinstance(value, dict)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; False for bool, which Python derives from int."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is an integer or a float; see ``is_integer``."""
    return is_integer(value) or isinstance(value, float)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value is a list."""
    return isinstance(value, list)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Return whether a value is a tuple."""
    return isinstance(value, tuple)


def is_list_or_tuple(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or a tuple."""
    return isinstance(value, (list, tuple))
