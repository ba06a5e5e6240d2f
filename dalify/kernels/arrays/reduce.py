"""Reductions along axes of a group of samples: sums, means, extrema and deviations.

Shared by reductions and normalization. Integer sums are exact; all other sums are accumulated in float64, so that
results are rounded once.

Axes are those of a sample; the leading group axis is never reduced. Every function fills ``out[N, ...]``, whose extents
are those of the input with the reduced axes removed or kept with extent 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays.convert import saturate_cast

__all__ = [
    "collapse",
    "deviations",
    "maximum",
    "mean",
    "mean_square",
    "minimum",
    "reduced_dtype",
    "rms",
    "std_dev",
    "total",
    "variance",
]

# Values are added to as many partial sums as fit into a few SIMD registers, then combined.
_LANES = 64
_EXACT_BYTES = 1 << 45  # the sum of this many bytes is below 2**53: exact in float64


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _moments(x: np.ndarray, shift: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> None:
    """Accumulate x - shift and its square: x [A, R * B], shift, sums and squares float64 [A, B]."""
    inner = sums.shape[1]
    repeats = max(1, _LANES // inner)
    width = repeats * inner
    lane_shift, lane_sum, lane_square = np.empty(width), np.empty(width), np.empty(width)
    for a in range(x.shape[0]):
        if x.shape[1] <= width:
            for b in range(inner):
                sums[a, b] = 0.0
                squares[a, b] = 0.0
            for i in range(x.shape[1]):
                difference = np.float64(x[a, i]) - shift[a, i % inner]
                sums[a, i % inner] += difference
                squares[a, i % inner] += difference * difference
            continue
        for lane in range(width):
            lane_shift[lane] = shift[a, lane % inner]
            lane_sum[lane] = 0.0
            lane_square[lane] = 0.0
        row = x[a]
        whole = row.size - row.size % width
        for start in range(0, whole, width):
            part = row[start : start + width]
            for lane in range(width):
                difference = np.float64(part[lane]) - lane_shift[lane]
                lane_sum[lane] += difference
                lane_square[lane] += difference * difference
        for lane in range(row.size - whole):
            difference = np.float64(row[whole + lane]) - lane_shift[lane]
            lane_sum[lane] += difference
            lane_square[lane] += difference * difference
        for b in range(inner):
            sums[a, b] = 0.0
            squares[a, b] = 0.0
        for lane in range(width):
            sums[a, lane % inner] += lane_sum[lane]
            squares[a, lane % inner] += lane_square[lane]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _row_moments(x: np.ndarray, shift: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> None:
    """`_moments` if every row is one result: no combination of partial sums, which is slow for short rows."""
    for a in range(x.shape[0]):
        row, center, total, square = x[a], shift[a, 0], 0.0, 0.0
        for i in range(row.size):
            difference = np.float64(row[i]) - center
            total += difference
            square += difference * difference
        sums[a, 0], squares[a, 0] = total, square


def reduced_dtype(reduction: str, dtype: DALIDataType, requested: DALIDataType | None = None) -> DALIDataType:
    """Return the dtype of a reduction's result.

    Args:
        reduction: ``sum``, ``mean``, ``mean_square``, ``rms``, ``std_dev``, ``variance``, ``min`` or ``max``.
        dtype: dtype of the data.
        requested: the user's dtype; takes precedence.
    """
    if requested is not None:
        return requested
    if reduction in ("min", "max") or dtype == DALIDataType.FLOAT64:
        return dtype
    if reduction == "sum" and not dtype.is_float:
        return DALIDataType.INT64 if dtype.is_signed and dtype != DALIDataType.BOOL else DALIDataType.UINT64
    return DALIDataType.FLOAT


def collapse(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Reshape a group to [A, R, B], to be reduced along R; a copy only if reduced and kept axes alternate.

    Args:
        x: array [N, ...].
        axes: axes of a sample, not negative.
    """
    reduced = [axis + 1 for axis in sorted(axes)]
    if not reduced:
        return x.reshape(-1, 1, 1)
    first, last = reduced[0], reduced[-1]
    if any(axis not in reduced and x.shape[axis] != 1 for axis in range(first, last)):
        kept = [axis for axis in range(x.ndim) if axis not in reduced]
        x = np.ascontiguousarray(x.transpose(*kept, *reduced))
        first, last = len(kept), x.ndim - 1
    before, within = math.prod(x.shape[:first]), math.prod(x.shape[first : last + 1])
    return x.reshape(before, within, math.prod(x.shape[last + 1 :]))


