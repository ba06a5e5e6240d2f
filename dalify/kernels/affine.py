"""Affine maps of points as matrices [k, k + 1]: making them, joining them, and the rules that their operators share.

Alone because the operators of ``fn.transforms`` only differ in the matrix that they make. All is computed in float64
and stored in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec
from dalify.kernels.rotation import rotation_matrix

__all__ = [
    "about",
    "all_shapes",
    "compose",
    "crop_map",
    "dimensions",
    "matrix_spec",
    "rotation_maps",
    "shear_maps",
    "shear_size",
    "vectors",
    "write_joined",
]


def matrix_spec(x: Spec | None, dimensions: int | None) -> Spec:
    """Return the spec of a transform operator's result.

    Args:
        x: the transform to apply the new one to, [k, k + 1], or [F, k, k + 1] for a sequence; None where there is none.
        dimensions: k as far as the arguments tell; None where they do not.

    Raises:
        ShapeError: `x` is no matrix of that form, or of another number of dimensions.
    """
    if x is None:
        shape = None if dimensions is None else (dimensions, dimensions + 1)
        return Spec(DALIDataType.FLOAT, 2, "**", shape)
    if x.ndim not in (2, 3) or (x.shape is not None and x.shape[-1] != x.shape[-2] + 1):
        what = f"{x.ndim} dimensions" if x.shape is None else f"the shape {x.shape}"
        raise ShapeError(
            f"a transform is a matrix of k rows and k + 1 columns (2 x 3 for images); the input has {what}."
        )
    if x.shape is not None and dimensions not in (None, x.shape[-2]):
        raise ShapeError(f"the input transforms {x.shape[-2]}-D points, the arguments {dimensions}-D points.")
    return Spec(DALIDataType.FLOAT, x.ndim, "**" if x.ndim == 2 else "F**", x.shape)


def dimensions(*values: Any) -> int | None:
    """Return how many dimensions vectors stand for: their length, where single numbers count as "any".

    Args:
        values: tuples, arrays [N, k], or None; what else (VARIES) is not known.

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


def vectors(values: Any, count: int, size: int, default: float = 0.0) -> np.ndarray:
    """Return an argument as float64 [N, size]: single numbers are repeated, None is the default.

    Raises:
        ShapeError: neither one value nor `size`.
    """
    if values is None:
        return np.full((count, size), default)
    array = np.asarray(np.stack(values) if isinstance(values, list) else values, np.float64).reshape(count, -1)
    if array.shape[1] not in (1, size):
        raise ShapeError(f"an argument needs {size} values, or one; got {array.shape[1]}.")
    return np.broadcast_to(array, (count, size))


def about(linear: np.ndarray, center: np.ndarray | None) -> np.ndarray:
    """Return the affine maps [N, k, k + 1] that apply `linear` [N, k, k] about a center [N, k], or about 0."""
    moved = np.zeros(linear.shape[:2]) if center is None else center - np.einsum("nij,nj->ni", linear, center)
    return np.concatenate([linear, moved[:, :, None]], axis=2)


def rotation_maps(angle: np.ndarray, axis: Any) -> np.ndarray:
    """Return rotations [N, k, k]; k is 3 with an axis [N, 3], else 2.

    Raises:
        ArgumentValueError: an axis of length 0 or of another number of elements.
    """
    if axis is None:
        return np.stack([rotation_matrix(value) for value in angle.tolist()])
    if axis.shape[1] != 3:
        raise ShapeError(f"axis needs 3 values, x, y and z; got {axis.shape[1]}.")
    result = np.stack([rotation_matrix(a, d) for a, d in zip(angle.tolist(), axis.tolist(), strict=True)])
    if np.isnan(result).any():
        raise ArgumentValueError("axis must have a length; got [0, 0, 0].")
    return result


def shear_maps(factors: np.ndarray) -> np.ndarray:
    """Return shears [N, k, k] of factors [N, k * (k - 1)], the off-diagonal elements row by row.

    Raises:
        ShapeError: not 2 (for 2-D) or 6 (for 3-D) factors.
    """
    count, given = factors.shape
    if given not in (2, 6):
        raise ShapeError(f"a shear has 2 factors in 2-D and 6 in 3-D; got {given}.")
    size = 2 if given == 2 else 3
    result = np.repeat(np.eye(size)[None], count, axis=0)
    result[:, ~np.eye(size, dtype=bool)] = factors
    return result


def crop_map(from_start: np.ndarray, from_end: np.ndarray, to_start: np.ndarray, to_end: np.ndarray) -> np.ndarray:
    """Return the maps [N, k, k + 1] that take one box to another; all corners [N, k].

    A box without extent gives infinite or NaN elements.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (to_end - to_start) / (from_end - from_start)
        linear = np.zeros((*scale.shape, scale.shape[1]))
        linear[:, range(scale.shape[1]), range(scale.shape[1])] = scale
        return np.concatenate([linear, (to_start - scale * from_start)[:, :, None]], axis=2)


def compose(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Return the map that applies `inner`, then `outer`; both [..., k, k + 1], leading axes are broadcast."""
    linear = outer[..., :-1]
    result = linear @ inner
    result[..., -1] += outer[..., -1]
    return result


def write_joined(out: np.ndarray, x: np.ndarray | None, maps: np.ndarray, reverse_order: bool) -> None:
    """Fill `out` with `maps` applied after `x`, or before it with `reverse_order`.

    Args:
        out: float32 [N, k, k + 1] or [N, F, k, k + 1].
        x: the shape of `out`, or None.
        maps: [N, k, k + 1].
        reverse_order: apply `maps` first.
    """
    if x is None:
        out[...] = maps
        return
    given = x.astype(np.float64)
    made = maps.reshape(maps.shape[0], *[1] * (x.ndim - 3), *maps.shape[1:])
    out[...] = compose(given, made) if reverse_order else compose(made, given)


def shear_size(given: int) -> int:
    """Return k of ``k * (k - 1)`` shear factors, as far as they make sense."""
    return (1 + math.isqrt(1 + 4 * given)) // 2


def all_shapes(x: Any, size: int | None, count: int) -> dict[str, Sequence[tuple[int, int]]]:
    """Return what `prepare` returns for a transform: the shapes, where no input determines them."""
    if x is not None or size is None:
        return {}
    return {"out_shapes": [(size, size + 1)] * count}
