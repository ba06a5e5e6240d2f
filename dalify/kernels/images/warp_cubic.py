"""Cubic interpolation at arbitrary points of images: by OpenCV on the CPU, as in DALI, and with torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cv2
import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import saturate_cast, saturate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.joined import joined, per_element, split
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import BORDERS_TORCH
from dalify.kernels.images.warp_torch import points_torch

if TYPE_CHECKING:
    from torch import Tensor

_BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect_101": cv2.BORDER_REFLECT_101,
    "wrap": cv2.BORDER_WRAP,
}
_DIRECT = frozenset({"uint8", "int16", "uint16", "float32"})
_CHANNELS = 4  # maximum number of channels with fill values in OpenCV
_SHARPNESS = -0.75


def warp_cubic(
    out: Samples, x: Samples, points: tuple[Samples, Samples], border_mode: str, fill_value: Sequence[float]
) -> None:
    """Fill `out` with the values of `x` at given points.

    Args:
        out: N samples [H', W', C] of the type of `x`, output.
        x: N samples [H, W, C] of any numeric type, with at least one pixel.
        points: N samples [H', W'] of float32 for x, and for y, of the source points, relative to the corner of the
            first pixel.
        border_mode: border, a key of `_BORDERS`.
        fill_value: one value, or one for each channel, for the border mode "constant".
    """
    near: list[Samples] = []
    for axis, at in enumerate(points):
        sizes = per_element(x.extents(1 - axis).astype(np.float32), at)
        near.append(split(_brought_near(joined(at) - np.float32(0.5), sizes, border_mode).reshape(-1), at.shapes))
    for target, image, columns, rows in zip(out.arrays(), x.arrays(), *(axis.arrays() for axis in near), strict=True):
        source = image if image.dtype.name in _DIRECT else image.astype(np.float32)
        for axis in range(2):
            if border_mode == "reflect_101" and source.shape[axis] == 1:
                # The same image: OpenCV loops endlessly when reflecting a single pixel.
                source = np.repeat(source, 2, axis)
        channels = image.shape[2]
        values = [float(value) for value in fill_value] * (channels if len(fill_value) == 1 else 1)
        for first in range(0, channels, _CHANNELS):
            part = slice(first, first + _CHANNELS)
            sampled = cv2.remap(
                np.ascontiguousarray(source[..., part]), columns, rows, cv2.INTER_CUBIC,
                borderMode=_BORDERS[border_mode], borderValue=values[part],
            )  # fmt: skip
            saturate_cast(target[..., part], sampled.reshape(target[..., part].shape))


def _brought_near(points: np.ndarray, sizes: np.ndarray, border_mode: str) -> np.ndarray:
    """Return coordinates near the image with the same neighbors, because OpenCV takes long to reflect distant ones.

    Args:
        points: coordinates along one axis, float32.
        sizes: extents of the images, float32, in a form that broadcasts to the points.
        border_mode: as in `warp_cubic`.
    """
    if border_mode == "wrap":
        return np.mod(points, sizes)
    if border_mode == "reflect":
        return np.mod(points, 2 * sizes)
    if border_mode == "reflect_101":
        return np.mod(points, np.maximum(2 * sizes - 2, 1))
    return np.clip(points, np.float32(-4), sizes + 3)


def warp_cubic_torch(
    out: DeviceSamples, x: DeviceSamples, matrix: np.ndarray | Tensor, border_mode: str, fill_value: Sequence[float]
) -> None:
    """`warp_cubic` for samples of any shapes on the device.

    Args:
        out: N samples [H', W', C], output.
        x: N samples [H, W, C], on the same device. Samples have the same number of channels, and none is empty.
        matrix: maps from output points to source points, [N, 3, 3]; NumPy, or float32 on the device.
        border_mode: as in `warp_cubic`.
        fill_value: as in `warp_cubic`.
    """
    channels = len(fill_value)
    grid = Grid(out, x, 2, channels)
    outside = uploaded(fill_value, x.device, np.float32)
    rows, columns = (
        _neighbors(at - 0.5, grid.of_sample(x.shapes[:, axis]), border_mode)
        for axis, at in enumerate(points_torch(grid, matrix, 2))
    )
    base, width = grid.of_sample(x.offsets // channels), grid.of_sample(x.shapes[:, 1])
    total = torch.zeros((), device=x.device)
    for row, row_weight, row_inside in rows:
        begin = base + row * width
        for column, column_weight, column_inside in columns:
            index = begin + column
            value = grid.read(x, index).float().reshape(*index.shape, channels)
            if border_mode == "constant":
                value = torch.where((row_inside & column_inside).unsqueeze(-1), value, outside)
            total = total + (row_weight * column_weight).unsqueeze(-1) * value
    saturate_cast_torch(out.block, grid.whole(total))


def _neighbors(at: Tensor, size: Tensor, border_mode: str) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return the four pixels around each point along one axis, their weights, and which are inside the image."""
    at = at.nan_to_num(-4.0).clamp(-1e6, 1e6)
    base = at.floor()
    part = at - base
    place = BORDERS_TORCH["edge" if border_mode in ("constant", "replicate") else border_mode]
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for step in range(-1, 3):
        position = base.to(size.dtype) + step
        inside = (position >= 0) & (position < size)
        found.append((place(position, size), _weight((part - step).abs()), inside))
    return found


def _weight(distance: Tensor) -> Tensor:
    """Return the weight of a pixel at a distance of 0 to 2 (Keys, IEEE Trans. ASSP 29(6), 1981)."""
    a = _SHARPNESS
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return torch.where(distance <= 1, near, far)
