"""Draw a random crop window that contains as much of a region as possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, DalifyError, IndexingError, ShapeError
from dalify.base.narrow import is_array
from dalify.base.small_arrays import counting, equal_rows, rows_at
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.convert import store_joined
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.random.philox import SampleDraws, fill_uniform
from dalify.registry import PerSample, Spec, Vectors, operator

_GOOD, _NEGATIVE, _REVERSED, _TOO_LARGE, _OUTSIDE = range(5)


@operator(random=True)
def roi_random_crop(
    x: Spec | None = None,
    /,
    *,
    crop_shape: PerSample[int | list[int]],
    in_shape: PerSample[int | list[int]] | None = None,
    roi_end: PerSample[int | list[int]] | None = None,
    roi_shape: PerSample[int | list[int]] | None = None,
    roi_start: PerSample[int | list[int]],
) -> Spec:
    """Draw a random crop window of a given shape that contains as much of a region of interest as possible.

    Along each axis, a window that is shorter than the region is inside it, and one that is longer contains it. All such
    positions, inside the data if its shape is known, are equally likely.

    Args:
        x: data that will be cropped; only the extents of its first axes are used.
        crop_shape: extents of the window.
        in_shape: shape of the data, instead of `x`; without both, windows can extend outside the data.
        roi_end: end of the region.
        roi_shape: extents of the region, instead of `roi_end`.
        roi_start: start of the region.

    Returns:
        start of the window, int64, one number for each element of `crop_shape`.

    Raises:
        ArgumentValueError: not exactly one of `roi_end` and `roi_shape`, `x` together with `in_shape`, or a window or
            region of negative extents.
        IndexingError: the region extends outside the data, or the window is larger than the data.
        ShapeError: the numbers of elements of the arguments differ.

    Example:
        >>> start = fn.roi_random_crop(
        ...     crop_shape=[64, 64], roi_start=box[:2], roi_end=box[2:], in_shape=[480, 640]
        ... )  # doctest: +SKIP
        >>> images = fn.slice(images, start=start, shape=[64, 64], axis_names="HW")  # doctest: +SKIP
    """
    if (roi_end is None) == (roi_shape is None):
        raise ArgumentValueError("specify either roi_end or roi_shape.")
    if x is not None and in_shape is not None:
        raise ArgumentValueError("in_shape cannot be combined with an input, whose shape is used.")
    return Spec(DALIDataType.INT64, 1, "")


@njit(nogil=True, cache=True)
def _place(out, window, start, other, is_shape, shape, draws):
    """Draw the windows of all samples; return an error code, the sample and the axis.

    Args:
        out: output, int64 [N, axes].
        window: extents, int32 [N, axes].
        start: start of the regions, int32 [N, axes], or [N, 1] for all axes; likewise the next three.
        other: end or extents of the regions.
        is_shape: whether `other` is extents.
        shape: shape of the data; [N, 0]: unknown.
        draws: random state from `philox.Draws.numba_arguments`.
    """
    uniforms = np.empty(out.shape, np.float64)
    fill_uniform(uniforms, *draws)
    for n in range(out.shape[0]):
        for axis in range(out.shape[1]):
            extent = np.int64(window[n, axis])
            begin = np.int64(start[n, axis % start.shape[1]])
            end = np.int64(other[n, axis % other.shape[1]])
            end += begin if is_shape else 0
            if extent < 0:
                return _NEGATIVE, n, axis
            if end < begin:
                return _REVERSED, n, axis
            low, high = min(begin, end - extent), max(begin, end - extent)
            if shape.shape[1]:
                whole = np.int64(shape[n, axis % shape.shape[1]])
                if extent > whole:
                    return _TOO_LARGE, n, axis
                if begin < 0 or end > whole:
                    return _OUTSIDE, n, axis
                low, high = max(low, 0), min(high, whole - extent)
            out[n, axis] = min(low + np.int64(uniforms[n, axis] * (high - low + 1)), high)
    return _GOOD, 0, 0


def _number(values: np.ndarray, sample: int, axis: int) -> int:
    return int(values[sample, axis % values.shape[1]])


@roi_random_crop.geometry
def _(x: Batch | None, *, crop_shape: Vectors) -> dict[str, Any]:
    if is_array(crop_shape):
        return {"out_shapes": crop_shape.shape[1:]}
    return {"out_shapes": np.array([[len(row)] for row in crop_shape], np.int64)}


def _rows(name: str, values: Vectors, numbers: np.ndarray, axes: int) -> np.ndarray:
    """Return an argument of some of the samples, int32 [N, axes] or [N, 1]."""
    if is_array(values):
        rows = values if len(numbers) == len(values) else rows_at(values, numbers)
    else:
        chosen = [values[n] for n in numbers.tolist()]
        wrong = next((n for n, row in enumerate(chosen) if len(row) not in (1, axes)), None)
        if wrong is not None:
            text = f"{name} must have {axes} numbers, as many as crop_shape; got {len(chosen[wrong])}."
            raise ShapeError(text, sample=int(numbers[wrong]))
        rows = np.stack([np.broadcast_to(row, (axes,)) for row in chosen])
    if rows.shape[1] not in (1, axes):
        raise ShapeError(f"{name} must have {axes} numbers, as many as crop_shape; got {rows.shape[1]}.")
    return read_only(rows)


@roi_random_crop.cpu_samples
def _(
    out: Samples,
    x: Samples | None,
    *,
    crop_shape: Vectors,
    in_shape: Vectors | None,
    roi_end: Vectors | None,
    roi_shape: Vectors | None,
    roi_start: Vectors,
    draws: SampleDraws,
) -> None:
    given = roi_shape if roi_end is None else roi_end
    assert given is not None, "dalify bug: neither roi_end nor roi_shape"
    groups = [counting(len(out))] if is_array(crop_shape) else equal_rows(out.shapes)
    for numbers in groups:
        axes = int(out.shapes[numbers[0], 0])
        window = _rows("crop_shape", crop_shape, numbers, axes)
        if x is not None and x.ndim < axes:
            raise ShapeError(f"crop_shape has {axes} numbers; the data has {counted(x.ndim, 'dimension')}.")
        if x is not None:
            shape = read_only(x.shapes[numbers, :axes].astype(np.int32))
        else:
            unknown = np.empty((len(numbers), 0), np.int32)
            shape = read_only(unknown) if in_shape is None else _rows("in_shape", in_shape, numbers, axes)
        other = _rows("roi_shape" if roi_end is None else "roi_end", given, numbers, axes)
        start = _rows("roi_start", roi_start, numbers, axes)
        found = np.empty((len(numbers), axes), np.int64)
        own = draws if len(numbers) == len(out) else draws.take(numbers)
        state = own.draws.numba_arguments(own.samples)
        problem, n, axis = _place(found, window, start, other, roi_end is None, shape, state)
        if problem != _GOOD:
            error = _error(problem, n, axis, window, start, other, roi_end is None, shape)
            error.sample = int(numbers[n])
            raise error
        store_joined(out if len(numbers) == len(out) else out.take(numbers), found)


def _error(
    problem: int,
    n: int,
    axis: int,
    window: np.ndarray,
    start: np.ndarray,
    other: np.ndarray,
    is_shape: bool,
    shape: np.ndarray,
) -> DalifyError:
    begin, extent = _number(start, n, axis), _number(window, n, axis)
    end = _number(other, n, axis) + (begin if is_shape else 0)
    whole = _number(shape, n, axis) if shape.shape[1] else 0
    kind, text = {
        _NEGATIVE: (ArgumentValueError, f"crop_shape must not be negative; got {extent}"),
        _REVERSED: (ArgumentValueError, f"the region ends before it starts: [{begin}, {end})"),
        _TOO_LARGE: (
            IndexingError,
            f"the window of {counted(extent, 'element')} is larger than the data, {counted(whole, 'element')}",
        ),
        _OUTSIDE: (IndexingError, f"the region [{begin}, {end}) extends outside the data, {counted(whole, 'element')}"),
    }[problem]
    return kind(f"{text}, axis {axis}.")
