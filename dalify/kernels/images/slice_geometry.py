"""Start and end of the slice of `fn.slice`, from any mix of absolute and relative coordinates.

Also used by a decoder. The rounding is bit-exact with DALI's: fractions of an extent are often halves, and 0.7 in
float32 is slightly less than 0.7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.kernels.arrays.frozen import read_only

__all__ = ["slice_bounds", "whole_windows"]

_LARGEST = 1 << 31
_NONE = read_only(np.empty((0, 0)))


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
    relative = rel_start is not None, rel_end is not None, rel_shape is not None
    given = [
        _NONE if values is None else read_only(np.asarray(values, np.float64))
        for values in (
            start if rel_start is None else rel_start,
            end if rel_end is None else rel_end,
            shape if rel_shape is None else rel_shape,
        )
    ]
    along = read_only(np.asarray(extents, np.int64))
    starts, ends = np.empty(along.shape, np.int64), np.empty(along.shape, np.int64)
    sample, axis, first, last = _fill_bounds(starts, ends, along, *given, *relative, are_inputs)
    if sample < 0:
        return starts, ends
    wrong = [value for value in (first, last) if not abs(value) < _LARGEST]
    if wrong:
        text = f"coordinates must be numbers that fit into 32 bits; got {wrong[0]:g}."
    else:
        text = f"the slice ends at {ends[sample, axis]}, before its start {starts[sample, axis]}."
    raise ArgumentValueError(text, sample=sample)


@njit(inline="always")
def _element(values, n, axis, along, is_relative, is_input):
    """Return a coordinate in elements."""
    value = values[n, axis if values.shape[1] > 1 else 0]
    if not is_relative:
        return value
    return value * along if is_input else np.float64(np.float32(value) * np.float32(along))


# It keeps the GIL: it takes less time than releasing it.
@njit(cache=True)
def _fill_bounds(
    starts, ends, extents, start, end, length, is_start_relative, is_end_relative, is_length_relative, are_inputs
):
    """Round start and end half away from zero; coordinates that are not given have no elements.

    Returns:
        sample and axis of the first error, -1 without errors, and its start and end.
    """
    for n in range(extents.shape[0]):
        for axis in range(extents.shape[1]):
            along = np.float64(extents[n, axis])
            first, last = 0.0, along
            if start.size:
                first = _element(start, n, axis, along, is_start_relative, are_inputs)
            if end.size:
                last = _element(end, n, axis, along, is_end_relative, are_inputs)
            elif length.size and is_start_relative and is_length_relative and not are_inputs:
                share = length[n, axis if length.shape[1] > 1 else 0]
                last = (start[n, axis if start.shape[1] > 1 else 0] + share) * along
                # Unlike in DALI, the two precisions must not let an empty slice end before its start.
                if share >= 0 and last < first:
                    last = first
            elif length.size:
                last = first + _element(length, n, axis, along, is_length_relative, are_inputs)
            if not (abs(first) < _LARGEST and abs(last) < _LARGEST):  # written so that NaN is rejected
                return n, axis, first, last
            starts[n, axis] = np.int64(np.trunc(first + math.copysign(0.5, first)))
            ends[n, axis] = np.int64(np.trunc(last + math.copysign(0.5, last)))
            if ends[n, axis] < starts[n, axis]:
                return n, axis, first, last
    return -1, -1, 0.0, 0.0


def whole_windows(extents: np.ndarray, axes: np.ndarray, start: np.ndarray, length: np.ndarray) -> Any:
    """Return start and extents of slices from integers, int64 ``[N, ndim]`` each; None unless all are inside the data.

    Args:
        extents: extents of the data, int64 ``[N, ndim]``.
        axes: the sliced axes, integers ``[N, k]``; negative ones count from the end.
        start: start of the slices on these axes, integers ``[N, k]``.
        length: extents of the slices on these axes, integers ``[N, k]``.
    """
    starts, windows = np.empty(extents.shape, np.int64), np.empty(extents.shape, np.int64)
    given = [np.ascontiguousarray(values, np.int64) for values in (extents, axes, start, length)]
    return (starts, windows) if _fill_windows(starts, windows, *given) else None


# It keeps the GIL: it takes less time than releasing it.
@njit(cache=True)
def _fill_windows(starts, windows, extents, axes, start, length):
    """Fill start and extents of slices; return whether all axes exist and all slices are inside the data."""
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
            starts[n, axis], windows[n, axis] = first, size
    return True
