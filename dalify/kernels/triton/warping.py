"""Affine and projective warps of images: `dalify.kernels.images.warp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.dispatch import UnsupportedError
from dalify.kernels.images.warp import bounded_matrix, values_outside
from dalify.kernels.triton.conversion import saturated
from dalify.kernels.triton.launching import blocks_of, element_type, launch, numpy_type
from dalify.kernels.triton.package import constexpr, tl, triton

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def _pixel(x, row, column, channel, height, width, outside, is_there, BORDER: constexpr, CHANNELS: constexpr):
    """Return the values of pixels as float32; outside of the image, those of its border or the fill value."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    row = tl.minimum(tl.maximum(row, 0), height - 1)
    column = tl.minimum(tl.maximum(column, 0), width - 1)
    value = tl.load(x + (row * width + column) * CHANNELS + channel, mask=is_there, other=0).to(tl.float32)
    if not BORDER:
        value = tl.where(inside, value, outside)
    return value


@triton.jit(do_not_specialize=["tiles"])
def _warp(
    out_at,
    x_at,
    extents,
    matrix,
    fill,
    tiles,
    X: constexpr,
    OUT: constexpr,
    CHANNELS: constexpr,
    PROJECTIVE: constexpr,
    NEAREST: constexpr,
    BORDER: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    tile = program % tiles
    height, width = tl.load(extents + n * 4), tl.load(extents + n * 4 + 1)
    rows, columns = tl.load(extents + n * 4 + 2), tl.load(extents + n * 4 + 3) * CHANNELS
    across = (columns + COLUMNS - 1) // COLUMNS
    row = (tile // across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_there = (row < rows) & (column < columns)
    channel = column % CHANNELS
    at_x = (column // CHANNELS).to(tl.float32) + 0.5
    at_y = row.to(tl.float32) + 0.5
    m = matrix + n * (9 if PROJECTIVE else 6)
    from_x = tl.load(m + 2) + tl.load(m) * at_x + tl.load(m + 1) * at_y
    from_y = tl.load(m + 5) + tl.load(m + 3) * at_x + tl.load(m + 4) * at_y
    if PROJECTIVE:
        divisor = tl.load(m + 8) + tl.load(m + 6) * at_x + tl.load(m + 7) * at_y
        is_point = divisor != 0
        divisor = tl.where(is_point, divisor, 1.0)
        from_x = tl.where(is_point, tl.div_rn(from_x, divisor), -2.0)
        from_y = tl.where(is_point, tl.div_rn(from_y, divisor), -2.0)
    # Limiting coordinates to one pixel beyond the edges does not change results, and keeps all indices defined.
    from_x = tl.minimum(tl.maximum(from_x, -2.0), width.to(tl.float32) + 1.0)
    from_y = tl.minimum(tl.maximum(from_y, -2.0), height.to(tl.float32) + 1.0)
    x = tl.load(x_at + n).to(tl.pointer_type(X))
    outside = tl.load(fill + channel)
    if NEAREST:
        left, top = tl.floor(from_x).to(tl.int32), tl.floor(from_y).to(tl.int32)
        value = _pixel(x, top, left, channel, height, width, outside, is_there, BORDER, CHANNELS)
    else:
        from_x = from_x - 0.5
        from_y = from_y - 0.5
        part_x = from_x - tl.floor(from_x)
        part_y = from_y - tl.floor(from_y)
        left, top = tl.floor(from_x).to(tl.int32), tl.floor(from_y).to(tl.int32)
        value = (
            (1.0 - part_y)
            * (1.0 - part_x)
            * _pixel(x, top, left, channel, height, width, outside, is_there, BORDER, CHANNELS)
        )
        value += (
            (1.0 - part_y)
            * part_x
            * _pixel(x, top, left + 1, channel, height, width, outside, is_there, BORDER, CHANNELS)
        )
        value += (
            part_y
            * (1.0 - part_x)
            * _pixel(x, top + 1, left, channel, height, width, outside, is_there, BORDER, CHANNELS)
        )
        value += (
            part_y * part_x * _pixel(x, top + 1, left + 1, channel, height, width, outside, is_there, BORDER, CHANNELS)
        )
    out = tl.load(out_at + n).to(tl.pointer_type(OUT))
    tl.store(out + row * columns + column, saturated(value, OUT), mask=is_there)


def warp_2d(
    out: DeviceSamples,
    x: DeviceSamples,
    matrix: np.ndarray | Tensor,
    *,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
) -> None:
    """`dalify.kernels.images.warp.warp_2d` for samples on a device.

    Coordinates are computed directly for every point, as in `warp_torch`.

    Raises:
        UnsupportedError: volumes, matrices on the device, empty images, samples with different numbers of channels, or
            32-bit integers.
    """
    if x.ndim != 3 or not isinstance(matrix, np.ndarray):
        raise UnsupportedError
    channels = x.extents(2)
    if not x.shapes.all() or (channels != channels[0]).any() or torch.int32 in (x.dtype, out.dtype):
        raise UnsupportedError
    count = int(channels[0])
    maps = bounded_matrix(matrix).astype(np.float32)
    outside = values_outside(fill_value, numpy_type(out.dtype), numpy_type(x.dtype), count, nearest).astype(np.float32)
    extents = np.column_stack([x.shapes[:, :2], out.shapes[:, :2]]).astype(np.int32)
    rows, columns, tiles = blocks_of(out.extents(0), out.extents(1) * count)
    described = uploaded_together(x.device, out.addresses, x.addresses, extents, maps, outside)
    launch(
        _warp, x.device, len(x) * tiles, *described, tiles, X=element_type(x.dtype), OUT=element_type(out.dtype),
        CHANNELS=count, PROJECTIVE=maps.shape[1] == 3, NEAREST=nearest, BORDER=fill_value is None, ROWS=rows,
        COLUMNS=columns,
    )  # fmt: skip
