"""Resample images and volumes through a window, on the CPU.

The hottest kernel of image training. Both passes of a separable filter run row by row: the source rows of one output
row are blended into a scratch row that stays in the first-level cache, and that row is filtered horizontally at once.
Only columns and rows that the window needs are read. Sums are float32; the result is rounded once.
"""

from __future__ import annotations

import numpy as np
from numba import types as numba_types
from numba.extending import overload

from dalify.base.compiling import njit
from dalify.base.errors import ShapeError
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.convert import saturate_cast
from dalify.kernels.frozen import read_only, spread
from dalify.kernels.lanes import (
    blend_four_pixels,
    weighted_sum_of_four,
    weighted_sum_of_four_taps,
    weighted_sum_of_six_taps,
    weighted_sum_of_two_taps,
)
from dalify.kernels.resample_filters import axis_taps, choose_filter, filter_radius, tap_count

__all__ = ["resample"]

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)
_LANES = 4
_FLOAT_BYTES = 4


def resample(
    out: np.ndarray,
    x: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    *,
    min_filter: np.ndarray | int = _LINEAR,
    mag_filter: np.ndarray | int = _LINEAR,
    antialias: bool = True,
) -> None:
    """Resample the window [start, end) of each sample to the size of `out`.

    See `dalify.kernels.resample_filters` for the formulas. Pixels around the window are read by wide filters; beyond
    the image its border repeats.

    Args:
        out: [N, h, w, C] or [N, d, h, w, C], to fill, any numeric dtype; integers are rounded half away from zero and
            saturated.
        x: [N, H, W, C] or [N, D, H, W, C], any numeric dtype, no axis empty. uint8 and float32 are fast; others pass
            through float32.
        start: float [N, 2] or [N, 3], finite: where the window begins in pixel edges, in the order of the axes.
        end: like `start`: where it ends. An end before the start mirrors that axis.
        min_filter: DALIInterpType, or int array [N] of them, for axes that shrink.
        mag_filter: the same for axes that do not.
        antialias: widen filters with the scale of a reduction.
    """
    if not out.size:
        return
    if not x.size:
        raise ShapeError(f"an image without pixels, of shape {x.shape[1:]}, cannot be resampled.")
    samples = len(x)
    begin = spread(start, (samples, x.ndim - 2), np.float32)
    stop = spread(end, (samples, x.ndim - 2), np.float32)
    minify = spread(min_filter, (samples,), np.int32)
    magnify = spread(mag_filter, (samples,), np.int32)
    if (
        samples
        and out.dtype == x.dtype
        and minify[0] == _NEAREST
        and (minify == _NEAREST).all()
        and (magnify == _NEAREST).all()
    ):
        _gather_nearest(out, x, begin, stop)
        return
    source = read_only(x if x.dtype in (np.uint8, np.float32) else x.astype(np.float32))
    if x.ndim == 5:
        _resample_volumes(out, source, begin, stop, minify, magnify, antialias)
    else:
        _resample_images(out, source, begin, stop, minify, magnify, antialias)


def _resample_images(
    out: np.ndarray,
    x: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    min_filter: np.ndarray,
    mag_filter: np.ndarray,
    antialias: bool,
) -> None:
    samples, height, width, channels = out.shape
    direct = (
        out.flags.c_contiguous
        and out.dtype in (np.float32, np.uint8)
        and (out.dtype == np.uint8) <= (x.dtype == np.uint8)
    )
    target = out if direct else np.empty(out.shape, np.float32)
    is_rgb_bytes = target.dtype == np.uint8 and channels == 3 and width >= 4
    _separable(
        target.reshape(samples, height, width * channels),
        x.reshape(*x.shape[:2], -1),
        channels,
        start,
        end,
        min_filter,
        mag_filter,
        antialias,
        None if is_rgb_bytes else True,
    )
    if not direct:
        saturate_cast(out, target)


def _resample_volumes(
    out: np.ndarray,
    x: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    min_filter: np.ndarray,
    mag_filter: np.ndarray,
    antialias: bool,
) -> None:
    depth = out.shape[1]
    for n, volume in enumerate(x):
        windows = [np.repeat(corner[n : n + 1, 1:], depth, axis=0) for corner in (start, end)]
        filters = [np.repeat(kind[n : n + 1], depth) for kind in (min_filter, mag_filter)]
        whole_depth = volume.shape[0] == depth and start[n, 0] == 0 and end[n, 0] == depth
        if whole_depth:
            slices = volume
        else:
            slices = np.empty((depth, *volume.shape[1:]), np.float32)
            _blend_slices(
                slices.reshape(depth, -1),
                volume.reshape(len(volume), -1),
                start[n, 0],
                end[n, 0],
                min_filter[n],
                mag_filter[n],
                antialias,
            )
        _resample_images(out[n], read_only(slices), windows[0], windows[1], filters[0], filters[1], antialias)


