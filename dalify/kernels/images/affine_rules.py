"""Output rules of the operators of ``fn.transforms``: dimensions, frames and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec


def matrix_spec(x: Spec | None, dimensions: int | None, is_sequence: bool = False) -> Spec:
    """Return the output spec of a transform operator.

    Args:
        x: the transform to compose with, [k, k + 1], or [F, k, k + 1] for a sequence; None without input.
        dimensions: k if the arguments determine it, else None.
        is_sequence: whether an argument has one entry per frame.

    Raises:
        DTypeError: `x` is not float32.
        ShapeError: `x` does not have this form, or transforms points of another number of dimensions, or there are no
            dimensions.
    """
    _check_dimensions(dimensions)
    if x is None:
        shape = None if dimensions is None or is_sequence else (dimensions, dimensions + 1)
        return Spec(DALIDataType.FLOAT, 3, "F**") if is_sequence else Spec(DALIDataType.FLOAT, 2, "**", shape)
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"a transform must be float32; got {x.dtype_text}.", hint="Use fn.cast(x, dtype=types.FLOAT).")
    if x.ndim not in (2, 3) or (x.shape is not None and x.shape[-1] != x.shape[-2] + 1):
        what = counted(x.ndim, "dimension") if x.shape is None else f"the shape {x.shape}"
        raise ShapeError(
            f"a transform must be a matrix with k rows and k + 1 columns (2 x 3 for images); the input has {what}."
        )
    if x.shape is not None and dimensions not in (None, x.shape[-2]):
        raise ShapeError(f"the input transforms {x.shape[-2]}-D points, the arguments need {dimensions}-D points.")
    if x.ndim == 2 and is_sequence:
        return Spec(DALIDataType.FLOAT, 3, "F**")
    return Spec(DALIDataType.FLOAT, x.ndim, "**" if x.ndim == 2 else "F**", x.shape)


def _check_dimensions(size: int | None) -> None:
    if size == 0:
        raise ShapeError("a transform needs at least one dimension; an argument has no values.")


def dimensions(*values: Any) -> int | None:
    """Return the length of vectors; single numbers match any length.

    Args:
        values: tuples, arrays [N, k] or [N, F, k], or None; anything else (VARIES) is unknown.

    Returns:
        the length; 1 if all are single numbers, None if it is not known.

    Raises:
        ShapeError: the lengths differ.
    """
    known = [item.shape[-1] if isinstance(item, np.ndarray) else len(item) for item in values if _has_length(item)]
    longer = {length for length in known if length > 1}
    if len(longer) > 1:
        raise ShapeError(
            f"the arguments have different lengths: {', '.join(str(length) for length in sorted(longer))}."
        )
    if longer:
        return longer.pop()
    return 1 if len(known) == len([item for item in values if item is not None]) else None


def _has_length(value: Any) -> bool:
    return isinstance(value, (tuple, np.ndarray)) and len(value) > 0


def result_shape(x: Any, size: int | None, *arguments: Any) -> dict[str, Any]:
    """Return the result of ``prepare`` for a transform: the shapes, if the output rule does not know them.

    Args:
        x: the input as a Batch, or None.
        size: k, if the arguments determine it.
        arguments: per-sample arguments that may have one entry per frame: arrays, or lists of [k] or [F, k].

    Raises:
        ShapeError: the numbers of frames differ, or there are no dimensions.
    """
    _check_dimensions(size)
    if not any(isinstance(item, list) or (item is not None and item.ndim == 3) for item in arguments):
        return {} if x is not None or size is None else {"out_shapes": (size, size + 1)}
    given = [item for item in arguments if item is not None]
    shapes: list[tuple[int, ...]] = []
    for n in range(len(given[0])):
        own = None if x is None else tuple(x.samples[n].shape)
        counts = {len(item[n]) for item in given if item[n].ndim == 2}
        if own is not None and len(own) == 3:
            counts.add(own[0])
        frames = _single_count(counts, n)
        k = size or (own[-2] if own is not None else dimensions(*(item[n][None] for item in given)) or 1)
        shapes.append((k, k + 1) if frames is None else (frames, k, k + 1))
    return {"out_shapes": shapes, "out_layout": "F**" if len(shapes[0]) == 3 else "**"}


def _single_count(counts: set[int], sample: int) -> int | None:
    if len(counts) > 1:
        counts = counts - {1}  # a single frame is broadcast
    if len(counts) > 1:
        raise ShapeError(f"input and arguments have different numbers of frames: {sorted(counts)}.", sample=sample)
    return counts.pop() if counts else None


def shear_size(given: int) -> int:
    """Return k for ``k * (k - 1)`` shear factors."""
    return (1 + math.isqrt(1 + 4 * given)) // 2
