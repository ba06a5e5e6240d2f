"""Resamples images and volumes through a window, on the CPU.

Both passes of a separable filter run row by row: the source rows of an output row are blended into a scratch row in the
L1 cache, which is then filtered horizontally. Only columns and rows that the window needs are read. Sums are float32;
the result is rounded once.
"""

# Numba omits branches for arguments that are None. Names that are assigned and used under the same condition are
# possibly unbound for pyright only; assigning them always would add 3 % to the compilation of a first resize.
# pyright: reportPossiblyUnboundVariable=false

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types as numba_types
from numba.extending import overload

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.base.errors import ShapeError
from dalify.base.extremes import larger_of, smaller_of
from dalify.base.small_arrays import all_of
from dalify.data.dtypes import DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import in_float32
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.arrays.simd import (
    blend_four_pixels,
    filter_four_values,
    weighted_sum_of_four,
    weighted_sum_of_four_taps,
    weighted_sum_of_six_taps,
    weighted_sum_of_two_taps,
)
from dalify.kernels.arrays.simd_rows import WIDE, sum_of_rows, wide_sum_of_rows
from dalify.kernels.arrays.strided import contiguous
from dalify.kernels.images.resample_filters import new_taps, place_in_whole
from dalify.kernels.images.resample_nearest import gather_nearest
from dalify.kernels.images.resample_rounding import even_range, round_to_even

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)
_TRIANGULAR = int(DALIInterpType.INTERP_TRIANGULAR)
_LANES = 4
_NONE, _SOME, _ALL = range(3)  # how many samples of a chunk have a property
_FLOAT_BYTES = 4
_ABOVE_ONE = np.float32(1 + 2**-23)
_DIRECT_TYPES = (np.dtype(np.uint8), np.dtype(np.float32))  # others are converted to float32 before


class Windows(NamedTuple):
    """Source windows and filters of N samples along k axes.

    Attributes:
        start: float32 [N, k], start of the windows in pixel edges.
        end: float32 [N, k], end of the windows; an end before the start mirrors the axis.
        min_filter: int32 [N], DALIInterpType for axes that shrink.
        mag_filter: int32 [N], DALIInterpType for other axes.
        parts: int64 [N, 4], if only parts of results are computed, with the same values as in the whole results: height
            and width of the whole result, first row and column of the part. `WHOLE_RESULTS` otherwise.
    """

    start: np.ndarray
    end: np.ndarray
    min_filter: np.ndarray
    mag_filter: np.ndarray
    parts: np.ndarray

    def take(self, at: np.ndarray) -> Windows:
        """Return the windows of some samples."""
        parts = self.parts[at] if len(self.parts) else self.parts
        return Windows(self.start[at], self.end[at], self.min_filter[at], self.mag_filter[at], parts)


WHOLE_RESULTS = np.empty((0, 4), np.int64)
"""The `parts` of `Windows` for results that are whole."""


def resample(
    out: Samples,
    x: Samples,
    start: np.ndarray,
    end: np.ndarray,
    *,
    min_filter: np.ndarray | int = _LINEAR,
    mag_filter: np.ndarray | int = _LINEAR,
    antialias: bool = True,
) -> None:
    """Resample the window [start, end) of each sample to the size of `out`.

    `dalify.kernels.images.resample_filters` has the formulas. Wide filters read pixels around the window; outside the
    image, its edge is repeated.

    Args:
        out: N samples [h, w, C] or [d, h, w, C], output, any numeric dtype; integers are rounded, halves as
            `even_range` describes, and saturated.
        x: N samples [H, W, C] or [D, H, W, C], any numeric dtype, no axis empty; may be windows with strides. Types
            other than uint8 and float32 are converted to float32.
        start: float [N, 2] or [N, 3], finite: start of the window in pixel edges, in the order of the axes.
        end: end of the window, like `start`. An end before the start mirrors the axis.
        min_filter: DALIInterpType for axes that shrink, one or int array [N].
        mag_filter: DALIInterpType for other axes, like `min_filter`.
        antialias: whether to widen filters by the scale of a reduction.

    Raises:
        ShapeError: a sample of `x` has no pixels.
    """
    samples, axes = len(x), x.ndim - 1
    starts, ends = (broadcast_to(corner, (samples, axes), np.float32) for corner in (start, end))
    smaller, larger = (broadcast_to(kinds, (samples,), np.int32) for kinds in (min_filter, mag_filter))
    resample_windows(out, x, Windows(starts, ends, smaller, larger, WHOLE_RESULTS), antialias)


