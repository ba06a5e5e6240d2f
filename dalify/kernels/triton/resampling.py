"""Resamples images through a window with separable filters, in one launch: `dalify.kernels.images.resample`.

The same launch can mirror and normalize the result: `dalify.kernels.images.resample_normalized`.

A program computes a tile of an output image. It applies the vertical filter to each column of the horizontal filter and
sums the results, without an intermediate image in memory. Weights are computed in the kernel by the formulas of
`dalify.kernels.images.resample_filters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIInterpType
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.dispatch import UnsupportedError
from dalify.kernels.images.normalize_axes import multiplier_of
from dalify.kernels.images.resample_filters import curve_tables, filter_radius, select_filter, tap_count
from dalify.kernels.images.resample_rounding import EVEN_PIXELS
from dalify.kernels.triton.conversion import saturated, saturated_even
from dalify.kernels.triton.launching import blocks_of, element_type, launch
from dalify.kernels.triton.package import constexpr, tl, triton

_NEAREST = int(DALIInterpType.INTERP_NN)
_LINEAR = int(DALIInterpType.INTERP_LINEAR)
_EVEN_PIXELS = tl.constexpr(EVEN_PIXELS)
# With small tiles, few threads are beyond the last column of images with 224 pixels. A thread has four pixels, which
# share the weights of rows.
_TILE_PIXELS = 128
_WARPS = 1
_GROUP = 4  # maximum number of channels that a thread computes
_INTEGERS = 6  # of an axis: source extent, extent, taps, start in the table of positions or -1, curve and its points
_FLOATS = 4  # of an axis: scale, origin, inverse of the radius, points of the curve per pixel

_CURVES = curve_tables()
_CURVE = np.concatenate(list(_CURVES.values()))
_CURVE_STARTS = dict(zip(_CURVES, np.cumsum([0, *(len(curve) for curve in _CURVES.values())]).tolist(), strict=False))


@triton.jit
def _left(i, integers, floats, positions):
    """Return the first pixel under the filter of output pixel i, and its distance from the left end of the filter."""
    start = tl.load(integers + 3)
    left = i.to(tl.float32) * tl.load(floats) + tl.load(floats + 1)
    low = tl.ceil(left)
    offset = low - left
    nearest = tl.load(positions + tl.where(start >= 0, start, 0) + i, mask=(i * 0 + start) >= 0, other=0)
    low = tl.where(start >= 0, nearest, low.to(tl.int32))
    return low, tl.where(start >= 0, 1.0, offset)


@triton.jit
def _weight(from_left, inverse_radius, table, points, points_per_pixel, CURVES: constexpr):
    """Return the weight of a pixel at a distance from the left end of the filter.

    It is used in the inner loop, so it reads only curves, and does not divide.
    """
    weight = tl.maximum(1.0 - tl.abs(from_left * inverse_radius - 1.0), 0.0)
    if CURVES:  # noqa: SIM102 -- known to the compiler, unlike the number of points
        if points > 0:
            place = from_left * points_per_pixel
            is_under = (place >= 0) & (place < points - 2)
            whole = tl.where(is_under, place, 0.0).to(tl.int32)
            first = tl.load(table + whole)
            slope = tl.load(table + whole + 1) - first
            weight = tl.where(is_under, first + slope * (place - whole.to(tl.float32)), 0.0)
    return weight


@triton.jit
def _channel(at, channel, c: constexpr, CHANNELS: constexpr, GROUP: constexpr):
    """Return channel c of the groups of channels at the pointers `at`, as float32."""
    if CHANNELS % GROUP == 0:  # noqa: SIM108 -- the compiler chooses
        value = tl.load(at + c)
    else:  # the last group has fewer
        value = tl.load(at + c, mask=channel + c < CHANNELS, other=0)
    return value.to(tl.float32)


@triton.jit
def _store(
    out,
    value,
    normalization,
    shift,
    row,
    i,
    channel,
    rows,
    width,
    is_there,
    X: constexpr,
    OUT: constexpr,
    CHANNELS: constexpr,
    NORMALIZE: constexpr,
    PLANAR: constexpr,
):
    """Store one channel of pixels, normalized if `NORMALIZE`."""
    is_there = is_there & (channel < CHANNELS)
    if NORMALIZE:
        value = saturated_even(value, X, width >= _EVEN_PIXELS).to(tl.float32)  # as for two separate operators
        mean = tl.load(normalization + 1 + channel, mask=channel < CHANNELS, other=0)
        factor = tl.load(normalization + 1 + CHANNELS + channel, mask=channel < CHANNELS, other=0)
        value = saturated((value - mean) * factor + shift, OUT)
    else:
        value = saturated_even(value, OUT, width >= _EVEN_PIXELS)
    at = (channel * rows + row) * width + i if PLANAR else (row * width + i) * CHANNELS + channel
    tl.store(out + at, value, mask=is_there)


@triton.jit(do_not_specialize=["tiles"])
def _resample(
    out_at,
    x_at,
    integers,
    floats,
    positions,
    curve,
    normalization,
    shift,
    tiles,
    X: constexpr,
    OUT: constexpr,
    CHANNELS: constexpr,
    GROUP: constexpr,
    CURVES: constexpr,
    NORMALIZE: constexpr,
    PLANAR: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    tile = program % tiles
    int_y = integers + n.to(tl.int64) * 12
    int_x = int_y + 6
    float_y = floats + n.to(tl.int64) * 8
    float_x = float_y + 4
    height = tl.load(int_y)
    width = tl.load(int_x)
    rows = tl.load(int_y + 1)
    groups: constexpr = (CHANNELS + GROUP - 1) // GROUP
    columns = tl.load(int_x + 1) * groups
    across = (columns + COLUMNS - 1) // COLUMNS
    # Beyond the end, the last row and column are computed again and not stored.
    row = (tile // across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_there = (row < rows) & (column < columns)
    low_y, offset_y = _left(tl.minimum(row, rows - 1), int_y, float_y, positions)
    place = tl.minimum(column, columns - 1)
    # A thread computes several channels of a pixel, which share weights and addresses.
    channel = (place % groups) * GROUP
    low_x, offset_x = _left(place // groups, int_x, float_x, positions)
    x = tl.load(x_at + n).to(tl.pointer_type(X))
    taps_y = tl.load(int_y + 2)
    inverse_y, per_pixel_y = tl.load(float_y + 2), tl.load(float_y + 3)
    inverse_x, per_pixel_x = tl.load(float_x + 2), tl.load(float_x + 3)
    table_y, points_y = curve + tl.load(int_y + 4), tl.load(int_y + 5)
    table_x, points_x = curve + tl.load(int_x + 4), tl.load(int_x + 5)
    total_y = tl.full([ROWS, 1], 0.0, tl.float32)
    for j in range(0, taps_y):
        total_y += _weight(offset_y + j, inverse_y, table_y, points_y, per_pixel_y, CURVES)
    zeros = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    total_0, total_1, total_2, total_3 = zeros, zeros, zeros, zeros
    total_x = tl.full([1, COLUMNS], 0.0, tl.float32)
    # The weights of rows are computed in the inner loop, because a program has few rows, and its columns share them.
    for k in range(0, tl.load(int_x + 2)):
        weight_x = _weight(offset_x + k, inverse_x, table_x, points_x, per_pixel_x, CURVES)
        total_x += weight_x
        place_x = tl.minimum(tl.maximum(low_x + k, 0), width - 1) * CHANNELS + channel
        sum_0, sum_1, sum_2, sum_3 = zeros, zeros, zeros, zeros
        for j in range(0, taps_y):
            weight_y = _weight(offset_y + j, inverse_y, table_y, points_y, per_pixel_y, CURVES)
            at = x + tl.minimum(tl.maximum(low_y + j, 0), height - 1) * width * CHANNELS + place_x
            sum_0 += weight_y * _channel(at, channel, 0, CHANNELS, GROUP)
            if GROUP > 1:
                sum_1 += weight_y * _channel(at, channel, 1, CHANNELS, GROUP)
            if GROUP > 2:
                sum_2 += weight_y * _channel(at, channel, 2, CHANNELS, GROUP)
            if GROUP > 3:
                sum_3 += weight_y * _channel(at, channel, 3, CHANNELS, GROUP)
        total_0 += weight_x * sum_0
        total_1 += weight_x * sum_1
        total_2 += weight_x * sum_2
        total_3 += weight_x * sum_3
    total = total_x * total_y
    out = tl.load(out_at + n).to(tl.pointer_type(OUT))
    width_out = columns // groups
    i = place // groups
    values = normalization
    if NORMALIZE:
        values += n.to(tl.int64) * (1 + 2 * CHANNELS)
        i = tl.where(tl.load(values) != 0, width_out - 1 - i, i)
    for c in tl.static_range(GROUP):
        value = total_0 if c == 0 else total_1 if c == 1 else total_2 if c == 2 else total_3
        _store(
            out, tl.div_rn(value, total), values, shift, row, i, channel + c, rows, width_out, is_there, X, OUT,
            CHANNELS, NORMALIZE, PLANAR,
        )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def _describe(x_shapes, out_shapes, start, end, minify, magnify, antialias, integers, floats):
    """Fill `integers` and `floats` of each axis, with the order and precision of `axis_taps`."""
    half = np.float32(0.5)
    for n in range(len(x_shapes)):
        for axis in range(2):
            n_out = out_shapes[n, axis]
            begin, stop = start[n, axis], end[n, axis]
            kind = select_filter(n_out, begin, stop, minify[n], magnify[n])
            radius = filter_radius(kind, n_out, begin, stop, antialias, True)
            scale = np.float32((stop - begin) / np.float32(n_out))
            integers[n, axis, 0] = x_shapes[n, axis]
            integers[n, axis, 1] = n_out
            integers[n, axis, 2] = tap_count(radius)
            integers[n, axis, 3] = -1
            integers[n, axis, 4] = kind
            floats[n, axis, 0] = scale
            floats[n, axis, 1] = np.float32(begin + np.float32(np.float32(half * scale) - half - radius))
            floats[n, axis, 2] = np.float32(1) / radius if kind != _NEAREST else np.float32(1)


def _nearest_positions(size: int, extent: int, start: np.float32, end: np.float32, is_last: bool) -> np.ndarray:
    """Return the nearest pixels of an axis, int32, computed in float32 as in `axis_taps`."""
    scale = np.float32((end - start) / np.float32(size))
    if is_last:
        at = (start + (np.arange(size, dtype=np.float32) + np.float32(0.5)) * scale).astype(np.float32)
    else:
        steps = np.full(size, scale, np.float32)
        steps[0] = np.float32(start + np.float32(0.5) * scale)
        at = np.add.accumulate(steps, dtype=np.float32)
    return np.floor(at).clip(0, extent - 1).astype(np.int32)


def resample(
    out: DeviceSamples,
    x: DeviceSamples,
    start: np.ndarray,
    end: np.ndarray,
    *,
    min_filter: np.ndarray | int = _LINEAR,
    mag_filter: np.ndarray | int = _LINEAR,
    antialias: bool = True,
) -> None:
    """`dalify.kernels.images.resample.resample` for images on a device.

    Raises:
        ShapeError: a sample of `x` has no pixels.
        UnsupportedError: volumes, samples with different numbers of channels, or 32-bit integers.
    """
    _launch(out, x, start, end, min_filter, mag_filter, antialias, None)


def resample_normalized(
    out: DeviceSamples,
    x: DeviceSamples,
    output_layout: str,
    start: np.ndarray,
    end: np.ndarray,
    filters: Mapping[str, Any],
    normalization: Mapping[str, Any],
    parts: np.ndarray | None = None,
) -> None:
    """`dalify.kernels.images.resample_normalized.resample_normalized` for images on a device.

    Raises:
        ShapeError: see `resample`.
        UnsupportedError: see `resample`; or means or standard deviations are lists of vectors.
    """
    assert not (parts is not None and len(parts)), "dalify bug: parts of results on a device"
    mean, std = normalization["mean"], normalization["std"]
    if not isinstance(mean, np.ndarray) or not isinstance(std, np.ndarray):
        raise UnsupportedError
    values = _Normalization(
        np.asarray(normalization["mirror"]) != 0,
        mean,
        multiplier_of(std, normalization["scale"]),
        float(normalization["shift"]),
        output_layout == "CHW",
    )
    both = filters["interp_type"]
    smaller, larger = (
        _LINEAR if kind is None and both is None else both if kind is None else kind
        for kind in (filters["min_filter"], filters["mag_filter"])
    )
    _launch(out, x, start, end, smaller, larger, filters["antialias"], values)


class _Normalization(NamedTuple):
    """The normalization that follows the resize.

    Attributes:
        is_mirrored: bool [N].
        mean: float32 [N, C] or [N, 1].
        factor: float32, like `mean`.
        shift: added at the end.
        is_planar: whether the result is CHW.
    """

    is_mirrored: np.ndarray
    mean: np.ndarray
    factor: np.ndarray
    shift: float
    is_planar: bool

    def table(self, samples: int, channels: int) -> np.ndarray:
        """Return the values of each sample as the kernel reads them, float32 [N, 1 + 2 C]."""
        table = np.empty((samples, 1 + 2 * channels), np.float32)
        table[:, 0] = self.is_mirrored
        table[:, 1 : 1 + channels] = self.mean
        table[:, 1 + channels :] = self.factor
        return table

    def take(self, kept: np.ndarray) -> _Normalization:
        """Return the values of some of the samples."""
        return self._replace(is_mirrored=self.is_mirrored[kept], mean=self.mean[kept], factor=self.factor[kept])


def _launch(
    out: DeviceSamples,
    x: DeviceSamples,
    start: np.ndarray,
    end: np.ndarray,
    min_filter: np.ndarray | int,
    mag_filter: np.ndarray | int,
    antialias: bool,
    normalization: _Normalization | None,
) -> None:
    samples = len(x)
    if x.ndim != 3 or torch.int32 in (x.dtype, out.dtype):
        raise UnsupportedError
    starts, ends = (broadcast_to(corner, (samples, 2), np.float32) for corner in (start, end))
    minify, magnify = (broadcast_to(kinds, (samples,), np.int32) for kinds in (min_filter, mag_filter))
    kept = np.flatnonzero(out.shapes.all(1))
    if len(kept) < samples:
        out, x = out.take(kept), x.take(kept)
        starts, ends, minify, magnify = starts[kept], ends[kept], minify[kept], magnify[kept]
        normalization = None if normalization is None else normalization.take(kept)
        samples = len(kept)
    if not samples:
        return
    if not x.shapes.all():
        empty = int(np.flatnonzero(~x.shapes.all(1))[0])
        shape = tuple(x.shapes[empty].tolist())
        raise ShapeError(f"an empty image with shape {shape} cannot be resampled.", sample=int(kept[empty]))
    channels = x.extents(2)
    if (channels != channels[0]).any():
        raise UnsupportedError
    # Extents of the results: H, W, C.
    is_planar = normalization is not None and normalization.is_planar
    sizes = out.shapes[:, [1, 2, 0]] if is_planar else out.shapes
    integers, floats = np.zeros((samples, 2, _INTEGERS), np.int32), np.zeros((samples, 2, _FLOATS), np.float32)
    _describe(x.shapes, sizes, starts, ends, minify, magnify, antialias, integers, floats)
    positions = _place_nearest(integers, starts, ends)
    kinds = integers[:, :, 4].copy()
    integers[:, :, 4] = 0
    for kind, curve in _CURVES.items():
        integers[kinds == kind, 4:] = _CURVE_STARTS[kind], len(curve)
        floats[kinds == kind, 3] = np.float32(len(curve) - 3) / np.float32(2) * floats[kinds == kind, 2]
    count = int(channels[0])
    group = min(count, _GROUP)
    rows, columns, tiles = blocks_of(sizes[:, 0], sizes[:, 1] * -(-count // group), _TILE_PIXELS)
    table = np.zeros((1, 1), np.float32) if normalization is None else normalization.table(samples, count)
    targets, sources, *described = uploaded_together(
        x.device, out.addresses, x.addresses, integers, floats, positions, _CURVE.astype(np.float32), table
    )
    shift = 0.0 if normalization is None else normalization.shift
    launch(
        _resample, x.device, samples * tiles, targets, sources, *described, shift, tiles, X=element_type(x.dtype),
        OUT=element_type(out.dtype), CHANNELS=count, GROUP=group, CURVES=bool(integers[:, :, 5].any()),
        NORMALIZE=normalization is not None, PLANAR=is_planar, ROWS=rows, COLUMNS=columns, num_warps=_WARPS,
    )  # fmt: skip


def _place_nearest(integers: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the table of positions of axes without interpolation, and set the start of each axis in `integers`."""
    tables: list[np.ndarray] = []
    filled = 0
    for n, axis in np.argwhere(integers[:, :, 4] == _NEAREST).tolist():
        extent, size = integers[n, axis, :2].tolist()
        tables.append(_nearest_positions(size, extent, start[n, axis], end[n, axis], axis == 1))
        integers[n, axis, 3] = filled
        filled += size
    return np.concatenate(tables) if tables else np.zeros(1, np.int32)
