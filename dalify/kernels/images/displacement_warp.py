"""Displacement warps: every output pixel is sampled at a point near its own position.

Shared by the operators water and sphere, which differ in the formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIInterpType
from dalify.data.spec import Spec
from dalify.kernels.arrays.convert import fill_in_range
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.torch_unsigned import movable_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.warp import sample_2d
from dalify.kernels.images.warp_rules import check_interpolation
from dalify.kernels.images.warp_torch import sample_torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Points",
    "displace_cpu",
    "displace_samples_torch",
    "displaced_spec",
    "keep_unmasked_torch",
    "sphere_maps",
    "sphere_points_torch",
    "water_maps",
]

# Source points [N, 2, H, W] or [1, 2, H, W] of padded images [N, H, W, C], with their extents [N, 3] on the host.
Points = Callable[["Tensor", np.ndarray], "Tensor"]


def displaced_spec(x: Spec, interp_type: DALIInterpType) -> Spec:
    """Return the output spec, which is that of the input.

    Raises:
        LayoutError: the layout is not HWC.
        ArgumentValueError: the interpolation is not nearest or linear.
    """
    check_interpolation(interp_type)
    return x.replace(layout=visual_layout(x, ("HWC",)))


def water_maps(
    height: int,
    width: int,
    amplitudes: tuple[float, float],
    frequencies: tuple[float, float],
    phases: tuple[float, float],
) -> np.ndarray:
    """Return source points [1, 2, H, W] of standing waves: x is displaced by a sine of y, y by a cosine of x.

    Args:
        height: of the image.
        width: of the image.
        amplitudes: of the displacements of x and y, pixels.
        frequencies: radians per pixel.
        phases: radians.
    """
    rows, columns = np.arange(height, dtype=np.float32), np.arange(width, dtype=np.float32)
    moved_x = np.float32(amplitudes[0]) * np.sin(np.float32(frequencies[0]) * rows + np.float32(phases[0]))
    moved_y = np.float32(amplitudes[1]) * np.cos(np.float32(frequencies[1]) * columns + np.float32(phases[1]))
    maps = np.empty((1, 2, height, width), np.float32)
    maps[0, 0] = columns + moved_x[:, None]
    maps[0, 1] = rows[:, None] + moved_y
    return maps


def sphere_maps(height: int, width: int) -> np.ndarray:
    """Return source points [1, 2, H, W] displaced towards the center in proportion to the distance from it."""
    x = np.arange(width, dtype=np.float32) + 0.5 - width / 2
    y = np.arange(height, dtype=np.float32) + 0.5 - height / 2
    radius = np.sqrt(x**2 + y[:, None] ** 2) / max(width // 2, height // 2, 1)
    maps = np.empty((1, 2, height, width), np.float32)
    maps[0, 0] = x * radius + width / 2
    maps[0, 1] = y[:, None] * radius + height / 2
    return maps


def sphere_points_torch(x: Tensor, extents: np.ndarray) -> Tensor:
    """Return `sphere_maps` of padded images [N, H, W, C] with the given extents, as a tensor [N, 2, H, W]."""
    height, width = uploaded(extents[:, :2], x.device, np.float32).reshape(-1, 2, 1, 1).unbind(1)
    largest = uploaded(np.maximum(extents[:, :2].max(1) // 2, 1), x.device, np.float32).reshape(-1, 1, 1)
    at_x = torch.arange(x.shape[2], device=x.device, dtype=torch.float32) + 0.5 - width / 2
    at_y = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)[:, None] + 0.5 - height / 2
    radius = (at_x**2 + at_y**2).sqrt() / largest
    return torch.stack([at_x * radius + width / 2, at_y * radius + height / 2], 1)


def displace_cpu(
    out: np.ndarray, x: np.ndarray, maps: np.ndarray, mask: np.ndarray, interp_type: DALIInterpType, fill_value: float
) -> None:
    """Fill `out` [N, H, W, C] with `x` sampled at `maps`, or with `x` where `mask` [N] is 0."""
    nearest = interp_type == DALIInterpType.INTERP_NN
    fill_value = fill_in_range(fill_value, x.dtype).item()
    for n in range(len(x)):
        if mask[n]:
            sample_2d(out[n : n + 1], x[n : n + 1], maps, nearest=nearest, fill_value=fill_value)
        else:
            out[n] = x[n]


def displace_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    points: Points,
    mask: np.ndarray,
    interp_type: DALIInterpType,
    fill_value: float,
) -> None:
    """`displace_cpu` for samples on the device. `points` returns the maps of padded images, given their extents."""
    if not x.dtype.is_floating_point:
        fill_value = fill_in_range(fill_value, np.dtype(str(x.dtype).removeprefix("torch."))).item()
    _displace_padded(
        out, x, points=points, mask=mask, nearest=interp_type == DALIInterpType.INTERP_NN, fill_value=fill_value
    )


@on_padded
def _displace_padded(
    out: Tensor, x: Tensor, *, points: Points, mask: np.ndarray, nearest: bool, fill_value: float, extents: np.ndarray
) -> None:
    maps = points(x, extents)
    sample_torch(out, x, [maps[:, 1], maps[:, 0]], nearest=nearest, fill_value=fill_value, extents=extents[:, :2])
    keep_unmasked_torch(out, x, mask)


def keep_unmasked_torch(out: Tensor, x: Tensor, mask: np.ndarray) -> None:
    """Replace the images of `out` by those of `x`, both [N, H, W, C], where `mask` [N] is 0."""
    if not mask.all():
        is_kept = uploaded(mask == 0, x.device).reshape(-1, 1, 1, 1)
        target = movable_torch(out)
        target.copy_(torch.where(is_kept, movable_torch(x), target))
