"""Correlates images and volumes with small non-separable kernels.

A compiled function replaces OpenCV's filter where it is faster. It keeps the rows under the kernel as float32 in a ring
buffer in the L1 cache. One pass over a row adds up to five taps, so that the sums are loaded and stored a fifth as
often. Rows are padded once, by tables of source indices.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numba import types as numba_types
from numba.extending import overload

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.small_arrays import rows_at
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import in_float32, saturate_cast
from dalify.kernels.images.convolve import bordered_indices

_BORDERS = {
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect_1001": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
    "clamp": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
}
_REFLECT_101, _REFLECT, _WRAP, _CONSTANT = (
    _BORDERS[name] for name in ("reflect_101", "reflect_1001", "wrap", "constant")
)
_IMAGE_AXES = 2
_FILTERED_TYPES = (np.dtype(np.uint8), np.dtype(np.float32))  # others are converted to float32 before they are filtered
# Minimum sizes of filters (elements) for which OpenCV uses the discrete Fourier transform, and for which it is faster.
_DFT_FROM, _DFT_FASTER_FROM = 130, 700
_KERNEL_FROM, _KERNEL_CHANNELS = 25, 3  # minima for which the compiled function is faster for uint8
_MAX_CHANNELS = 128  # OpenCV's limit per call
# Adding and subtracting it rounds halves to even, because floats of this size have no fraction bits. np.rint would be
# a function call for each element.
_WHOLE = np.float32(1.5 * 2**23)


def correlate_samples(
    out: Samples,
    x: Samples,
    filters: Samples,
    anchors: np.ndarray,
    border: str,
    fills: np.ndarray,
    first_axis: int,
) -> None:
    """Fill each sample with weighted sums of neighbors in float32, rounded and saturated once for integers.

    Args:
        out: N samples of any dtype, output; smaller than `x` if they have only the sums of windows inside `x`.
        x: N samples of any dtype.
        filters: N float32 arrays [r, s] for images or [q, r, s] for volumes.
        anchors: indices of the filter elements at the output pixels, int64 [N, 2 or 3].
        border: a name of `bordered_indices`.
        fills: value outside for "constant", float32 [N].
        first_axis: the first filtered axis of a sample; channels are before or after the filtered axes.
    """
    out, owners = out.folded(first_axis)
    x, _ = x.folded(first_axis)
    if owners is not None:
        filters, anchors, fills = filters.take(owners), rows_at(anchors, owners), fills[owners]
    if filters.ndim > _IMAGE_AXES:
        _correlate_volumes(out, x, filters, anchors, border, fills)
        return
    is_rounded = out.dtype != np.float32 and not out.dtype == x.dtype == np.uint8
    if not is_rounded and x.dtype in _FILTERED_TYPES:
        _correlate(out, x, filters, anchors, border, fills)
        return

    def fill(target: Samples, source: Samples, part: np.ndarray) -> None:
        _correlate(target, source, filters.take(part), rows_at(anchors, part), border, fills[part], is_rounded)

    in_float32(out, x, fill)


def _correlate(
    out: Samples,
    x: Samples,
    filters: Samples,
    anchors: np.ndarray,
    border: str,
    fills: np.ndarray,
    is_rounded: bool = False,
) -> None:
    """`correlate_samples` for images [H, W] or [H, W, C], uint8 or float32, without conversion.

    If `is_rounded`, the caller rounds the sums, and OpenCV computes all of them.
    """
    channels = x.extents(2) if x.ndim > _IMAGE_AXES else np.ones(len(x), np.int64)
    sizes = filters.shapes.prod(1)
    is_own = (sizes >= _DFT_FROM) & (sizes <= _DFT_FASTER_FROM)
    if x.dtype == np.uint8:
        is_own |= (sizes >= _KERNEL_FROM) & (sizes < _DFT_FROM) & (channels >= _KERNEL_CHANNELS)
    if is_rounded:
        is_own[:] = False
    if is_own.any():
        own, others = np.flatnonzero(is_own), np.flatnonzero(~is_own)
        correlate_images(out.take(own), x.take(own), filters.take(own), rows_at(anchors, own), border, fills[own])
        out, x, filters = out.take(others), x.take(others), filters.take(others)
        anchors, fills, channels = rows_at(anchors, others), fills[others], channels[others]
    is_simple = (channels <= _MAX_CHANNELS) & (fills == 0) & (out.shapes == x.shapes).all(1) & (border != "wrap")
    depth, kind = cv2.CV_8U if out.dtype == np.uint8 else cv2.CV_32F, _BORDERS[border]
    rest = zip(anchors.tolist(), is_simple.tolist(), fills.tolist(), strict=True)
    for target, image, weights, ((row, column), simple, value) in zip(
        out.arrays(), x.arrays(), filters.arrays(), rest, strict=True
    ):
        if simple:
            cv2.filter2D(image, depth, weights, dst=target, anchor=(column, row), borderType=kind)
        else:
            extents = target.shape[0], target.shape[1]
            target[...] = _sums(image, weights, (row, column), border, value, depth, extents).reshape(target.shape)


def _sums(
    image: np.ndarray,
    weights: np.ndarray,
    anchor: tuple[int, int],
    border: str,
    fill: float,
    depth: int,
    extents: tuple[int, int],
) -> np.ndarray:
    """Return the sums for one image with any border, rounded if `depth` is uint8."""
    if image.ndim > _IMAGE_AXES and image.shape[2] > _MAX_CHANNELS:
        parts = [image[..., first : first + _MAX_CHANNELS] for first in range(0, image.shape[2], _MAX_CHANNELS)]
        sums = [_sums(np.ascontiguousarray(part), weights, anchor, border, fill, depth, extents) for part in parts]
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in sums], axis=2)
    (rows, columns), (row, column) = weights.shape, anchor
    if extents == image.shape[:2]:
        if border != "wrap" and fill == 0:
            # OpenCV supports these borders; it does not wrap or pad with a value other than 0.
            return cv2.filter2D(image, depth, weights, anchor=(column, row), borderType=_BORDERS[border])
        image = cv2.copyMakeBorder(
            image, row, rows - 1 - row, column, columns - 1 - column, _BORDERS[border], value=[fill] * 4
        )
    # With the anchor in the corner, the sums of windows inside the image are first.
    return cv2.filter2D(image, depth, weights, anchor=(0, 0))[: extents[0], : extents[1]]


def _correlate_volumes(
    out: Samples, x: Samples, filters: Samples, anchors: np.ndarray, border: str, fills: np.ndarray
) -> None:
    """`correlate_samples` for volumes [D, H, W] or [D, H, W, C]."""
    each: Any = zip(out.arrays(), x.arrays(), filters.arrays(), anchors.tolist(), fills.tolist(), strict=True)
    for target, volume, weights, anchor, fill in each:
        source = volume if volume.dtype in _FILTERED_TYPES else volume.astype(np.float32)
        saturate_cast(
            target, _volume_sums(source, weights, anchor, border, fill, target.shape[:3]).reshape(target.shape)
        )


def _volume_sums(
    volume: np.ndarray,
    weights: np.ndarray,
    anchor: list[int],
    border: str,
    fill: float,
    extents: tuple[int, int, int],
) -> np.ndarray:
    """Return the sums for one volume, float32: slices are filtered with the slices of the filter, and added."""
    before = anchor[0]
    after = extents[0] + len(weights) - 1 - before - len(volume)
    index, outside = bordered_indices(len(volume), before, after, border)
    total: np.ndarray | None = None
    for d, matrix in enumerate(weights):
        for z in range(extents[0]):
            image = np.full_like(volume[0], fill) if outside[z + d] else volume[index[z + d]]
            part = _sums(image, matrix, (anchor[1], anchor[2]), border, fill, cv2.CV_32F, extents[1:])
            if total is None:
                total = np.zeros((extents[0], *part.shape), np.float32)
            total[z] += part
    assert total is not None, "dalify bug: a filter or a result without elements"
    return total


def correlate_images(
    out: Samples, x: Samples, filters: Samples, anchors: np.ndarray, border: str, fills: np.ndarray
) -> None:
    """`correlate_samples` for images, in one compiled call.

    Args:
        out: uint8 (rounded, halves to even) or float32 [h, w] or [h, w, C].
        x: uint8 or float32 [H, W] or [H, W, C].
        filters: float32 [r, s].
        anchors: row and column of the filter element at the output pixel, int64 [N, 2].
        border: a name of `bordered_indices`.
        fills: value outside for "constant", float32 [N].
    """
    if x.ndim == _IMAGE_AXES:
        out, x = out.with_axis(2), x.with_axis(2)
    _fill_images(*out.compiled, *x.compiled, filters.addresses, filters.shapes, anchors, _BORDERS[border], fills)


@njit(nogil=True, cache=True)
def _source_indices(count, size, before, border):
    """Return the source indices of `count` positions from -before on, -1 for padding; see `bordered_indices`."""
    found = np.empty(count, np.int64)
    for i in range(count):
        at = i - before
        if border == _CONSTANT:
            found[i] = at if 0 <= at < size else -1
            continue
        if border == _WRAP:
            at %= size
        elif border == _REFLECT:
            at %= 2 * size
            at = min(at, 2 * size - 1 - at)
        elif border == _REFLECT_101:
            period = max(2 * (size - 1), 1)
            at %= period
            at = min(at, period - at)
        found[i] = min(max(at, 0), size - 1)
    return found


@njit(nogil=True, cache=True)
def _fill_images(
    out_at, out_shapes, out_like, x_at, x_shapes, x_like, filters_at, filters_shapes, anchors, border, fills
):
    for n in range(len(out_at)):
        height, width, channels = x_shapes[n]
        weights = array_at(filters_at[n], (filters_shapes[n, 0], filters_shapes[n, 1]), fills)
        out = array_at(out_at[n], (out_shapes[n, 0], out_shapes[n, 1] * channels), out_like)
        x = array_at(x_at[n], (height, width * channels), x_like)
        rows = _source_indices(out.shape[0] + weights.shape[0] - 1, height, anchors[n, 0], border)
        columns = _source_indices(out_shapes[n, 1] + weights.shape[1] - 1, width, anchors[n, 1], border)
        _correlate_image(out, x, weights, rows, columns, anchors[n, 1], channels, fills[n])


@njit(nogil=True, cache=True)
def _complete(row, source, columns, left, channels, fill):
    """Fill a row with a source row and its padding."""
    width = source.size // channels
    for side in range(columns.size - width):
        i = side if side < left else side + width
        for c in range(channels):
            row[i * channels + c] = np.float32(source[columns[i] * channels + c]) if columns[i] >= 0 else fill
    middle = row[left * channels : left * channels + source.size]
    for k in range(source.size):
        middle[k] = np.float32(source[k])


def _round_into(target, sums):
    """Convert a row of float32 to the dtype of the output."""


@overload(_round_into)
def _round_into_overload(target, sums):
    if target.dtype == numba_types.uint8:

        def round_uint8(target, sums):
            for k in range(target.size):
                value = min(max(sums[k], np.float32(0)), np.float32(255))
                target[k] = np.uint8(np.int32((value + _WHOLE) - _WHOLE))

        return round_uint8

    def copy_float(target, sums):
        for k in range(target.size):
            target[k] = sums[k]

    return copy_float


# Indices are unsigned, because numba's tests for negative indices prevent vectorization.


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_five(sums, row, a, step, u, v, w, x, y):
    b, c = a + step, a + step + step
    d, e = c + step, c + step + step
    for i in range(sums.size):
        k = np.uintp(i)
        sums[k] += (row[a + k] * u + row[b + k] * v) + (row[c + k] * w + row[d + k] * x) + row[e + k] * y


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_three(sums, row, a, step, u, v, w):
    b, c = a + step, a + step + step
    for i in range(sums.size):
        k = np.uintp(i)
        sums[k] += row[a + k] * u + row[b + k] * v + row[c + k] * w


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_one(sums, row, a, u):
    for i in range(sums.size):
        k = np.uintp(i)
        sums[k] += row[a + k] * u


@njit(nogil=True, inline="always")
def _correlate_image(out, x, weights, rows, columns, left, channels, fill):
    taps_y, taps_x = weights.shape
    step = np.uintp(channels)
    ring = np.empty((taps_y, columns.size * channels), np.float32)
    sums = np.empty(out.shape[1], np.float32)
    ready = 0
    for y in range(out.shape[0]):
        while ready < y + taps_y:
            if rows[ready] < 0:
                for k in range(ring.shape[1]):
                    ring[ready % taps_y, k] = fill
            else:
                _complete(ring[ready % taps_y], x[rows[ready]], columns, left, channels, fill)
            ready += 1
        for k in range(sums.size):
            sums[k] = 0
        for i in range(taps_y):
            row, w = ring[(y + i) % taps_y], weights[i]
            j = 0
            while j < taps_x:
                at = np.uintp(j * channels)
                if taps_x - j >= 5:
                    _add_five(sums, row, at, step, w[j], w[j + 1], w[j + 2], w[j + 3], w[j + 4])
                    j += 5
                elif taps_x - j >= 3:
                    _add_three(sums, row, at, step, w[j], w[j + 1], w[j + 2])
                    j += 3
                else:
                    _add_one(sums, row, at, w[j])
                    j += 1
        _round_into(out[y], sums)
