"""Checks shared by concatenation and stacking."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.base.errors import DTypeError, ShapeError
from dalify.data.spec import Spec


def is_empty(part: Spec) -> bool:
    """Return whether samples of this spec are known to have no elements."""
    return part.shape is not None and 0 in part.shape


def check_joinable(parts: Sequence[Spec], free_axis: int | None = None, *, takes_empty: bool = False) -> None:
    """Check that inputs can be joined.

    Args:
        parts: specs of the inputs.
        free_axis: axis along which extents may differ.
        takes_empty: whether to ignore the extents of empty inputs.

    Raises:
        DTypeError: dtypes differ.
        ShapeError: dimensions or extents differ.
    """
    first = parts[0]
    for number, part in enumerate(parts[1:], 1):
        if part.dtype != first.dtype:
            raise DTypeError(
                f"inputs must have the same dtype: input 0 is {first.dtype_text}, input {number} is {part.dtype_text}.",
                hint="Convert one of them with fn.cast or fn.cast_like.",
            )
        if part.ndim != first.ndim:
            raise ShapeError(
                f"inputs must have the same number of dimensions: input 0 has {first.ndim}, input {number} has "
                f"{part.ndim}."
            )
        if part.shape is None or first.shape is None or (takes_empty and is_empty(part)):
            continue
        if takes_empty and is_empty(first):
            first = part
            continue
        for axis, (one, other) in enumerate(zip(first.shape, part.shape, strict=True)):
            if axis != free_axis and one != other:
                raise ShapeError(
                    f"inputs with shapes {first.shape} (input 0) and {part.shape} (input {number}) cannot be joined: "
                    f"axis {axis} differs."
                )


def first_layout(parts: Sequence[Spec]) -> str:
    """Return the first layout that is not empty, or ``""``."""
    return next((part.layout for part in parts if part.layout), "")