def resample_windows(out: Samples, x: Samples, windows: Windows, antialias: bool) -> None:
    """`resample` with the arrays of `Windows`, in the form of `broadcast_to`."""
    found: Any = _describe(out.shapes, x.shapes, *windows[:4])
    has_empty_results, empty, nearest, others, rgb, whole = found
    if has_empty_results:
        _resample_some(out, x, windows, antialias, all_of(out.shapes, 1))
        return
    if empty >= 0:
        shape = tuple(x.shapes[empty].tolist())
        raise ShapeError(f"an empty image with shape {shape} cannot be resampled.", sample=empty)
    if nearest != _NONE and out.dtype == x.dtype:
        if nearest == _ALL:
            gather_nearest(out, contiguous(x), windows.start, windows.end, windows.parts)
            return
        is_nearest = (windows.min_filter == _NEAREST) & (windows.mag_filter == _NEAREST)
        for some in (is_nearest, ~is_nearest):
            _resample_some(out, x, windows, antialias, some)
        return
    if x.dtype in _DIRECT_TYPES and out.dtype in (np.float32, x.dtype):
        _resample_all(out, x, windows, antialias, others, rgb, whole)
        return

    def fill(target: Samples, source: Samples, numbers: np.ndarray) -> None:
        some = windows.take(numbers)
        found: Any = _describe(target.shapes, source.shapes, *some[:4])
        _resample_all(target, source, some, antialias, *found[3:])
        if out.dtype.kind in "iu":
            others = True if found[3] else None
            round_to_even(*target.compiled, source.shapes, *some, antialias, others, 16 // out.dtype.itemsize)

    in_float32(out, x, fill)


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _describe(out_shapes, x_shapes, start, end, min_filter, mag_filter):
    """Return the properties of a chunk that determine which functions resample it.

    Returns:
        whether there are results without pixels; the first source without pixels, or -1; how many samples have only
        nearest-neighbor filters (`_NONE`, `_SOME` or `_ALL`); whether there are filters other than linear and
        triangular; how many results are RGB and at least four pixels wide; how many do not change along the first axis.
    """
    count, ndim = out_shapes.shape
    has_empty_results, empty, has_others, nearest, rgb, whole = False, -1, False, 0, 0, 0
    for n in range(count):
        for axis in range(ndim):
            has_empty_results |= out_shapes[n, axis] == 0
            if x_shapes[n, axis] == 0 and empty < 0:
                empty = n
        smaller, larger = min_filter[n], mag_filter[n]
        nearest += smaller == _NEAREST and larger == _NEAREST
        has_others |= smaller != _LINEAR and smaller != _TRIANGULAR
        has_others |= larger != _LINEAR and larger != _TRIANGULAR
        rgb += out_shapes[n, ndim - 1] == 3 and out_shapes[n, ndim - 2] >= _LANES
        depth = out_shapes[n, 0]
        whole += x_shapes[n, 0] == depth and start[n, 0] == 0 and end[n, 0] == depth
    nearest = (nearest > 0) * (1 + (nearest == count))
    rgb = (rgb > 0) * (1 + (rgb == count))
    whole = (whole > 0) * (1 + (whole == count))
    return has_empty_results, empty, nearest, has_others, rgb, whole


def _resample_some(out: Samples, x: Samples, windows: Windows, antialias: bool, chosen: np.ndarray) -> None:
    at = np.flatnonzero(chosen)
    try:
        resample_windows(out.take(at), x.take(at), windows.take(at), antialias)
    except ShapeError as error:
        error.sample = int(at[error.sample or 0])
        raise


@lru_cache(64)
def linear(count: int) -> np.ndarray:
    """Return the default filters of `count` samples, int32 [count]. Do not modify them: they are cached."""
    return np.full(count, _LINEAR, np.int32)


def has_others(*filters: np.ndarray) -> bool | None:
    """Return True, or None if all filters are linear or triangular, for `axis_taps`."""
    for kinds in filters:
        if all_of((kinds == _LINEAR) | (kinds == _TRIANGULAR)):
            continue
        return True
    return None


def _resample_all(
    out: Samples,
    x: Samples,
    windows: Windows,
    antialias: bool,
    has_others: bool,
    rgb: int,
    whole: int,
) -> None:
    """Resample samples that have pixels, volumes along their depth first; see `_describe` for the last arguments."""
    rgb = rgb if out.dtype == np.uint8 else _NONE
    whole = whole if x.ndim == 4 else _ALL
    if _SOME in (rgb, whole):
        if rgb == _SOME:
            chosen = (out.extents(-1) == 3) & (out.extents(-2) >= _LANES)
        else:
            depth = out.extents(0)
            chosen = (x.extents(0) == depth) & (windows.start[:, 0] == 0) & (windows.end[:, 0] == depth)
        for kind, at in ((_ALL, np.flatnonzero(chosen)), (_NONE, np.flatnonzero(~chosen))):
            kinds = (kind, whole) if rgb == _SOME else (rgb, kind)
            _resample_all(out.take(at), x.take(at), windows.take(at), antialias, has_others, *kinds)
        return
    others = True if has_others else None
    if whole == _NONE:
        x = contiguous(x)
        blended = Samples.empty(np.column_stack([out.extents(0), x.shapes[:, 1:]]), np.dtype(np.float32))
        edges = np.ascontiguousarray(windows.start[:, 0]), np.ascontiguousarray(windows.end[:, 0])
        _blend_slices(*blended.compiled, *x.compiled, *edges, *windows[2:4], antialias, others)
        x = blended
    options = antialias, None if rgb == _ALL else True, others
    if x.ndim == 4:
        strides = x.steps() if x.strides is None else x.strides
        _separable_slices(*out.compiled, *x.compiled, strides, *windows[:4], *options)
    else:
        pitches = x.shapes[:, 1] * x.shapes[:, 2] if x.strides is None else x.strides[:, 0].copy()
        separable(*out.compiled, *x.compiled, pitches, *windows, *options)


@njit(nogil=True, inline="always")
def _as_byte(value):
    """Return a value in the range of an int32 as uint8, truncated and saturated."""
    value = value if value > 0 else np.float32(0)
    value = value if value < 255 else np.float32(255)
    return np.uint8(np.int32(value))


def _store(target, row, first_even, last_even):
    """Convert a row of float32 to the dtype of the output."""


@overload(_store)
def _store_overload(target, row, first_even, last_even):
    if target.dtype == numba_types.uint8:

        def store_uint8(target, row, first_even, last_even):
            for j in range(target.size):
                target[j] = _as_byte(np.rint(row[j]))
            for j in range(first_even):
                target[j] = _as_byte(row[j] + np.float32(0.5))
            for j in range(last_even, target.size):
                target[j] = _as_byte(row[j] + np.float32(0.5))

        return store_uint8

    def store_float(target, row, first_even, last_even):
        for j in range(target.size):
            target[j] = row[j]

    return store_float


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _blend(target, x, row, weights, left):
    """Set `target` to the weighted sum of the rows of `x` from `row` on, starting at column `left`."""
    columns, pitch = target.size, np.uintp(x.shape[1] * x.itemsize)
    source = np.uintp(x.ctypes.data) + np.uintp(row) * pitch + np.uintp(left * x.itemsize)
    rows, weights_at, target_at = np.uintp(weights.size), np.uintp(weights.ctypes.data), np.uintp(target.ctypes.data)
    if columns >= WIDE:
        for block in range(0, columns, WIDE):
            j = np.uintp(smaller_of(block, columns - WIDE))  # the last one may overlap
            source_at = source + j * np.uintp(x.itemsize)
            wide_sum_of_rows(source_at, pitch, weights_at, rows, target_at + j * np.uintp(_FLOAT_BYTES), x)
    else:
        for j in range(columns):
            at = np.uintp(j)
            source_at = source + at * np.uintp(x.itemsize)
            sum_of_rows(source_at, pitch, weights_at, rows, target_at + at * np.uintp(_FLOAT_BYTES), x)


@njit(nogil=True, cache=True)
def _blend_slices(
    out_at, out_shapes, out_like, x_at, x_shapes, x_like, start, end, min_filter, mag_filter, antialias, others
):
    """Resample the first axis of volumes [D, H, W, C] into float32 [d, H, W, C]."""
    for n in range(len(out_at)):
        size, depth = out_shapes[n, 0], x_shapes[n, 0]
        pixels = x_shapes[n, 1] * x_shapes[n, 2] * x_shapes[n, 3]
        out = array_at(out_at[n], (size, pixels), out_like)
        x = array_at(x_at[n], (depth, pixels), x_like)
        is_row = np.bool_(True)  # numba would compile `new_taps` again for a literal
        _, first, weights = new_taps(
            depth, size, np.int64(0), size, start[n], end[n], min_filter[n], mag_filter[n], antialias, is_row,
            not is_row, others,
        )  # fmt: skip
        for i in range(size):
            _blend(out[i], x, first[i], weights[i], 0)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"}, no_cpython_wrapper=True)
def _filter_row(row, blended, first, weights, channels):
    """Filter one row of any number of channels horizontally."""
    for i in range(first.size):
        for c in range(channels):
            total = np.float32(0)
            at = first[i] * channels + c
            for k in range(weights.shape[1]):
                total += weights[i, k] * blended[at + k * channels]
            row[i * channels + c] = total


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _filter_pixels(scratch_address, weights_address, row_address, first_column, pairs, step):
    """Filter one row with three or four channels horizontally; with three, each pixel overwrites the last lane."""
    weights_step = pairs * np.uintp(2 * _FLOAT_BYTES)
    # Common numbers of taps, for scales of at least 1/3, need no inner loop.
    if pairs == np.uintp(1):
        for j in range(first_column.size):
            weighted_sum_of_two_taps(
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                step,
                row_address + np.uintp(j) * step,
            )
    elif pairs == np.uintp(2):
        for j in range(first_column.size):
            weighted_sum_of_four_taps(
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                step,
                row_address + np.uintp(j) * step,
            )
    elif pairs == np.uintp(3):
        for j in range(first_column.size):
            weighted_sum_of_six_taps(
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                step,
                row_address + np.uintp(j) * step,
            )
    else:
        for j in range(first_column.size):
            weighted_sum_of_four(
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                pairs,
                step,
                row_address + np.uintp(j) * step,
            )


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _filter_values(row_address, scratch_address, offsets_address, blocks_address, width, pairs):
    """Filter one row with one channel horizontally; at least four columns."""
    block_bytes = pairs * np.uintp(2 * _LANES * _FLOAT_BYTES)
    for block in range((width + 3) // 4):
        j = np.uintp(4 * block if 4 * block < width - 4 else width - 4)
        filter_four_values(
            scratch_address,
            offsets_address + j * np.uintp(8),
            blocks_address + np.uintp(block) * block_bytes,
            pairs,
            row_address + j * np.uintp(_FLOAT_BYTES),
        )


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _transpose_weights(blocks, weights):
    """Fill [blocks of four columns, taps, 4 columns] with weights [columns, taps]; the last block may overlap."""
    columns, at = weights.shape[0], 0
    for block in range(0, columns, 4):
        first = smaller_of(block, columns - 4)
        for k in range(weights.shape[1]):
            for p in range(4):
                blocks[at] = weights[first + p, k]
                at += 1


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _repeat_weights(blocks, weights, taps, first_even, last_even):
    """Fill [blocks of four pixels, taps, 4 pixels, 4 equal] with weights [pixels, taps]; the last block may overlap.

    `first_even` and `last_even` are those of `even_range`. The weights of values outside of this range are slightly
    larger, so that halves are rounded up.
    """
    pixels, at = weights.shape[0], 0
    for block in range(0, pixels, 4):
        first = smaller_of(block, pixels - 4)
        for k in range(taps):
            for p in range(4):
                for c in range(4):
                    is_even = first_even <= 3 * (first + p) + c < last_even
                    blocks[at] = weights[first + p, k] * (np.float32(1) if is_even else _ABOVE_ONE)
                    at += 1


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _filter_bytes(out, blended, offsets, blocks, taps):
    """Filter one row of RGB horizontally into uint8; at least four pixels."""
    width = offsets.size
    source, target = np.uintp(blended.ctypes.data), np.uintp(out.ctypes.data)
    offsets_at, weights_at = np.uintp(offsets.ctypes.data), np.uintp(blocks.ctypes.data)
    for b in range((width + 3) // 4):
        j = np.uintp(smaller_of(4 * b, width - 4))
        blend_four_pixels(
            source,
            offsets_at + j * np.uintp(offsets.itemsize),
            weights_at + np.uintp(b) * taps * np.uintp(16 * _FLOAT_BYTES),
            taps,
            target + j * np.uintp(3),
        )


@njit(nogil=True, cache=True)
def separable(
    out_at,
    out_shapes,
    out_like,
    x_at,
    x_shapes,
    x_like,
    x_pitches,
    start,
    end,
    min_filter,
    mag_filter,
    parts,
    antialias,
    is_general,
    others,
):
    """Resample images [H, W, C] into [h, w, C].

    `x_pitches` contains the distances of rows of `x` in elements. For `start` to `parts`, see `Windows`.

    `is_general` is True, or None if `out` is RGB of uint8, at least four pixels wide; `others` is `has_others` of
    `axis_taps`. For None, numba omits code, which halves the compile time.
    """
    if is_general is not None:  # tables may be used for several samples
        taps, first_row, row_weights = np.int64(0), new_array((0,), np.int64), new_array((0, 0), np.float32)
        first_column, offsets, column_weights = first_row, first_row, row_weights
        scratch = blocks = new_array((0,), np.float32)
        left = columns = first_even = last_even = np.int64(0)
    for n in range(len(out_at)):
        height, width, channels = out_shapes[n, 0], out_shapes[n, 1], out_shapes[n, 2]
        out = array_at(out_at[n], (height, width * channels), out_like)
        # The last row of a window may be shorter than this array; only the columns of the image are read.
        x = array_at(x_at[n], (x_shapes[n, 0], x_pitches[n]), x_like)
        is_new = True
        # Slices of a volume and frames of a video have the same tables.
        if is_general is not None:  # noqa: SIM102 -- alone: what numba leaves out is decided by None only
            if n > 0:
                is_new = min_filter[n] != min_filter[n - 1] or mag_filter[n] != mag_filter[n - 1]
                is_new |= out_shapes[n, 2] != out_shapes[n - 1, 2]
                for axis in range(2):
                    is_new |= (
                        out_shapes[n, axis] != out_shapes[n - 1, axis] or x_shapes[n, axis] != x_shapes[n - 1, axis]
                    )
                    is_new |= start[n, axis] != start[n - 1, axis] or end[n, axis] != end[n - 1, axis]
                    is_new |= place_in_whole(parts, n, axis, 0) != place_in_whole(parts, n - 1, axis, 0)
        if is_new:
            smaller, larger, is_row = (
                min_filter[n],
                mag_filter[n],
                np.bool_(True),
            )  # a literal would be compiled separately
            rows, top = place_in_whole(parts, n, 0, height)
            whole, begin = place_in_whole(parts, n, 1, width)
            _, first_row, row_weights = new_taps(
                x_shapes[n, 0], rows, top, height, start[n, 0], end[n, 0], smaller, larger, antialias, is_row,
                not is_row, others,
            )  # fmt: skip
            taps, first_column, column_weights = new_taps(
                x_shapes[n, 1], whole, begin, width, start[n, 1], end[n, 1], smaller, larger, antialias, not is_row,
                is_row, others,
            )  # fmt: skip
            first_even, last_even = even_range(
                (rows, whole, channels), (begin, width), x_shapes[n, 1], start[n], end[n], smaller, larger, antialias,
                others, 16,
            )  # fmt: skip
            left = right = first_column[0]
            for j in range(width):
                left = smaller_of(first_column[j], left)
                right = larger_of(first_column[j], right)
            columns = right + taps - left
            offsets = new_array((width,), np.int64)
            for j in range(width):
                first_column[j] -= left
                offsets[j] = first_column[j] * (channels * _FLOAT_BYTES)
            # After the last column, a tap with weight 0, if the number of taps is odd, and the last vector are read.
            scratch = new_array(((columns + 1) * channels + _LANES,), np.float32)
            for j in range(columns * channels, scratch.size):
                scratch[j] = 0
            if is_general is not None:  # noqa: SIM102 -- alone: what numba leaves out is decided by None only
                if channels == 1 and width >= _LANES:
                    blocks = new_array(((width + 3) // 4 * 4 * column_weights.shape[1],), np.float32)
                    _transpose_weights(blocks, column_weights)
        blended = scratch[: columns * channels]
        if is_general is None:
            blocks = new_array(((width + 3) // 4 * taps * 16,), np.float32)
            _repeat_weights(blocks, column_weights, taps, first_even, last_even)
            for i in range(height):
                _blend(blended, x, first_row[i], row_weights[i], left * channels)
                _filter_bytes(out[i], scratch, offsets, blocks, np.uintp(taps))
        else:
            row = new_array((width * channels + _LANES,), np.float32)
            step, pairs = np.uintp(channels * _FLOAT_BYTES), np.uintp(column_weights.shape[1] // 2)
            scratch_address, row_address = np.uintp(scratch.ctypes.data), np.uintp(row.ctypes.data)
            weights_address = np.uintp(column_weights.ctypes.data)
            offsets_address, blocks_address = np.uintp(offsets.ctypes.data), np.uintp(blocks.ctypes.data)
            for i in range(height):
                _blend(blended, x, first_row[i], row_weights[i], left * channels)
                if channels == 3 or channels == 4:
                    _filter_pixels(scratch_address, weights_address, row_address, first_column, pairs, step)
                elif channels == 1 and width >= _LANES:  # grayscale images and most volumes
                    _filter_values(row_address, scratch_address, offsets_address, blocks_address, width, pairs)
                else:
                    _filter_row(row, scratch, first_column, column_weights, channels)
                _store(out[i], row, first_even, last_even)


@njit(nogil=True, cache=True)
def _separable_slices(
    out_at, out_shapes, out_like, x_at, x_shapes, x_like, x_strides, start, end, min_filter, mag_filter,
    antialias, is_general, others,
):  # fmt: skip
    """Call `separable` for the slices of volumes of equal depths; `x_strides` is int64 [N, 4], in elements."""
    count = 0
    for n in range(len(out_at)):
        count += out_shapes[n, 0]
    targets, sources = new_array((count,), np.int64), new_array((count,), np.int64)
    pitches = new_array((count,), np.int64)
    target_shapes, source_shapes = new_array((count, 3), np.int64), new_array((count, 3), np.int64)
    first, last = new_array((count, 2), np.float32), new_array((count, 2), np.float32)
    smaller, larger = new_array((count,), np.int32), new_array((count,), np.int32)
    parts = new_array((0, 4), np.int64)
    at = 0
    for n in range(len(out_at)):
        out_step = out_shapes[n, 1] * out_shapes[n, 2] * out_shapes[n, 3] * out_like.itemsize
        for i in range(out_shapes[n, 0]):
            targets[at], sources[at] = out_at[n] + i * out_step, x_at[n] + i * x_strides[n, 0] * x_like.itemsize
            pitches[at] = x_strides[n, 1]
            for axis in range(3):
                target_shapes[at, axis], source_shapes[at, axis] = out_shapes[n, axis + 1], x_shapes[n, axis + 1]
            for axis in range(2):
                first[at, axis], last[at, axis] = start[n, axis + 1], end[n, axis + 1]
            smaller[at], larger[at] = min_filter[n], mag_filter[n]
            at += 1
    separable(
        targets, target_shapes, out_like, sources, source_shapes, x_like, pitches, first, last, smaller, larger,
        parts, antialias, is_general, others,
    )  # fmt: skip
