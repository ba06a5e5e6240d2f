"""Copies windows of samples: crop, mirror, fill, transpose, convert and normalize in one launch.

An axis of a result is described by five numbers: its extent, the extent and stride of the same axis in the source,
and start and step of the source positions. A step of -1 mirrors. Positions outside the source get a fill value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.data.samples import NoDeviceKernelError, Samples
from dalify.kernels.triton.conversion import saturated
from dalify.kernels.triton.launching import blocks_of, element_type, launch, uploaded
from dalify.kernels.triton.package import constexpr, tl, triton

__all__ = ["copy_windows", "normalize_samples"]

_AXES = 5
_FIELDS = 5  # extent, source extent, source stride, start, step


@triton.jit
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
    X: constexpr,  # noqa: N803 -- constants of a kernel are upper-case in Triton
    OUT: constexpr,  # noqa: N803
    CHANNELS: constexpr,  # noqa: N803
    CHANNEL_AXIS: constexpr,  # noqa: N803
    NORMALIZE: constexpr,  # noqa: N803
    ROWS: constexpr,  # noqa: N803
    COLUMNS: constexpr,  # noqa: N803
):
    program = tl.program_id(0)
    n = program // tiles
    tile = program % tiles
    g = geometry + n.to(tl.int64) * 25
    size0, size1, size2, size3, size4 = tl.load(g), tl.load(g + 5), tl.load(g + 10), tl.load(g + 15), tl.load(g + 20)
    if CHANNEL_AXIS == 4:  # the last two axes are a row, so that it is long
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


def copy_windows(
    out: Samples,
    x: Samples,
    layout: str,
    out_layout: str,
    anchors: Mapping[str, np.ndarray],
    *,
    mirror: np.ndarray,
    fill: np.ndarray,
    mean: np.ndarray | None = None,
    factor: np.ndarray | None = None,
    shift: float = 0.0,
) -> None:
    """Copy a window of each sample, with another order of axes and element type.

    Args:
        out: N samples in `out_layout`, output.
        x: N samples in `layout`; at most five axes, any letters, C among them.
        layout: letters of the axes of `x`.
        out_layout: a permutation of `layout`.
        anchors: letter to int [N], first position in `x`; 0 without an entry. Windows may exceed `x`.
        mirror: [N], non-zero: reverse W.
        fill: float32 [N, C'], what is outside `x` in each channel of `out`.
        mean: float32 [N, C'], subtracted; None to convert only. int32 values are then copied to int32 exactly.
        factor: float32 [N, C'], multiplied with the difference.
        shift: added at the end.

    Raises:
        NoDeviceKernelError: more than five axes, or samples with different numbers of channels.
    """
    count, axes = len(x), len(layout)
    if not count:
        return
    out_channels = out.extents(out_layout.index("C"))
    if axes > _AXES or (out_channels != out_channels[0]).any():
        raise NoDeviceKernelError
    geometry = np.zeros((count, _AXES, _FIELDS), np.int32)
    geometry[:, :, [0, 1, 4]] = 1
    strides = np.ones((count, axes), np.int64)
    strides[:, :-1] = np.cumprod(x.shapes[:, :0:-1], 1)[:, ::-1]
    flags = np.asarray(mirror) != 0
    for place, letter in enumerate(out_layout, _AXES - axes):
        axis = layout.index(letter)
        size, start = out.extents(place - _AXES + axes), anchors.get(letter, np.zeros(count, np.int64))
        geometry[:, place, 0], geometry[:, place, 1], geometry[:, place, 2] = size, x.extents(axis), strides[:, axis]
        reverse = flags if letter == "W" else np.zeros(count, np.bool_)
        geometry[:, place, 3] = np.where(reverse, start + size - 1, start)
        geometry[:, place, 4] = np.where(reverse, -1, 1)
    sizes = geometry[:, :, 0].astype(np.int64)
    channel_axis = out_layout.index("C") + _AXES - axes
    inner = 2 if channel_axis == _AXES - 1 else 1
    rows, columns, tiles = blocks_of(sizes[:, :-inner].prod(1), sizes[:, -inner:].prod(1))
    normalizes = mean is not None
    like = np.broadcast_to(fill, (count, int(out_channels[0]))).astype(np.float32)
    at, source, described, means, factors, fills = uploaded(
        x.device, out.addresses, x.addresses, geometry, like if mean is None else mean,
        like if factor is None else factor, like,
    )  # fmt: skip
    launch(
        _windows, x.device, count * tiles, at, source, described, means, factors, fills, float(shift), tiles,
        int(out_channels[0]), X=element_type(x.dtype), OUT=element_type(out.dtype),
        CHANNELS=int(out_channels[0]) if inner == 2 else 1, CHANNEL_AXIS=channel_axis, NORMALIZE=normalizes,
        ROWS=rows, COLUMNS=columns,
    )  # fmt: skip


def normalize_samples(
    out: Samples,
    x: Samples,
    layout: str,
    out_layout: str,
    anchors: Mapping[str, np.ndarray],
    mirror: np.ndarray,
    mean: Any,
    std: Any,
    options: Mapping[str, Any],
) -> None:
    """`dalify.kernels.images.normalize_axes.normalize_samples` for samples on a device.

    Raises:
        NoDeviceKernelError: see `copy_windows`.
    """
    if not len(x):
        return
    count, channels = len(x), x.extents(layout.index("C"))
    out_channels = int(out.extents(out_layout.index("C"))[0])
    if (channels != channels[0]).any():
        raise NoDeviceKernelError
    known = int(channels[0])
    # What `x` does not have gets the fill value, so its mean and factor do not matter.
    means, factors = np.zeros((2, count, out_channels), np.float32)
    means[:, :known] = np.stack(mean) if isinstance(mean, list) else mean
    with np.errstate(divide="ignore"):
        factors[:, :known] = np.float32(options["scale"]) / np.asarray(
            np.stack(std) if isinstance(std, list) else std, np.float32
        )
    fill = np.zeros(out_channels, np.float32)
    values = options["fill_values"]
    fill[: len(values) if len(values) > 1 else out_channels] = values
    copy_windows(
        out, x, layout, out_layout, anchors, mirror=mirror, fill=fill, mean=means, factor=factors,
        shift=options["shift"],
    )  # fmt: skip
