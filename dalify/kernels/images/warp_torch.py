"""The warps of `warp` for torch tensors, with one function for images and volumes.

Everything is a gather over the whole group.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.torch_unsigned import movable_torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["projected_points", "sample_torch", "warp_torch"]


def warp_torch(
    out: Tensor, x: Tensor, matrix: np.ndarray, *, nearest: bool, fill: float | Sequence[float] | None
) -> None:
    """Fill `out` with `x` warped by `matrix`, which maps output points to source points.

    Coordinates are computed directly for every point; the CPU kernel for float images accumulates them along rows, as
    DALI's does. For full-range noise the two differ by up to 1e-3 of the range, uint8 by at most 1.

    Args:
        out: [N, (D',) H', W', C].
        x: [N, (D,) H, W, C], on `out`'s device.
        matrix: [N, k, k + 1] for k = 2 or 3 spatial axes, or [N, 3, 3] for a projective map of images; numpy.
        nearest: use the pixel that contains the source point; otherwise interpolate linearly.
        fill: value outside the source, or one per channel; None repeats the border pixel.
    """
    points = _coordinates(tuple(out.shape[1:-1]), matrix, x.ndim - 2, x.device)
    sample_torch(out, x, points, nearest=nearest, fill=fill)


def sample_torch(
    out: Tensor, x: Tensor, points: Sequence[Tensor], *, nearest: bool, fill: float | Sequence[float] | None
) -> None:
    """Fill `out` with the values of `x` at given points.

    Args:
        out: [N, (D',) H', W', C].
        x: [N, (D,) H, W, C], on `out`'s device.
        points: coordinates of the source points, relative to the corner of the first pixel, float32 [N, ...] or
            [1, ...], one tensor per axis, outermost first.
        nearest: as in `warp_torch`.
        fill: as in `warp_torch`.
    """
    sizes = tuple(x.shape[1:-1])
    if 0 in sizes:
        sizes = (1,) * len(sizes)  # empty: as on the CPU, a pixel with the fill value
    # One pixel beyond the edge is equivalent to infinity, and keeps every index defined.
    limited = [
        c.nan_to_num(-2.0).clamp(-2.0, size + 1.0).expand(x.shape[0], *c.shape[1:])
        for c, size in zip(points, sizes, strict=True)
    ]
    wanted = torch.tensor(0.0 if fill is None else fill, dtype=torch.float32, device=x.device).expand(x.shape[-1])
    held = torch.empty(x.shape[-1], dtype=x.dtype, device=x.device)
    saturate_cast_torch(held, wanted)
    flat = x.reshape(x.shape[0], -1, x.shape[-1]) if x.numel() else held.expand(x.shape[0], 1, -1)
    outside = None
    if fill is not None:  # saturated to the result dtype and, for interpolation with pixels, to the source dtype
        kept = torch.empty(x.shape[-1], dtype=out.dtype, device=x.device)
        saturate_cast_torch(kept, wanted)
        if not nearest:
            saturate_cast_torch(held, kept.float())
        outside = (kept if nearest else held).float()
    if nearest:
        value = _fetch(flat, [c.floor().long() for c in limited], sizes, outside)
    else:
        shifted = [c - 0.5 for c in limited]
        base = [c.floor() for c in shifted]
        fraction = [c - b for c, b in zip(shifted, base, strict=True)]
        value = torch.zeros((), device=x.device)
        for corner in itertools.product((0, 1), repeat=len(sizes)):
            weight = torch.ones((), device=x.device)
            for step, part in zip(corner, fraction, strict=True):
                weight = weight * (part if step else 1.0 - part)
            at = [b.long() + step for b, step in zip(base, corner, strict=True)]
            value = value + weight.unsqueeze(-1) * _fetch(flat, at, sizes, outside)
    saturate_cast_torch(out, value.reshape(out.shape))


def _coordinates(sizes: tuple[int, ...], matrix: np.ndarray, axes: int, device: torch.device) -> list[Tensor]:
    """Return the source coordinates of every output point, one tensor per axis, outermost first."""
    bounded = np.clip(np.nan_to_num(np.asarray(matrix, np.float64), nan=0.0), -1e9, 1e9).astype(np.float32)
    m = torch.as_tensor(bounded, device=device).reshape(*bounded.shape, *[1] * axes)
    points: list[Tensor] = []
    for axis in reversed(range(axes)):  # x is first in the matrix and last in the tensor
        shape = [1] * (axes + 1)
        shape[axis + 1] = sizes[axis]
        points.append((torch.arange(sizes[axis], device=device, dtype=torch.float32) + 0.5).reshape(shape))
    rows: list[Tensor] = []
    for row in range(bounded.shape[1]):
        total = m[:, row, axes]
        for column, point in enumerate(points):
            total = total + m[:, row, column] * point
        rows.append(total.expand(bounded.shape[0], *sizes))
    if len(rows) > axes:
        divisor = rows.pop()
        rows = [torch.where(divisor == 0, -2.0, row / divisor) for row in rows]
    return rows[::-1]


def projected_points(size: Sequence[int], matrices: np.ndarray) -> np.ndarray:
    """Map the pixel centers of an image by projective transforms, on the CPU.

    Args:
        size: height and width of the image.
        matrices: [N, 3, 3].

    Returns:
        float32 [N, 2, H, W]: x and y, relative to the corner of the first pixel; -2 if a point has no image.
    """
    x = np.arange(size[1]) + 0.5
    y = np.arange(size[0])[:, None] + 0.5
    m = np.asarray(matrices, np.float64)[:, :, :, None, None]
    rows = m[:, :, 0] * x + m[:, :, 1] * y + m[:, :, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        points = rows[:, :2] / rows[:, 2:]
    return np.nan_to_num(points, nan=-2.0, posinf=-2.0, neginf=-2.0).astype(np.float32)


def _fetch(flat: Tensor, at: list[Tensor], sizes: tuple[int, ...], outside: Tensor | None) -> Tensor:
    """Return the pixels at integer positions as float32 [N, ..., C]."""
    index = torch.zeros((), dtype=torch.long, device=flat.device)
    valid = torch.ones((), dtype=torch.bool, device=flat.device)
    for position, size in zip(at, sizes, strict=True):
        valid = valid & (position >= 0) & (position < size)
        index = index * size + position.clamp(0, size - 1)
    channels = flat.shape[-1]
    picked = movable_torch(flat).gather(1, index.reshape(flat.shape[0], -1, 1).expand(-1, -1, channels))
    value = picked.view(flat.dtype).reshape(*index.shape, channels).float()
    return value if outside is None else torch.where(valid.unsqueeze(-1), value, outside)