def _summed(x: np.ndarray, shift: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums and sums of squares, float64 [A, B], of x - shift, x [A, R, B]."""
    outer, count, inner = x.shape
    sums, squares = np.empty((outer, inner)), np.empty((outer, inner))
    if x.dtype not in (np.uint8, np.float32, np.float64):  # dtypes of the compiled loop
        x = x.astype(np.float64)
    if shift is None:
        shift = np.zeros((outer, inner))
    add_up = _row_moments if inner == 1 else _moments
    add_up(np.ascontiguousarray(x).reshape(outer, count * inner), shift, sums, squares)
    return sums, squares


def _store(out: np.ndarray, values: np.ndarray) -> None:
    """Store float64 results; integers are truncated, as in DALI, not rounded."""
    saturate_cast(out, (np.trunc(values) if out.dtype.kind in "iu" else values).reshape(out.shape))


def _divided(values: np.ndarray, count: int) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):  # an empty reduction is NaN, as 0 / 0
        return values / np.float64(count)


def total(out: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> None:
    """Fill `out` with sums; integers are exact modulo the range of `out`, which wraps.

    Args:
        out: array [N, ...] of any numeric dtype.
        x: array [N, ...].
        axes: axes of a sample to reduce.
    """
    flat = collapse(x, axes)
    if out.dtype.kind == "f":
        _store(out, _summed(flat, None)[0])
    else:
        wide = np.uint64 if out.dtype.kind == "u" else np.int64
        if x.dtype == np.uint8 and flat.shape[1] <= _EXACT_BYTES:
            sums = _summed(flat, None)[0].astype(wide)
        else:
            if x.dtype.kind == "f":
                flat = flat.astype(np.float64).astype(wide)
            sums = _folded(np.add, flat, dtype=wide)
        np.copyto(out, sums.reshape(out.shape), casting="unsafe")


def mean(out: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> None:
    """Fill `out` with arithmetic means; NaN for an empty reduction."""
    flat = collapse(x, axes)
    _store(out, _divided(_summed(flat, None)[0], flat.shape[1]))


def mean_square(out: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> None:
    """Fill `out` with means of squares."""
    flat = collapse(x, axes)
    _store(out, _divided(_summed(flat, None)[1], flat.shape[1]))


def rms(out: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> None:
    """Fill `out` with the roots of the means of squares."""
    flat = collapse(x, axes)
    _store(out, np.sqrt(_divided(_summed(flat, None)[1], flat.shape[1])))


def deviations(x: np.ndarray, axes: Sequence[int], center: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Return means, sums of squared deviations, and the number of values reduced.

    Args:
        x: array [N, ...].
        axes: axes of a sample to reduce.
        center: center of the deviations, one per result or one per sample ([N, ...]); None for the means.

    Returns:
        two float64 arrays [A, B] in the order of the results, and R; see `collapse`.
    """
    flat = collapse(x, axes)
    outer, count, inner = flat.shape
    if center is None:
        center = _divided(_summed(flat, None)[0], count)
    else:
        center = np.ascontiguousarray(_spread(center, len(x), outer * inner).reshape(outer, inner))
    return center, _summed(flat, center)[1], count


def _spread(values: np.ndarray, samples: int, results: int) -> np.ndarray:
    """Return one float64 per result, from one per result or one per sample."""
    values = np.asarray(values, np.float64)
    flat = values.reshape(samples, math.prod(values.shape[1:]))
    return np.broadcast_to(flat, (samples, results // samples)) if flat.shape[1] == 1 else flat


def variance(out: np.ndarray, x: np.ndarray, center: np.ndarray, axes: Sequence[int], ddof: int = 0) -> None:
    """Fill `out` with mean squared deviations from `center`.

    Args:
        out: float array [N, ...].
        x: array [N, ...].
        center: array [N, ...]: one number per result, or one per sample.
        axes: axes of a sample to reduce.
        ddof: subtracted from the number of values before dividing by it.
    """
    _, squares, count = deviations(x, axes, center)
    _store(out, _divided(squares, count - ddof))


def std_dev(out: np.ndarray, x: np.ndarray, center: np.ndarray, axes: Sequence[int], ddof: int = 0) -> None:
    """Fill `out` with the square roots of `variance`."""
    _, squares, count = deviations(x, axes, center)
    with np.errstate(invalid="ignore"):
        _store(out, np.sqrt(_divided(squares, count - ddof)))


def minimum(out: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> None:
    """Fill `out` with minima, ignoring NaN; the maximum of the dtype for an empty reduction."""
    _extreme(out, x, axes, np.fmin if x.dtype.kind == "f" else np.minimum, is_largest=True)


def maximum(out: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> None:
    """Fill `out` with maxima, ignoring NaN; the minimum of the dtype for an empty reduction."""
    _extreme(out, x, axes, np.fmax if x.dtype.kind == "f" else np.maximum, is_largest=False)


def _folded(ufunc: Any, flat: np.ndarray, **options: Any) -> np.ndarray:
    """Reduce [A, R, B] along R."""
    outer, count, inner = flat.shape
    if 1 < inner < _LANES < count:
        # NumPy's loop runs along the last axis: reshape to longer rows, and process the remainder separately.
        whole = count - count % _LANES
        rows = flat[:, :whole].reshape(outer, whole // _LANES, _LANES * inner)
        folded = ufunc.reduce(rows, axis=1, **options).reshape(outer, _LANES, inner)
        flat = np.concatenate([folded, flat[:, whole:]], axis=1)
    return ufunc.reduce(flat, axis=1, **options)


def _extreme(out: np.ndarray, x: np.ndarray, axes: Sequence[int], ufunc: Any, *, is_largest: bool) -> None:
    flat = collapse(x, axes)
    if not flat.shape[1]:
        limits: Any = (
            np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype if x.dtype.kind != "b" else np.uint8)
        )
        out.fill(limits.max if is_largest else limits.min)
        return
    saturate_cast(out, _folded(ufunc, flat).reshape(out.shape))
