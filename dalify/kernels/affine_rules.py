"""What the operators of ``fn.transforms`` have in common before they compute: dimensions, frames and shapes.

Alone because rules and ``prepare`` functions run for every graph, and the arithmetic beside them needs numba.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec

__all__ = ["dimensions", "matrix_spec", "result_shape", "shear_size"]


def matrix_spec(x: Spec | None, dimensions: int | None, is_sequence: bool = False) -> Spec:
    """Return the spec of a transform operator's result.

    Args:
        x: the transform to apply the new one to, [k, k + 1], or [F, k, k + 1] for a sequence; None where there is none.
        dimensions: k as far as the arguments tell; None where they do not.
        is_sequence: an argument has one entry per frame.

    Raises:
        DTypeError: `x` has no float32 elements.
        ShapeError: `x` is no matrix of that form, or of another number of dimensions.
    """
    if x is None:
        shape = None if dimensions is None or is_sequence else (dimensions, dimensions + 1)
        return Spec(DALIDataType.FLOAT, 3, "F**") if is_sequence else Spec(DALIDataType.FLOAT, 2, "**", shape)
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"a transform must be float32; got {x.dtype!s}.", hint="fn.cast(matrix, dtype=types.FLOAT)")
    if x.ndim not in (2, 3) or (x.shape is not None and x.shape[-1] != x.shape[-2] + 1):
        what = f"{x.ndim} dimensions" if x.shape is None else f"the shape {x.shape}"
        raise ShapeError(
            f"a transform is a matrix of k rows and k + 1 columns (2 x 3 for images); the input has {what}."
        )
    if x.shape is not None and dimensions not in (None, x.shape[-2]):
        raise ShapeError(f"the input transforms {x.shape[-2]}-D points, the arguments {dimensions}-D points.")
    if x.ndim == 2 and is_sequence:
        return Spec(DALIDataType.FLOAT, 3, "F**")
    return Spec(DALIDataType.FLOAT, x.ndim, "**" if x.ndim == 2 else "F**", x.shape)


def dimensions(*values: Any) -> int | None:
    """Return how many dimensions vectors stand for: their length, where single numbers count as "any".

    Args:
        values: tuples, arrays [N, k] or [N, F, k], or None; what else (VARIES) is not known.

    Returns:
        The length; 1 where there are single numbers only, None where nothing is known.

    Raises:
        ShapeError: vectors of different length.
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
    """Return what ``prepare`` returns for a transform: the shapes, where the rule cannot tell them.

    Args:
        x: the input as a Batch, or None.
        size: k, where the arguments tell it.
        arguments: per-sample arguments that may have one entry per frame: arrays, or lists of [k] or [F, k].

    Raises:
        ShapeError: different numbers of frames.
    """
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
        counts = counts - {1}  # one frame serves for all
    if len(counts) > 1:
        error = ShapeError(f"input and arguments have different numbers of frames: {sorted(counts)}.")
        error.__dalify_sample__ = sample  # pyright: ignore[reportAttributeAccessIssue]
        raise error
    return counts.pop() if counts else None


def shear_size(given: int) -> int:
    """Return k of ``k * (k - 1)`` shear factors, as far as they make sense."""
    return (1 + math.isqrt(1 + 4 * given)) // 2
