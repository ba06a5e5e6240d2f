"""Resizing, byte-exact with Pillow, of only the requested part of the result.

There are two passes, rows first, each rounded to bytes. `kernels.images.resample` keeps fractions between the passes,
so it differs by one in some pixels. The weights are computed in float64, divided by their sum, and rounded to 22
fractional bits; the support grows with the reduction (antialiasing). Formulas: Pillow's ``Resample.c``, and
``Geometry.c`` for nearest neighbor.

`python -m benchmarks kernels`, one thread on x86-64: resizing a photograph of 500 x 375 pixels to 341 x 256 takes
1 / 3.5 of Pillow's CPU time with the bilinear filter and 1 / 4.4 with the bicubic one. If 224 x 224 pixels of the
result are requested, it takes 1 / 6.6 and 1 / 8.4.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import uintp
from PIL import Image

from dalify.base import scratch
from dalify.base.compiling import njit
from dalify.plugin.pytorch.dropin.kernels.byte_lanes import COLUMNS, FRACTION_BITS, weighted_columns, weighted_pixel

_Array = np.ndarray[Any, Any]
_RGB = 3
_HAMMING_TERMS = float(np.float32(0.54)), float(np.float32(0.46))  # Pillow's constants are float32
_READ_BEYOND = 5  # bytes that the vectors read beyond their last pixel: one pixel with weight 0, and two more


class Window(NamedTuple):
    """The requested part of the resized image, in pixels."""

    y: int
    x: int
    height: int
    width: int


# By name of torchvision's InterpolationMode: a number for compiled code, and half the width of the filter.
_BOX, _BILINEAR, _HAMMING, _BICUBIC, _LANCZOS = range(5)
FILTERS = {
    "box": (_BOX, 0.5),
    "bilinear": (_BILINEAR, 1.0),
    "hamming": (_HAMMING, 1.0),
    "bicubic": (_BICUBIC, 2.0),
    "lanczos": (_LANCZOS, 3.0),
}


@njit(nogil=True, cache=True)
def _sinc(x):
    if x == 0.0:
        return 1.0
    x *= math.pi
    return math.sin(x) / x


@njit(nogil=True, cache=True)
def _weight(kind, x):
    if kind == _BOX:
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    if kind == _LANCZOS:
        return _sinc(x) * _sinc(x / 3) if -3.0 <= x < 3.0 else 0.0
    x = abs(x)
    if kind == _BICUBIC:
        a = -0.5
        if x < 1.0:
            return ((a + 2.0) * x - (a + 3.0)) * x * x + 1
        if x < 2.0:
            return (((x - 5) * x + 8) * x - 4) * a
        return 0.0
    if kind == _HAMMING:
        if x == 0.0 or x >= 1.0:
            return 1.0 if x == 0.0 else 0.0
        x *= math.pi
        return math.sin(x) / x * (_HAMMING_TERMS[0] + _HAMMING_TERMS[1] * math.cos(x))
    return 1.0 - x if x < 1.0 else 0.0


class _Taps(NamedTuple):
    """Start, number and weights of the taps of each output position, padded to an even number.

    `repeated_weights` contains every weight four times, for SIMD.
    """

    starts: _Array
    counts: _Array
    weights: _Array
    repeated_weights: _Array


@lru_cache(maxsize=256)
def _taps(size: int, output_size: int, name: str) -> _Taps:
    kind, half_width = FILTERS[name]
    reduction = max(size / output_size, 1.0)
    length = math.ceil(half_width * reduction) * 2 + 1
    starts, counts = np.zeros(output_size, np.int64), np.zeros(output_size, np.int64)
    weights = np.zeros((output_size, length + length % 2), np.int32)
    _fill_taps(kind, half_width * reduction, size, starts, counts, weights)
    return _Taps(starts, counts, weights, np.repeat(weights, 4, axis=1))


@njit(nogil=True, cache=True)
def _fill_taps(kind, support, size, starts, counts, weights):
    output_size = len(starts)
    scale = size / output_size
    inverse = 1.0 / max(scale, 1.0)
    values = np.zeros(weights.shape[1])
    for position in range(output_size):
        center = (position + 0.5) * scale
        start = max(0, int(center - support + 0.5))
        count = min(size, int(center + support + 0.5)) - start
        total = 0.0
        for tap in range(count):
            values[tap] = _weight(kind, (tap + start - center + 0.5) * inverse)
            total += values[tap]
        for tap in range(count):
            value = values[tap] / total if total != 0.0 else values[tap]
            weights[position, tap] = int(value * (1 << FRACTION_BITS) + (-0.5 if value < 0 else 0.5))
        starts[position] = start
        counts[position] = count


@lru_cache(maxsize=256)
def _nearest(size: int, output_size: int) -> _Array:
    scale = size / output_size
    position, indices = scale * 0.5, []
    for _ in range(output_size):
        indices.append(min(int(position), size - 1))
        position += scale  # accumulated, not multiplied, to reproduce Pillow's rounding errors
    return np.array(indices, np.int64)


def resample(source: _Array, size: tuple[int, int], name: str, window: Window | None = None) -> _Array:
    """Resize an image, or a part of the resized image.

    Args:
        source: uint8 ``[height, width, channels]``, at least one pixel; any strides.
        size: height and width of the whole resized image, at least 1.
        name: ``nearest`` or a key of ``FILTERS``.
        window: the requested part, within `size`; None for the whole image.

    Returns:
        uint8 ``[window height, window width, channels]``, any strides; a view of the source, or of memory that the next
        call in this thread overwrites.

    Example:
        >>> resample(np.full((4, 4, 3), 7, np.uint8), (2, 2), "bilinear")[0, 0].tolist()
        [7, 7, 7]
    """
    window = Window(0, 0, *size) if window is None else window
    rows, columns = slice(window.y, window.y + window.height), slice(window.x, window.x + window.width)
    height, width = source.shape[:2]
    if name == "nearest":
        target = scratch.borrow("pillow nearest", (window.height, window.width, source.shape[2]))
        _gather(source, _nearest(height, size[0])[rows], _nearest(width, size[1])[columns], target)
        return target
    # Passes also run for unchanged sizes near the window borders; they do not change the bytes.
    horizontal, vertical = _taps(width, size[1], name), _taps(height, size[0], name)
    removed_rows, removed_columns = height - size[0], width - size[1]
    if size == (height, width):
        return source[rows, columns]
    if size[1] == width:
        return _resample_columns(source[:, columns], vertical, rows, 0)
    if size[0] == height:
        return _resample_rows(source[rows], horizontal, columns, 0)
    if removed_rows > 0 and removed_rows > 2 * removed_columns and _reduces_height_first():
        first, last = _span(horizontal, columns)
        shortened = _resample_columns(source[:, first:last], vertical, rows, 0)
        return _resample_rows(shortened, horizontal, columns, first)
    first, last = _span(vertical, rows)
    narrowed = _resample_rows(source[first:last], horizontal, columns, 0)
    return _resample_columns(narrowed, vertical, rows, first)


@lru_cache(maxsize=1)
def _reduces_height_first() -> bool:
    """Return whether the installed Pillow starts with the columns if that saves much work, as version 13 does."""
    image = (np.arange(20 * 20) * 37 % 251).astype(np.uint8).reshape(20, 20, 1)
    expected = np.asarray(Image.fromarray(image[..., 0]).resize((30, 9), Image.Resampling.BICUBIC))
    horizontal, vertical = _taps(20, 30, "bicubic"), _taps(20, 9, "bicubic")
    shortened = _resample_columns(image, vertical, slice(0, 9), 0)
    found = _resample_rows(shortened, horizontal, slice(0, 30), 0)
    return bool((found[..., 0] == expected).all())


def _span(taps: _Taps, outputs: slice) -> tuple[int, int]:
    """Return the range of inputs that the requested outputs depend on."""
    return int(taps.starts[outputs.start]), int(taps.starts[outputs.stop - 1] + taps.counts[outputs.stop - 1])


@njit(nogil=True, cache=True)
def _gather(source, rows, columns, target):
    # Unsigned indices need no test for negative values, and three channels need no loop: six times as fast.
    for y in range(len(rows)):
        row, to = source[rows[y]], target[y]
        if source.shape[2] == _RGB:
            for x in range(len(columns)):
                column, source_column = uintp(x), uintp(columns[x])
                to[column, 0] = row[source_column, 0]
                to[column, 1] = row[source_column, 1]
                to[column, 2] = row[source_column, 2]
        else:
            for x in range(len(columns)):
                for channel in range(source.shape[2]):
                    to[uintp(x), channel] = row[uintp(columns[x]), channel]


def _resample_rows(source: _Array, taps: _Taps, columns: slice, offset: int) -> _Array:
    """Filter along x; `source` starts at column `offset` of the image."""
    height, width, channels = source.shape
    if source.strides[1:] != (channels, 1) or source.strides[0] < width * channels:
        source = np.ascontiguousarray(source)
    starts, counts, weights = taps.starts[columns] - offset, taps.counts[columns], taps.weights[columns]
    target = scratch.borrow("pillow rows", (height, _aligned(len(starts) * channels)))
    vector_rows = 0
    if channels == _RGB:
        # The vectors of the last rows would read beyond the image: up to a pixel with weight 0 and two bytes.
        vector_rows = max(0, height - -(-_READ_BEYOND // source.strides[0]))
        _rows_simd(source[:vector_rows], starts, counts, taps.repeated_weights[columns], target)
    _rows_scalar(source[vector_rows:], starts, counts, weights, target[vector_rows:])
    return target[:, : len(starts) * channels].reshape(height, len(starts), channels)


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // COLUMNS) * COLUMNS + COLUMNS


@njit(nogil=True, cache=True)
def _rows_simd(source, starts, counts, weights, target):
    """Filter rows with SIMD; `weights` contains every weight four times."""
    source_address, row_bytes = uintp(source.ctypes.data), uintp(source.strides[0])
    weights_address, weights_bytes = uintp(weights.ctypes.data), uintp(weights.strides[0])
    target_address, target_bytes = uintp(target.ctypes.data), uintp(target.strides[0])
    for y in range(source.shape[0]):
        row = source_address + uintp(y) * row_bytes
        to = target_address + uintp(y) * target_bytes
        for x in range(len(starts)):
            weighted_pixel(
                row + uintp(3 * starts[x]),
                weights_address + uintp(x) * weights_bytes,
                uintp((counts[x] + 1) // 2),
                to + uintp(3 * x),
            )


@njit(nogil=True, cache=True)
def _rows_scalar(source, starts, counts, weights, target):
    channels = source.shape[2]
    for y in range(source.shape[0]):
        for x in range(len(starts)):
            for channel in range(channels):
                total = np.int64(1) << (FRACTION_BITS - 1)
                for tap in range(counts[x]):
                    total += np.int64(source[y, starts[x] + tap, channel]) * weights[x, tap]
                target[y, x * channels + channel] = min(max(total >> FRACTION_BITS, 0), 255)


def _resample_columns(source: _Array, taps: _Taps, rows: slice, offset: int) -> _Array:
    """Filter along y; `source` starts at row `offset` of the image."""
    _, width, channels = source.shape
    row = width * channels
    if source.strides[1:] != (channels, 1) or source.strides[0] < row:
        source = np.ascontiguousarray(source)
    starts, counts, weights = taps.starts[rows] - offset, taps.counts[rows], taps.weights[rows]
    target = scratch.borrow("pillow columns", (len(starts), _aligned(row)))
    _columns_simd(source, starts, counts, weights, target, row)
    return target[:, :row].reshape(len(starts), width, channels)


@njit(nogil=True, cache=True)
def _columns_simd(source, starts, counts, weights, target, row):
    source_address, source_bytes = uintp(source.ctypes.data), uintp(source.strides[0])
    weights_address, weights_bytes = uintp(weights.ctypes.data), uintp(weights.strides[0])
    target_address, target_bytes = uintp(target.ctypes.data), uintp(target.strides[0])
    channels = source.shape[2]
    whole = row // COLUMNS * COLUMNS
    for y in range(len(starts)):
        top = source_address + uintp(starts[y]) * source_bytes
        factors = weights_address + uintp(y) * weights_bytes
        for x in range(0, whole, COLUMNS):
            weighted_columns(
                top + uintp(x),
                source_bytes,
                factors,
                uintp(counts[y]),
                target_address + uintp(y) * target_bytes + uintp(x),
            )
        for x in range(whole, row):
            total = np.int64(1) << (FRACTION_BITS - 1)
            for tap in range(counts[y]):
                total += np.int64(source[starts[y] + tap, x // channels, x % channels]) * weights[y, tap]
            target[y, x] = min(max(total >> FRACTION_BITS, 0), 255)
