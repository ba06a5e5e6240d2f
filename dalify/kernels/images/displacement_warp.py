"""Displacement warps: every output pixel is sampled at a point near its own position.

Shared by the operators water and sphere, which differ in the formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.data.dtypes import DALIInterpType
from dalify.data.spec import Spec
from dalify.kernels.arrays.torch_unsigned import movable_torch
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.warp import sample_2d
from dalify.kernels.images.warp_rules import check_interpolation
from dalify.kernels.images.warp_torch import sample_torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["displace_cpu", "displace_gpu", "displaced_spec", "sphere_maps", "water_maps"]


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


def displace_cpu(
    out: np.ndarray, x: np.ndarray, maps: np.ndarray, mask: np.ndarray, interp_type: DALIInterpType, fill_value: float
) -> None:
    """Fill `out` [N, H, W, C] with `x` sampled at `maps`, or with `x` where `mask` [N] is 0."""
    nearest = interp_type == DALIInterpType.INTERP_NN
    fill_value = fill_value if x.dtype.kind == "f" else np.trunc(fill_value)
    for n in range(len(x)):
        if mask[n]:
            sample_2d(out[n : n + 1], x[n : n + 1], maps, nearest=nearest, fill_value=fill_value)
        else:
            out[n] = x[n]


def displace_gpu(
    out: Tensor, x: Tensor, maps: np.ndarray, mask: np.ndarray, interp_type: DALIInterpType, fill_value: float
) -> None:
    """`displace_cpu` for torch tensors."""
    points = torch.as_tensor(maps, device=x.device)
    nearest = interp_type == DALIInterpType.INTERP_NN
    fill_value = fill_value if x.is_floating_point() else np.trunc(fill_value)
    sample_torch(out, x, [points[:, 1], points[:, 0]], nearest=nearest, fill=fill_value)
    if not mask.all():
        kept = torch.as_tensor(mask == 0, device=x.device)
        movable_torch(out)[kept] = movable_torch(x)[kept]