def _gather_nearest(out: np.ndarray, x: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
    """Copy nearest pixels, exactly and in any dtype."""
    axes = x.ndim - 2
    weights = [np.empty((size, 1), np.float32) for size in out.shape[1:-1]]
    for n in range(len(x)):
        indices = []
        for axis in range(axes):
            first = np.empty(out.shape[1 + axis], np.int64)
            axis_taps(
                x.shape[1 + axis],
                start[n, axis],
                end[n, axis],
                _NEAREST,
                np.float32(0),
                axis < axes - 1,
                first,
                weights[axis],
            )
            indices.append(first)
        if axes == 2 and x[n].flags.c_contiguous and out[n].flags.c_contiguous:
            _copy_pixels(
                _as_bytes(out[n]), read_only(_as_bytes(x[n])), out.shape[-1] * out.itemsize, indices[0], indices[1]
            )
        else:
            out[n] = x[n][np.ix_(*indices)]


def _as_bytes(image: np.ndarray) -> np.ndarray:
    return image.view(np.uint8).reshape(image.shape[0], -1)


@njit(nogil=True, cache=True)
def _copy_pixels(out, x, size, rows, columns):
    """Copy pixels of `size` bytes."""
    pixel = np.uintp(size)
    for i in range(rows.size):
        source, target = x[rows[i]], out[i]
        for j in range(columns.size):
            a, b = np.uintp(j) * pixel, np.uintp(columns[j]) * pixel
            if size == 3:  # no loop: RGB is the usual case
                target[a] = source[b]
                target[a + np.uintp(1)] = source[b + np.uintp(1)]
                target[a + np.uintp(2)] = source[b + np.uintp(2)]
            else:
                for k in range(size):
                    target[a + np.uintp(k)] = source[b + np.uintp(k)]


def _store(target, row):
    """Write a row of float32 into one of the output's dtype."""


@overload(_store)
def _store_overload(target, row):
    if target.dtype == numba_types.uint8:

        def store_uint8(target, row):
            for j in range(target.size):
                value = row[j] + np.float32(0.5)
                value = value if value > 0 else np.float32(0)
                value = value if value < 255 else np.float32(255)
                target[j] = np.uint8(np.int32(value))

        return store_uint8

    def store_float(target, row):
        for j in range(target.size):
            target[j] = row[j]

    return store_float


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"}, no_cpython_wrapper=True)
def _blend(target, x, row, weights, left):
    """Set `target` to the weighted sum of the rows of `x` that begin at `row`, from the column `left` on."""
    taps, columns = weights.size, target.size
    right = left + columns
    k = (taps - 1) % 4 + 1
    a = weights[0]
    r = x[row, left:right]
    if k == 1:
        for j in range(columns):
            target[j] = a * np.float32(r[j])
    else:
        b = weights[1]
        s = x[row + 1, left:right]
        if k == 2:
            for j in range(columns):
                target[j] = a * np.float32(r[j]) + b * np.float32(s[j])
        else:
            c = weights[2]
            t = x[row + 2, left:right]
            if k == 3:
                for j in range(columns):
                    target[j] = a * np.float32(r[j]) + b * np.float32(s[j]) + c * np.float32(t[j])
            else:
                d = weights[3]
                u = x[row + 3, left:right]
                for j in range(columns):
                    target[j] = (a * np.float32(r[j]) + b * np.float32(s[j])) + (
                        c * np.float32(t[j]) + d * np.float32(u[j])
                    )
    while k < taps:
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        r, s = x[row + k, left:right], x[row + k + 1, left:right]
        t, u = x[row + k + 2, left:right], x[row + k + 3, left:right]
        for j in range(columns):
            target[j] += (a * np.float32(r[j]) + b * np.float32(s[j])) + (c * np.float32(t[j]) + d * np.float32(u[j]))
        k += 4


@njit(nogil=True, cache=True)
def _blend_slices(out, x, start, end, min_filter, mag_filter, antialias):
    """Resample the first axis of [D, pixels] into float32 [d, pixels]."""
    size = out.shape[0]
    kind = choose_filter(size, start, end, min_filter, mag_filter)
    radius = filter_radius(kind, size, start, end, antialias)
    first = np.empty(size, np.int64)
    weights = np.empty((size, min(tap_count(radius), x.shape[0])), np.float32)
    axis_taps(x.shape[0], start, end, kind, radius, True, first, weights)
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
    """Filter one row of three or four channels horizontally; with three, the next pixel overwrites the fourth lane."""
    weights_step = pairs * np.uintp(2 * _FLOAT_BYTES)
    # The usual numbers of taps, enlarging and shrinking to no less than a third, have no inner loop.
    # The typing context, which pyright misses, is numba's to give.
    if pairs == np.uintp(1):
        for j in range(first_column.size):
            weighted_sum_of_two_taps(  # pyright: ignore[reportCallIssue]
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                step,
                row_address + np.uintp(j) * step,
            )
    elif pairs == np.uintp(2):
        for j in range(first_column.size):
            weighted_sum_of_four_taps(  # pyright: ignore[reportCallIssue]
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                step,
                row_address + np.uintp(j) * step,
            )
    elif pairs == np.uintp(3):
        for j in range(first_column.size):
            weighted_sum_of_six_taps(  # pyright: ignore[reportCallIssue]
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                step,
                row_address + np.uintp(j) * step,
            )
    else:
        for j in range(first_column.size):
            weighted_sum_of_four(  # pyright: ignore[reportCallIssue]
                scratch_address + np.uintp(first_column[j]) * step,
                weights_address + np.uintp(j) * weights_step,
                pairs,
                step,
                row_address + np.uintp(j) * step,
            )


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _repeat_weights(blocks, weights, taps):
    """Fill [blocks of four pixels, taps, 4 pixels, 4 equal] with weights [pixels, taps]; the last block may overlap."""
    pixels, at = weights.shape[0], 0
    for block in range(0, pixels, 4):
        first = block if block < pixels - 4 else pixels - 4
        for k in range(taps):
            for p in range(4):
                for _ in range(4):
                    blocks[at] = weights[first + p, k]
                    at += 1


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _filter_bytes(out, blended, offsets, blocks, taps):
    """Filter one row of RGB horizontally into uint8; at least four pixels."""
    width = offsets.size
    source, target = np.uintp(blended.ctypes.data), np.uintp(out.ctypes.data)
    offsets_at, weights_at = np.uintp(offsets.ctypes.data), np.uintp(blocks.ctypes.data)
    for b in range((width + 3) // 4):
        j = np.uintp(4 * b if 4 * b < width - 4 else width - 4)
        blend_four_pixels(  # pyright: ignore[reportCallIssue] -- the typing context is numba's to give
            source,
            offsets_at + j * np.uintp(offsets.itemsize),
            weights_at + np.uintp(b) * taps * np.uintp(16 * _FLOAT_BYTES),
            taps,
            target + j * np.uintp(3),
        )


@njit(nogil=True, cache=True)
def _separable(out, x, channels, start, end, min_filter, mag_filter, antialias, is_general):
    """Resample [N, H, W * C] into [N, h, w * C].

    `is_general` is True, or None where `out` is RGB of uint8, at least four pixels wide. numba leaves out what None
    rules out: a quarter of the time to compile.
    """
    samples, height = out.shape[:2]
    width = out.shape[2] // channels
    first_row = np.empty(height, np.int64)
    first_column = np.empty(width, np.int64)
    offsets = np.empty(width, np.int64)
    row_weights = column_weights = np.empty((0, 0), np.float32)
    taps = 0
    for n in range(samples):
        for axis in range(2):  # one place of call for both: each is compiled with what it calls
            size, extent = (height, x.shape[1]) if axis == 0 else (width, x.shape[2] // channels)
            kind = choose_filter(size, start[n, axis], end[n, axis], min_filter[n], mag_filter[n])
            radius = filter_radius(kind, size, start[n, axis], end[n, axis], antialias)
            taps = tap_count(radius)
            taps = taps if taps < extent else extent
            weights = np.empty((size, taps if axis == 0 else taps + taps % 2), np.float32)
            first = first_row if axis == 0 else first_column
            axis_taps(extent, start[n, axis], end[n, axis], kind, radius, axis == 0, first, weights)
            if axis == 0:
                row_weights = weights
            else:
                column_weights = weights

        left = right = first_column[0]
        for j in range(width):
            left = first_column[j] if first_column[j] < left else left
            right = first_column[j] if first_column[j] > right else right
        columns = right + taps - left
        for j in range(width):
            first_column[j] -= left
            offsets[j] = first_column[j] * (channels * _FLOAT_BYTES)
        # Beyond the last column: one tap of weight 0 where the number of taps was odd, and what the last vector reads
        # too much.
        scratch = np.empty((columns + 1) * channels + _LANES, np.float32)
        for j in range(columns * channels, scratch.size):
            scratch[j] = 0
        blended = scratch[: columns * channels]
        if is_general is None:
            blocks = np.empty((width + 3) // 4 * taps * 16, np.float32)
            _repeat_weights(blocks, column_weights, taps)
            for i in range(height):
                _blend(blended, x[n], first_row[i], row_weights[i], left * channels)
                _filter_bytes(out[n, i], scratch, offsets, blocks, np.uintp(taps))
        else:
            row = np.empty(width * channels + _LANES, np.float32)
            step, pairs = np.uintp(channels * _FLOAT_BYTES), np.uintp(column_weights.shape[1] // 2)
            scratch_address, row_address = np.uintp(scratch.ctypes.data), np.uintp(row.ctypes.data)
            weights_address = np.uintp(column_weights.ctypes.data)
            for i in range(height):
                _blend(blended, x[n], first_row[i], row_weights[i], left * channels)
                if channels == 3 or channels == 4:
                    _filter_pixels(scratch_address, weights_address, row_address, first_column, pairs, step)
                else:
                    _filter_row(row, scratch, first_column, column_weights, channels)
                _store(out[n, i], row)
