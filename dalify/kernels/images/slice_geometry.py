"""Start and end of the slice of `fn.slice`, from any mix of absolute and relative coordinates.

The rounding is bit-exact with DALI's: fractions of an extent are often halves, and 0.7 in float32 is slightly less than
0.7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.small_arrays import zeros

_LARGEST = 1 << 31


def slice_bounds(
    extents: np.ndarray,
    *,
    start: Any,
    rel_start: Any,
    end: Any,
    rel_end: Any,
    shape: Any,
    rel_shape: Any,
    are_inputs: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end (exclusive) of a slice on each axis, rounded half away from zero.

    Args:
        extents: int ``[N, k]`` extents of the data along the sliced axes.
        start: start of the slice, in elements, ``[N, k]`` or ``[N, 1]``; None if specified otherwise.
        rel_start: start as a fraction of the extent; 0 if neither is given.
        end: end of the slice.
        rel_end: end as a fraction of the extent.
        shape: length of the slice; if none of the four is given, it ends at the end of the data.
        rel_shape: length as a fraction of the extent.
        are_inputs: whether coordinates are inputs: their products are float64. Those of arguments are float32, except
            for the sum of a relative start and a relative shape.

    Returns:
        int64 ``[N, k]`` each.

    Raises:
        ArgumentValueError: a slice ends before its start, or coordinates are not numbers; with the sample.
    """
    along = np.asarray(extents, np.float64)
    origin = zeros(along.shape)

    def elements(absolute: Any, relative: Any) -> np.ndarray | None:
        if relative is None:
            return None if absolute is None else np.asarray(absolute, np.float64) + origin
        if are_inputs:
            return np.asarray(relative, np.float64) * along
        return (np.asarray(relative, np.float32) * along.astype(np.float32)).astype(np.float64)

    first, last, length = elements(start, rel_start), elements(end, rel_end), elements(shape, rel_shape)
    if first is None:
        first = origin
    if last is None:
        if length is None:
            last = along
        elif rel_start is not None and rel_shape is not None and not are_inputs:
            last = (np.asarray(rel_start, np.float64) + np.asarray(rel_shape, np.float64)) * along
            # Unlike in DALI, the two precisions must not let an empty slice end before its start.
            last = np.where(np.asarray(rel_shape) >= 0, np.maximum(last, first), last)
        else:
            last = first + length
    starts, ends = np.empty(along.shape, np.int64), np.empty(along.shape, np.int64)
    sample, axis = _round(first, last, starts, ends)
    if sample < 0:
        return starts, ends
    wrong = [value for value in (first[sample, axis], last[sample, axis]) if not abs(value) < _LARGEST]
    if wrong:
        text = f"coordinates must be numbers that fit into 32 bits; got {wrong[0]:g}."
    else:
        text = f"the slice ends at {ends[sample, axis]}, before its start {starts[sample, axis]}."
    raise ArgumentValueError(text, sample=sample)


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _round(first, last, starts, ends):
    """Round start and end half away from zero; return sample and axis of the first error, -1 without errors."""
    for n in range(first.shape[0]):
        for axis in range(first.shape[1]):
            start, end = first[n, axis], last[n, axis]
            if not (abs(start) < _LARGEST and abs(end) < _LARGEST):  # also True for NaN
                return n, axis
            starts[n, axis] = np.int64(np.trunc(start + math.copysign(0.5, start)))
            ends[n, axis] = np.int64(np.trunc(end + math.copysign(0.5, end)))
            if ends[n, axis] < starts[n, axis]:
                return n, axis
    return -1, -1


def whole_windows(extents: np.ndarray, axes: np.ndarray, start: np.ndarray, length: np.ndarray) -> Any:
    """Return start and extents of slices with integer coordinates, int64 ``[N, ndim]`` each.

    None if an axis does not exist or is repeated, or a slice exceeds the data.

    Args:
        extents: extents of the data, int64 ``[N, ndim]``.
        axes: the sliced axes, integers ``[N, k]``; negative ones count from the end.
        start: start of the slices on these axes, integers ``[N, k]``.
        length: extents of the slices on these axes, integers ``[N, k]``.
    """
    starts, windows = np.empty(extents.shape, np.int64), np.empty(extents.shape, np.int64)
    given = [np.ascontiguousarray(values, np.int64) for values in (extents, axes, start, length)]
    return (starts, windows) if _fill_windows(starts, windows, *given) else None


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _fill_windows(starts, windows, extents, axes, start, length):
    """Fill start and extents of slices; return whether axes exist and differ, and slices are inside the data."""
    ndim = extents.shape[1]
    for n in range(extents.shape[0]):
        for axis in range(ndim):
            starts[n, axis], windows[n, axis] = 0, extents[n, axis]
        for k in range(axes.shape[1]):
            axis, first, size = axes[n, k], start[n, k], length[n, k]
            if axis < 0:
                axis += ndim
            if axis < 0 or axis >= ndim or first < 0 or size < 0 or first > extents[n, axis] - size:
                return False
            for other in axes[n, :k]:
                if other % ndim == axis:
                    return False
            starts[n, axis], windows[n, axis] = first, size
    return True
