"""Copies windows of samples: crop, mirror, fill, transpose, convert and normalize in one launch.

An axis of a result is described by five numbers: its extent, the extent and stride of the same axis in the source,
and start and step of the source positions. A step of -1 mirrors. Positions outside the source get a fill value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.batch import contiguous_strides
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.dispatch import UnsupportedError
from dalify.kernels.images.normalize_axes import multiplier_of
from dalify.kernels.triton.conversion import saturated
from dalify.kernels.triton.launching import blocks_of, element_type, launch
from dalify.kernels.triton.package import constexpr, tl, triton

_AXES = 5
_MAX_CHANNELS = 16
_PIXELS = 512  # of a tile of planes
_FIELDS = 5  # extent, source extent, source stride, start, step


@triton.jit(do_not_specialize=["tiles"])
def _windows(
    out_at,
    x_at,
    geometry,
    mean,
    factor,
    fill,
    shift,
    tiles,
    out_channels,
    X: constexpr,
    OUT: constexpr,
    CHANNELS: constexpr,
    CHANNEL_AXIS: constexpr,
    NORMALIZE: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    tile = program % tiles
    g = geometry + n.to(tl.int64) * 25
    size0, size1, size2, size3, size4 = tl.load(g), tl.load(g + 5), tl.load(g + 10), tl.load(g + 15), tl.load(g + 20)
    if CHANNEL_AXIS == 4:  # the last two axes are a row, because rows of channels only would be short
        rows = size0 * size1 * size2
        columns = size3 * CHANNELS
    else:
        rows = size0 * size1 * size2 * size3
        columns = size4
    across = (columns + COLUMNS - 1) // COLUMNS
    row = (tile // across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    if CHANNEL_AXIS == 4:
        i4 = column % CHANNELS
        i3 = column // CHANNELS
        outer = row
    else:
        i4 = column
        i3 = row % size3
        outer = row // size3
    i2 = outer % size2
    i1 = (outer // size2) % size1
    i0 = outer // size2 // size1
    p0 = tl.load(g + 3) + tl.load(g + 4) * i0
    p1 = tl.load(g + 8) + tl.load(g + 9) * i1
    p2 = tl.load(g + 13) + tl.load(g + 14) * i2
    p3 = tl.load(g + 18) + tl.load(g + 19) * i3
    p4 = tl.load(g + 23) + tl.load(g + 24) * i4
    inside = (p0 >= 0) & (p0 < tl.load(g + 1)) & (p1 >= 0) & (p1 < tl.load(g + 6))
    inside = inside & (p2 >= 0) & (p2 < tl.load(g + 11)) & (p3 >= 0) & (p3 < tl.load(g + 16))
    inside = inside & (p4 >= 0) & (p4 < tl.load(g + 21))
    offset = p0 * tl.load(g + 2) + p1 * tl.load(g + 7) + p2 * tl.load(g + 12)
    offset = offset + p3 * tl.load(g + 17) + p4 * tl.load(g + 22)
    is_there = (row < rows) & (column < columns)
    if CHANNEL_AXIS == 0:
        channel = i0
    elif CHANNEL_AXIS == 1:
        channel = i1
    elif CHANNEL_AXIS == 2:
        channel = i2
    elif CHANNEL_AXIS == 3:
        channel = i3
    else:
        channel = i4
    x = tl.load(x_at + n).to(tl.pointer_type(X))
    value = tl.load(x + offset, mask=is_there & inside, other=0)
    is_channel = channel < out_channels
    channel = n * out_channels + tl.where(is_channel, channel, 0)
    outside = tl.load(fill + channel)
    if NORMALIZE:
        value = (value.to(tl.float32) - tl.load(mean + channel)) * tl.load(factor + channel) + shift
        value = saturated(value, OUT)
    elif X != OUT:
        value = saturated(value.to(tl.float32), OUT)
    value = tl.where(inside, value, saturated(outside, OUT))
    out = tl.load(out_at + n).to(tl.pointer_type(OUT))
    tl.store(out + row * columns + column, value, mask=is_there)


@triton.jit(do_not_specialize=["tiles"])
def _planes(
    out_at,
    x_at,
    geometry,
    mean,
    factor,
    shift,
    tiles,
    X: constexpr,
    OUT: constexpr,
    CHANNELS: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    tile = program % tiles
    g = geometry + n.to(tl.int64) * 5
    height, width = tl.load(g), tl.load(g + 1)
    across = (width + COLUMNS - 1) // COLUMNS
    row = (tile // across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_there = (row < height) & (column < width)
    x = tl.load(x_at + n).to(tl.pointer_type(X)) + (tl.load(g + 2) + row * tl.load(g + 3) + column * tl.load(g + 4))
    out = tl.load(out_at + n).to(tl.pointer_type(OUT)) + (row * width + column)
    for c in tl.static_range(CHANNELS):
        value = tl.load(x + c, mask=is_there, other=0).to(tl.float32)
        value = (value - tl.load(mean + n * CHANNELS + c)) * tl.load(factor + n * CHANNELS + c) + shift
        tl.store(out + c * height * width, saturated(value, OUT), mask=is_there)


def _normalize_planes(
    out: DeviceSamples,
    x: DeviceSamples,
    start: np.ndarray,
    step: np.ndarray,
    mean: np.ndarray,
    factor: np.ndarray,
    shift: float,
) -> None:
    """Normalize windows inside of HWC images to CHW, with a fraction of the instructions of `_copy`.

    A thread computes all channels of a pixel.

    Args:
        out: N samples, output.
        x: N samples.
        start: int64 [N, 2]: row and column in `x` of the first pixel.
        step: int64 [N]: 1 or -1 for mirrored images.
        mean: float32 [N, C], subtracted.
        factor: float32 [N, C], multiplied with the difference.
        shift: added at the end.
    """
    channels = mean.shape[1]
    line = x.extents(1) * channels
    first = start[:, 0] * line + start[:, 1] * channels
    geometry = np.stack([out.extents(1), out.extents(2), first, line, step * channels], 1).astype(np.int32)
    rows, columns, tiles = blocks_of(out.extents(1), out.extents(2), _PIXELS)
    arrays = uploaded_together(x.device, out.addresses, x.addresses, geometry, mean, factor)
    launch(
        _planes, x.device, len(x) * tiles, *arrays, float(shift), tiles, X=element_type(x.dtype),
        OUT=element_type(out.dtype), CHANNELS=channels, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip


def _copy(
    out: DeviceSamples,
    x: DeviceSamples,
    order: Sequence[int],
    start: np.ndarray,
    step: np.ndarray,
    channel_axis: int,
    fill: np.ndarray,
    mean: np.ndarray | None = None,
    factor: np.ndarray | None = None,
    shift: float = 0.0,
) -> None:
    """Copy windows with another order of axes and element type.

    Args:
        out: N samples, output.
        x: N samples with as many axes, at most five.
        order: for each axis of `out`, the axis of `x`.
        start: int [N, axes], in the order of `out`: first position in `x`.
        step: int [N, axes]: 1 or -1.
        channel_axis: axis of the channels of `out`.
        fill: float32 [N, C'], value outside `x` in each channel of `out`.
        mean: float32 [N, C'], subtracted; None to convert only. int32 values are then copied to int32 exactly.
        factor: float32 [N, C'], multiplied with the difference.
        shift: added at the end.

    Raises:
        UnsupportedError: more than five axes, or samples with different numbers of channels.
    """
    count, axes = len(x), len(order)
    if not count or not out.shapes.prod(1).any():
        return
    channels = out.extents(channel_axis)
    if axes > _AXES or (channels != channels[0]).any():
        raise UnsupportedError
    geometry = np.zeros((count, _AXES, _FIELDS), np.int32)
    geometry[:, :, [0, 1, 4]] = 1
    strides = contiguous_strides(x.shapes)
    used, described = list(order), geometry[:, _AXES - axes :]
    described[:, :, 0], described[:, :, 1], described[:, :, 2] = out.shapes, x.shapes[:, used], strides[:, used]
    described[:, :, 3], described[:, :, 4] = start, step
    place = channel_axis + _AXES - axes
    inner = 2 if place == _AXES - 1 else 1
    sizes = geometry[:, :, 0].astype(np.int64)
    # The kernel divides by extents, so an empty sample has no rows, and other extents of 1.
    geometry[~out.shapes.all(1), :, 0] = 1
    geometry[~out.shapes.all(1), 0, 0] = 0
    rows, columns, tiles = blocks_of(sizes[:, :-inner].prod(1), sizes[:, -inner:].prod(1))
    like = np.ascontiguousarray(fill, np.float32)
    arrays = uploaded_together(
        x.device, out.addresses, x.addresses, geometry, like if mean is None else mean,
        like if factor is None else factor, like,
    )  # fmt: skip
    known = int(channels[0])
    launch(
        _windows, x.device, count * tiles, *arrays, float(shift), tiles, known, X=element_type(x.dtype),
        OUT=element_type(out.dtype), CHANNELS=known if inner == 2 else 1, CHANNEL_AXIS=place,
        NORMALIZE=mean is not None, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip


def copy_windows(
    out: DeviceSamples, x: DeviceSamples, start: np.ndarray, *, fill_values: np.ndarray | float = 0
) -> None:
    """`dalify.kernels.arrays.gather.copy_windows` for samples on a device.

    Raises:
        UnsupportedError: see `_copy`; or the element types differ, because Triton rounds conversions differently.
    """
    _copy_mirrored(out, x, start, np.ones_like(x.shapes), np.asarray(fill_values, np.float64))


def flip_axes(out: DeviceSamples, x: DeviceSamples, flags: dict[int, np.ndarray]) -> None:
    """`dalify.kernels.arrays.gather.flip_axes` for samples on a device.

    Raises:
        UnsupportedError: see `_copy`.
    """
    start, step = np.zeros_like(x.shapes), np.ones_like(x.shapes)
    for axis, values in flags.items():
        is_flipped = np.asarray(values) != 0
        start[is_flipped, axis] = x.extents(axis)[is_flipped] - 1
        step[is_flipped, axis] = -1
    _copy_mirrored(out, x, start, step, np.zeros(()))


def transpose_axes(out: DeviceSamples, x: DeviceSamples, order: Sequence[int]) -> None:
    """`dalify.kernels.arrays.windows_torch.transpose_samples_torch` by a Triton kernel.

    Raises:
        UnsupportedError: see `_copy`; no axes, or five.
    """
    axes = x.ndim
    if not axes:
        raise UnsupportedError
    # Extents of a channel axis must be equal in all samples, so an axis of extent 1 is added for it.
    start = np.zeros((len(x), axes + 1), np.int64)
    fill = np.zeros((len(x), 1), np.float32)
    _copy(out.with_axis(axes), x.with_axis(axes), (*order, axes), start, start + 1, axes, fill)


def _copy_mirrored(out: DeviceSamples, x: DeviceSamples, start: np.ndarray, step: np.ndarray, fill: np.ndarray) -> None:
    axes = x.ndim
    if not axes or out.dtype != x.dtype or (x.dtype == torch.int32 and fill.any()):
        raise UnsupportedError
    long = [axis for axis, extent in enumerate(fill.shape, axes - fill.ndim) if extent > 1]
    channel_axis = long[0] if long else axes - 1
    channels = out.extents(channel_axis)
    if len(long) > 1:
        raise UnsupportedError
    if not long and (channels.max() > _MAX_CHANNELS or (channels != channels[0]).any()):
        # The last axis cannot be the channel axis, so an axis of extent 1 is added for it.
        out, x = out.with_axis(axes), x.with_axis(axes)
        start, step = (np.column_stack([values, [value] * len(x)]) for values, value in ((start, 0), (step, 1)))
        axes, channel_axis = axes + 1, axes
    fills = np.broadcast_to(fill.reshape(-1), (len(x), int(out.extents(channel_axis)[0]))).astype(np.float32)
    _copy(out, x, range(axes), start, step, channel_axis, fills)


def normalize_samples(
    out: DeviceSamples,
    x: DeviceSamples,
    layout: str,
    output_layout: str,
    start: np.ndarray,
    mirror: np.ndarray,
    mean: Any,
    std: Any,
    options: Mapping[str, Any],
) -> None:
    """`dalify.kernels.images.normalize_axes.normalize_samples` for samples on a device.

    Raises:
        UnsupportedError: see `_copy`.
    """
    if not len(x):
        return
    count, channels = len(x), x.extents(layout.index("C"))
    channel_axis = output_layout.index("C")
    if (channels != channels[0]).any():
        raise UnsupportedError
    known, out_channels = int(channels[0]), int(out.extents(channel_axis)[0])
    # Channels that `x` does not have get the fill value; their mean and factor have no effect.
    means, factors, fill = np.zeros((3, count, out_channels), np.float32)
    means[:, :known] = np.stack(mean) if isinstance(mean, list) else mean
    factors[:, :known] = multiplier_of(np.stack(std) if isinstance(std, list) else std, options["scale"])
    values = options["fill_values"]
    fill[:, : len(values) if len(values) > 1 else out_channels] = values
    first, step = np.zeros_like(out.shapes), np.ones_like(out.shapes)
    for axis, letter in enumerate(output_layout):
        first[:, axis] = start[:, layout.index(letter)]
        if letter == "W":
            flags = np.asarray(mirror) != 0
            first[:, axis] += np.where(flags, out.extents(axis) - 1, 0)
            step[:, axis] = np.where(flags, -1, 1)
    order = [layout.index(letter) for letter in output_layout]
    if (layout, output_layout) == ("HWC", "CHW") and out_channels == known <= _MAX_CHANNELS and out.shapes.any():
        ends = first + step * (out.shapes - 1)
        extents = x.shapes[:, order]
        if ((first >= 0) & (first < extents) & (ends >= 0) & (ends < extents) | (out.shapes == 0)).all():
            _normalize_planes(out, x, first[:, 1:], step[:, 2], means, factors, options["shift"])
            return
    _copy(out, x, order, first, step, channel_axis, fill, means, factors, options["shift"])
