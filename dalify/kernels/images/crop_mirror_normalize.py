"""Fused crop, mirror, mean subtraction, division by the standard deviation and transpose.

The result has four times as many bytes as the input; separate steps would access it several times.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.extremes import larger_of, smaller_of
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import store_joined
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.arrays.joined import blocks, split
from dalify.kernels.arrays.simd import split_sixteen_mirrored_pixels, split_sixteen_pixels

PIXELS = 16
_CHANNELS = 3
_FLOAT_BYTES = 4
# Indices are unsigned, because numba tests whether signed indices are negative.
_ONE, _TWO, _THREE = np.uintp(1), np.uintp(2), np.uintp(3)
_NATIVE = (np.uint8, np.float32, np.int16, np.uint16, np.int32)  # other dtypes are converted first


def crop_mirror_normalize(
    out: Samples,
    x: Samples,
    start: np.ndarray,
    *,
    mirror: np.ndarray,
    mean: np.ndarray,
    multiplier: np.ndarray,
    shift: float = 0.0,
    fill_values: np.ndarray,
    is_planar: bool = True,
) -> None:
    """Set ``out = (window of x - mean) * multiplier + shift``, computed in float32.

    Args:
        out: N samples [C', d, h, w] if `is_planar`, else [d, h, w, C'], any numeric dtype, output; C' >= C. Integers
            are rounded half away from zero and saturated.
        x: N samples [D, H, W, C], any numeric dtype; images have D = 1. C is the same for all.
        start: int [N, 3], start of the windows in D, H, W; their extents are those of `out`. Windows may exceed `x`.
        mirror: [N], non-zero: reverse the W axis of the window.
        mean: float [N, C] or [C], in units of `x`.
        multiplier: float [N, C] or [C]: scale / standard deviation.
        shift: added at the end.
        fill_values: float [C'], value of `out` outside `x` and in channels that `x` does not have.
        is_planar: whether channels precede the spatial axes in `out`.
    """
    if not len(x):
        return
    samples, channels = len(x), int(x.shapes[0, 3])
    source = x if x.dtype in _NATIVE else x.converted(np.dtype(np.float32))
    starts, mirrors = broadcast_to(start, (samples, 3), np.int64), np.array(mirror, np.bool_)
    means = broadcast_to(mean, (samples, channels), np.float32)
    multipliers = broadcast_to(multiplier, (samples, channels), np.float32)
    shifted, fill_values = np.float32(shift), np.array(fill_values, np.float32)
    if is_planar and source.dtype == np.uint8 and _are_inner_rgb(out.shapes, source.shapes, starts):
        kernel: Any = _normalize_inner_rgb
    elif is_planar:
        kernel = partial(_normalize_planes, None if source.dtype == np.uint8 else True)
    else:
        kernel = _interleaved
    if out.dtype == np.float32:
        kernel(*out.compiled, *source.compiled, starts, mirrors, means, multipliers, shifted, fill_values)
        return
    # As many samples at a time as fit into the CPU cache in float32.
    sizes = np.multiply.reduce(out.shapes, 1)
    for numbers in blocks(sizes, 1 << 17):
        target, part = out.take(numbers), source.take(numbers)
        values = np.empty(int(sizes[numbers].sum()), np.float32)
        own = starts[numbers], mirrors[numbers], means[numbers], multipliers[numbers]
        kernel(*split(values, target.shapes).compiled, *part.compiled, *own, shifted, fill_values)
        store_joined(target, values)


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _are_inner_rgb(out_shapes, x_shapes, start):
    """Return whether `normalize_rgb` can compute all samples, which are uint8."""
    for n in range(out_shapes.shape[0]):
        if x_shapes[n, 3] != _CHANNELS or out_shapes[n, 0] != _CHANNELS or out_shapes[n, 3] < PIXELS:
            return False
        for axis in range(3):
            if start[n, axis] < 0 or start[n, axis] + out_shapes[n, axis + 1] > x_shapes[n, axis]:
                return False
    return True


def _normalize_inner_rgb(
    out_at: np.ndarray,
    out_shapes: np.ndarray,
    out_like: np.ndarray,
    x_at: np.ndarray,
    x_shapes: np.ndarray,
    x_like: np.ndarray,
    *arguments: Any,
) -> None:
    normalize_rgb(out_at, out_shapes, x_at, x_shapes, *arguments[:-1])


# Separate, because nearly all pipelines need only this function, and it compiles in a third of the time.
@njit(nogil=True, cache=True)
def normalize_rgb(out_at, out_shapes, x_at, x_shapes, start, mirror, mean, multiplier, shift):
    """Normalize RGB images of uint8 into three float32 planes, at least 16 pixels wide; no window exceeds its image.

    See `crop_mirror_normalize` for the arguments.
    """
    means, multipliers = np.uintp(mean.ctypes.data), np.uintp(multiplier.ctypes.data)
    for n in range(out_at.size):
        depth, height, width = out_shapes[n, 1], out_shapes[n, 2], out_shapes[n, 3]
        row_bytes, target = np.uintp(_FLOAT_BYTES * width), np.uintp(out_at[n])
        plane_bytes = row_bytes * np.uintp(depth * height)
        own = np.uintp(n * (_CHANNELS * _FLOAT_BYTES))
        for d in range(depth):
            slice_start = (start[n, 0] + d) * x_shapes[n, 1] + start[n, 1]
            for i in range(height):
                pixel = (slice_start + i) * x_shapes[n, 2] + start[n, 2]
                source = np.uintp(x_at[n] + _CHANNELS * pixel)
                _split_bytes(target, plane_bytes, source, width, means + own, multipliers + own, shift, mirror[n])
                target += row_bytes


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _overlap(start, size, extent):
    """Return the part [first, last) of a window of `size` that is inside `extent` pixels."""
    first = smaller_of(larger_of(-start, 0), size)
    return first, larger_of(smaller_of(extent - start, size), first)


@njit(nogil=True, cache=True)
def _normalize_planes(
    has_wide_elements,
    out_at,
    out_shapes,
    out_like,
    x_at,
    x_shapes,
    x_like,
    start,
    mirror,
    mean,
    multiplier,
    shift,
    fill,
):
    """Normalize into planes; see `crop_mirror_normalize` for the arguments.

    `has_wide_elements` is True, or None for uint8, for which numba then omits the code that it does not need.
    """
    channels = mean.shape[1]
    for n in range(len(out_at)):
        out_channels, depth, height, width = out_shapes[n, 0], out_shapes[n, 1], out_shapes[n, 2], out_shapes[n, 3]
        out = array_at(out_at[n], (out_channels, depth, height, width), out_like)
        x = array_at(x_at[n], (x_shapes[n, 0], x_shapes[n, 1], x_shapes[n, 2] * channels), x_like)
        plane_bytes = np.uintp(_FLOAT_BYTES * depth * height * width)
        z0, y0, x0 = start[n, 0], start[n, 1], start[n, 2]
        left, right = _overlap(x0, width, x_shapes[n, 2])
        begin, end = (width - right, width - left) if mirror[n] else (left, right)
        for d in range(depth):
            for i in range(height):
                is_inside = 0 <= z0 + d < x.shape[0] and 0 <= y0 + i < x.shape[1] and begin < end
                for c in range(out_channels):
                    is_kept = is_inside and c < channels
                    _surround(out[c, d, i], begin if is_kept else 0, end if is_kept else 0, fill[c])
                if not is_inside:
                    continue
                pixels = x[z0 + d, y0 + i, (x0 + left) * channels : (x0 + right) * channels]
                if x.itemsize == 1 and channels == 3 and end - begin >= PIXELS:
                    red = np.uintp(out[0, d, i].ctypes.data) + np.uintp(_FLOAT_BYTES * begin)
                    source, own = np.uintp(pixels.ctypes.data), np.uintp(n * (_CHANNELS * _FLOAT_BYTES))
                    means, multipliers = np.uintp(mean.ctypes.data) + own, np.uintp(multiplier.ctypes.data) + own
                    _split_bytes(red, plane_bytes, source, end - begin, means, multipliers, shift, mirror[n])
                    continue
                if has_wide_elements is not None:  # noqa: SIM102 -- alone: what numba omits is decided by None only
                    if channels == 3:
                        red, green, blue = out[0, d, i, begin:end], out[1, d, i, begin:end], out[2, d, i, begin:end]
                        _split_pixels(red, green, blue, pixels, mean[n], multiplier[n], shift)
                        if mirror[n]:
                            for c in range(3):
                                _reverse(out[c, d, i, begin:end])
                        continue
                for c in range(channels):
                    target = out[c, d, i, begin:end]
                    _take_channel(target, pixels, c, channels, mean[n, c], multiplier[n, c], shift, mirror[n])


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _surround(target, begin, end, value):
    """Set a row to a value, except for [begin, end)."""
    for j in range(begin):
        target[j] = value
    for j in range(end, target.size):
        target[j] = value


@njit(nogil=True, inline="always")
def _split_bytes(red, plane_bytes, source, width, means, multipliers, shift, is_mirrored):
    """Normalize at least 16 RGB pixels of uint8 into three rows; the last 16 may overlap the previous ones.

    All arguments but `width`, `shift` and `is_mirrored` are addresses, or sizes in bytes, as ``uintp``.
    """
    for block in range(0, width, PIXELS):
        j = smaller_of(block, width - PIXELS)
        at = source + np.uintp(3 * j)
        to = red + np.uintp(_FLOAT_BYTES * (width - PIXELS - j if is_mirrored else j))
        if is_mirrored:
            split_sixteen_mirrored_pixels(
                at, means, multipliers, shift, to, to + plane_bytes, to + plane_bytes + plane_bytes
            )
        else:
            split_sixteen_pixels(at, means, multipliers, shift, to, to + plane_bytes, to + plane_bytes + plane_bytes)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _split_pixels(red, green, blue, pixels, mean, multiplier, shift):
    """Normalize interleaved pixels of three channels into three rows."""
    m0, m1, m2 = mean[0], mean[1], mean[2]
    s0, s1, s2 = multiplier[0], multiplier[1], multiplier[2]
    for j in range(red.size):  # one loop, so that the three values of a pixel are loaded together
        at = _THREE * np.uintp(j)
        red[j] = (np.float32(pixels[at]) - m0) * s0 + shift
        green[j] = (np.float32(pixels[at + _ONE]) - m1) * s1 + shift
        blue[j] = (np.float32(pixels[at + _TWO]) - m2) * s2 + shift


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _take_channel(target, pixels, channel, channels, mean, multiplier, shift, is_mirrored):
    """Normalize one of several interleaved channels."""
    at, step = np.uintp(channel), np.uintp(channels)
    if is_mirrored:
        at, step = at + np.uintp(channels * (target.size - 1)), np.uintp(0) - step  # wraps around
    if channels > 1:
        for j in range(target.size):
            target[j] = (np.float32(pixels[at + np.uintp(j) * step]) - mean) * multiplier + shift
    elif is_mirrored:
        for j in range(target.size):
            target[j] = (np.float32(pixels[at - np.uintp(j)]) - mean) * multiplier + shift
    else:
        for j in range(target.size):
            target[j] = (np.float32(pixels[j]) - mean) * multiplier + shift


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _reverse(row):
    """Reverse a row in place."""
    last = np.uintp(row.size - 1)
    for j in range(row.size // 2):
        row[j], row[last - np.uintp(j)] = row[last - np.uintp(j)], row[j]


@njit(nogil=True, cache=True)
def _interleaved(out_at, out_shapes, out_like, x_at, x_shapes, x_like, start, mirror, mean, multiplier, shift, fill):
    channels = mean.shape[1]
    for n in range(len(out_at)):
        depth, height, width, out_channels = out_shapes[n, 0], out_shapes[n, 1], out_shapes[n, 2], out_shapes[n, 3]
        out = array_at(out_at[n], (depth, height, width, out_channels), out_like)
        x = array_at(x_at[n], (x_shapes[n, 0], x_shapes[n, 1], x_shapes[n, 2], channels), x_like)
        means, multipliers, row = (
            np.empty(width * channels, np.float32),
            np.empty(width * channels, np.float32),
            np.empty(width * channels, np.float32),
        )
        z0, y0, x0 = start[n, 0], start[n, 1], start[n, 2]
        left, right = _overlap(x0, width, x.shape[2])
        for j in range(width):
            for c in range(channels):
                means[j * channels + c] = mean[n, c]
                multipliers[j * channels + c] = multiplier[n, c]
        for d in range(depth):
            for i in range(height):
                target = out[d, i]
                is_inside = 0 <= z0 + d < x.shape[0] and 0 <= y0 + i < x.shape[1] and left < right
                if not is_inside or right - left < width or channels < out_channels:
                    for j in range(width):
                        target[j] = fill
                    if not is_inside:
                        continue
                pixels = x[z0 + d, y0 + i, x0 + left : x0 + right].reshape(-1)
                if channels == out_channels and not mirror[n]:
                    values = target.reshape(-1)[left * channels : right * channels]
                else:
                    values = row
                for j in range(pixels.size):
                    values[j] = (np.float32(pixels[j]) - means[j]) * multipliers[j] + shift
                if channels < out_channels or mirror[n]:
                    for j in range(left, right):
                        column = width - 1 - j if mirror[n] else j
                        for c in range(channels):
                            target[column, c] = row[(j - left) * channels + c]
