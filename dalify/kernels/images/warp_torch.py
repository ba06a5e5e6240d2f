"""The warps of `warp` for images and volumes on the device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid, common_unit
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import widened
from dalify.kernels.arrays.windows_torch import bordered_samples_torch
from dalify.kernels.dispatch import prefer_triton
from dalify.kernels.images.frames import flat_matrices, per_frame_of_samples

if TYPE_CHECKING:
    from torch import Tensor


def warp_torch(
    out: Tensor, x: Tensor, matrix: np.ndarray | Tensor, *, nearest: bool, fill_value: float | Sequence[float] | None
) -> None:
    """Fill `out` with `x` warped by `matrix`, which maps output points to source points.

    Coordinates are computed directly for every point; the CPU kernels, except for uint8 with three channels, accumulate
    them along rows, as in DALI. In full-range noise, results differ by up to 1e-3 of the range, uint8 by at most 1.

    Args:
        out: [N, (D',) H', W', C].
        x: [N, (D,) H, W, C], on `out`'s device.
        matrix: [N, k, k + 1] for k = 2 or 3 spatial axes, or [N, 3, 3] for a projective map of images; NumPy, or
            float32 on the device.
        nearest: whether to use the pixel that contains the source point; otherwise interpolate linearly.
        fill_value: value outside the source, or one per channel; None repeats the border pixel.
    """
    points = _coordinates(tuple(out.shape[1:-1]), matrix, x.ndim - 2, x.device)
    sample_torch(out, x, points, nearest=nearest, fill_value=fill_value)


@prefer_triton("warping", "warp_2d")
def warp_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    matrix: np.ndarray | Tensor,
    *,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
) -> None:
    """`warp_torch` for samples of any shapes, in one pass over the results.

    Args:
        out: N samples [(D',) H', W', C], output, none of them empty.
        x: N samples [(D,) H, W, C], on the same device.
        matrix: as in `warp_torch`.
        nearest: as in `warp_torch`.
        fill_value: as in `warp_torch`.
    """
    if x.dense is not None and out.dense is not None:
        warp_torch(out.dense, x.dense, matrix, nearest=nearest, fill_value=fill_value)
        return
    axes = x.ndim - 1
    unit = common_unit(x, axes)
    # Empty images, and images with different numbers of channels, are computed one by one.
    if not x.shapes.all() or not unit or unit != common_unit(out, axes):
        for n, (target, source) in enumerate(zip(out.tensors(), x.tensors(), strict=True)):
            warp_torch(target[None], source[None], matrix[n : n + 1], nearest=nearest, fill_value=fill_value)
        return
    grid = Grid(out, x, axes, unit)
    _fill_grid(grid, x, points_torch(grid, matrix, axes), nearest=nearest, fill_value=fill_value)


def warp_folded_torch(
    out: DeviceSamples, x: DeviceSamples, matrix: np.ndarray | Tensor, *, nearest: bool, border_mode: str
) -> None:
    """Warp samples of any shapes with reflected or periodic borders.

    Args:
        out: N samples [H', W', C], output.
        x: N samples [H, W, C], on the same device. Samples have the same number of channels, and none is empty.
        matrix: as in `warp_torch`.
        nearest: as in `warp_torch`.
        border_mode: "reflect" (the edge pixel twice), "reflect_101" (once) or "wrap".
    """
    axes = x.ndim - 1
    source = x
    if border_mode == "wrap":  # pixels at an edge are interpolated with pixels of the opposite edge
        start = np.full_like(x.shapes, -1)
        start[:, axes] = 0
        source = DeviceSamples.empty(x.shapes - 2 * start, x.dtype, x.device)
        bordered_samples_torch(source, x, start, border_mode)
    grid = Grid(out, source, axes, int(x.shapes[0, axes]))
    points = [
        _folded(point, grid.of_sample(x.shapes[:, axis]), border_mode)
        for axis, point in enumerate(points_torch(grid, matrix, axes))
    ]
    _fill_grid(grid, source, points, nearest=nearest, fill_value=None)


def _folded(point: Tensor, size: Tensor, border_mode: str) -> Tensor:
    """Map coordinates relative to the corner into the image, which is padded by one pixel for "wrap"."""
    if border_mode == "wrap":
        return point.remainder(size) + 1
    if border_mode == "reflect":
        return size - (size - point.remainder(2 * size)).abs()
    inside = size - 1 - (size - 1 - (point - 0.5).remainder((2 * size - 2).clamp(min=1))).abs() + 0.5
    return torch.where(size > 1, inside, 0.5)


def _fill_grid(
    grid: Grid, x: DeviceSamples, points: list[Tensor], *, nearest: bool, fill_value: float | Sequence[float] | None
) -> None:
    out = grid.samples
    limits = [grid.of_sample(x.shapes[:, axis]) for axis in range(len(points))]
    base = grid.of_sample(x.offsets // grid.unit)
    pixels = x.block.view(-1, grid.unit)
    value = _sampled(pixels, base, limits, points, out.dtype, nearest=nearest, fill_value=fill_value)
    saturate_cast_torch(out.block, grid.whole(value))


def sample_torch(
    out: Tensor,
    x: Tensor,
    points: Sequence[Tensor],
    *,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
    extents: np.ndarray | None = None,
) -> None:
    """Fill `out` with the values of `x` at given points.

    Args:
        out: [N, (D',) H', W', C].
        x: [N, (D,) H, W, C], on `out`'s device.
        points: coordinates of the source points, relative to the corner of the first pixel, float32 [N, ...] or
            [1, ...], one tensor per axis, outermost first.
        nearest: as in `warp_torch`.
        fill_value: as in `warp_torch`.
        extents: extents of the images without padding, int64 [N, axes] on the host; None if there is no padding.
    """
    sizes, channels = tuple(x.shape[1:-1]), x.shape[-1]
    pixels = x.reshape(-1, channels)
    if 0 in sizes:  # as on the CPU, an empty image is a pixel with the fill value
        sizes = (1,) * len(sizes)
        pixel = torch.empty(channels, dtype=x.dtype, device=x.device)
        saturate_cast_torch(pixel, _fill_values(fill_value, channels, x.device))
        pixels = pixel.expand(len(x), channels)
    base = torch.arange(len(x), device=x.device).reshape(-1, *[1] * len(sizes)) * math.prod(sizes)
    memory = [torch.full((), size, dtype=torch.long, device=x.device) for size in sizes]
    limits = memory
    if extents is not None and (extents != sizes).any():
        limits = list(uploaded(extents, x.device).reshape(-1, *[1] * len(sizes), len(sizes)).unbind(-1))
    value = _sampled(pixels, base, limits, points, out.dtype, nearest=nearest, fill_value=fill_value, memory=memory)
    saturate_cast_torch(out, value.reshape(out.shape))


def _fill_values(fill_value: float | Sequence[float] | None, channels: int, device: torch.device) -> Tensor:
    return uploaded(0.0 if fill_value is None else fill_value, device, np.float32).expand(channels)


def _sampled(
    pixels: Tensor,
    base: Tensor,
    limits: Sequence[Tensor],
    points: Sequence[Tensor],
    dtype: torch.dtype,
    *,
    nearest: bool,
    fill_value: float | Sequence[float] | None,
    memory: Sequence[Tensor] | None = None,
) -> Tensor:
    """Return the values at given points as float32 [..., C].

    Args:
        pixels: pixels of all images, [total, C].
        base: index of the first pixel of the image of each point. All tensors but `pixels` broadcast to one shape.
        limits: extents of that image, integers.
        points: coordinates, as in `sample_torch`.
        dtype: dtype of the result, to which fill values are saturated.
        nearest: as in `warp_torch`.
        fill_value: as in `warp_torch`.
        memory: extents of the image with its padding; None if it has none.
    """
    memory = limits if memory is None else memory
    # Limiting coordinates to one pixel beyond the edges does not change results, and keeps all indices defined.
    limited = [
        torch.minimum(c.nan_to_num(-2.0).clamp(min=-2.0), size.to(torch.float32) + 1.0)
        for c, size in zip(points, limits, strict=True)
    ]
    outside = None
    if fill_value is not None:  # saturated as in `values_outside`
        wanted = _fill_values(fill_value, pixels.shape[1], pixels.device)
        kept = torch.empty(pixels.shape[1], dtype=dtype, device=pixels.device)
        saturate_cast_torch(kept, wanted)
        if not nearest:
            held = torch.empty(pixels.shape[1], dtype=pixels.dtype, device=pixels.device)
            saturate_cast_torch(held, kept.float())
            kept = held
        outside = kept.float()
    if nearest:
        return _fetch(pixels, base, [c.floor().to(base.dtype) for c in limited], limits, memory, outside)
    shifted = [c - 0.5 for c in limited]
    low = [c.floor() for c in shifted]
    fraction = [c - b for c, b in zip(shifted, low, strict=True)]
    value = torch.zeros((), device=pixels.device)
    for corner in itertools.product((0, 1), repeat=len(limits)):
        weight = torch.ones((), device=pixels.device)
        for step, part in zip(corner, fraction, strict=True):
            weight = weight * (part if step else 1.0 - part)
        at = [b.to(base.dtype) + step for b, step in zip(low, corner, strict=True)]
        value = value + weight.unsqueeze(-1) * _fetch(pixels, base, at, limits, memory, outside)
    return value


def points_torch(grid: Grid, matrix: np.ndarray | Tensor, axes: int) -> list[Tensor]:
    """Return the source coordinates of all units of a grid, one tensor per axis, outermost first.

    Args:
        grid: grid of the results.
        matrix: as in `warp_torch`.
        axes: number of spatial axes.
    """
    if isinstance(matrix, np.ndarray):
        matrix = _bounded(matrix)
    centers = [coordinate.to(torch.float32) + 0.5 for coordinate in reversed(grid.coordinates)]
    rows: list[Tensor] = []
    for row in range(matrix.shape[1]):
        total = grid.of_sample(matrix[:, row, axes])
        for column, center in enumerate(centers):
            total = total + grid.of_sample(matrix[:, row, column]) * center
        rows.append(total)
    return _divided(rows, axes)


def _bounded(matrix: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(np.asarray(matrix, np.float64), nan=0.0), -1e9, 1e9).astype(np.float32)


def _divided(rows: list[Tensor], axes: int) -> list[Tensor]:
    if len(rows) > axes:
        divisor = rows.pop()
        rows = [torch.where(divisor == 0, -2.0, row / divisor) for row in rows]
    return rows[::-1]


def matrices_torch(mtx: DeviceSamples, x: Samples | DeviceSamples, layout: str, rows: int, columns: int) -> Tensor:
    """Return a matrix on the device for each frame of the samples, float32 [frames, rows, columns].

    Values of the matrices are not copied to the host.

    Raises:
        ShapeError: a sample has neither one matrix nor one for each frame.
    """
    shapes = mtx.shapes.tolist()
    places = [
        start + np.arange(math.prod(shape)).reshape(shape) for start, shape in zip(mtx.offsets, shapes, strict=True)
    ]
    chosen = per_frame_of_samples(flat_matrices(places, columns, "matrix"), x, layout, "matrix", rows * columns)
    return mtx.block.float().index_select(0, uploaded(chosen.reshape(-1), mtx.device)).reshape(-1, rows, columns)


def inverted_torch(maps: Tensor) -> Tensor:
    """Return the inverses of affine [N, k, k + 1] or square maps on the device.

    Singular maps are not detected, which would wait for the device; elements that are not finite become 0.
    """
    if maps.shape[1] == maps.shape[2]:
        inverse = torch.linalg.inv_ex(widened(maps)).inverse
    else:
        linear = torch.linalg.inv_ex(widened(maps[:, :, :-1])).inverse
        inverse = torch.cat([linear, -linear @ widened(maps[:, :, -1:])], 2)
    return inverse.nan_to_num(0.0, 0.0, 0.0).clamp(-1e9, 1e9).float()


def _coordinates(sizes: tuple[int, ...], matrix: np.ndarray | Tensor, axes: int, device: torch.device) -> list[Tensor]:
    """Return the source coordinates of every output point, one tensor per axis, outermost first."""
    table = uploaded(_bounded(matrix), device) if isinstance(matrix, np.ndarray) else matrix
    m = table.reshape(*table.shape, *[1] * axes)
    points: list[Tensor] = []
    for axis in reversed(range(axes)):  # x is first in the matrix and last in the tensor
        shape = [1] * (axes + 1)
        shape[axis + 1] = sizes[axis]
        points.append((torch.arange(sizes[axis], device=device, dtype=torch.float32) + 0.5).reshape(shape))
    rows: list[Tensor] = []
    for row in range(table.shape[1]):
        total = m[:, row, axes]
        for column, point in enumerate(points):
            total = total + m[:, row, column] * point
        rows.append(total.expand(table.shape[0], *sizes))
    return _divided(rows, axes)


def _fetch(
    pixels: Tensor,
    base: Tensor,
    at: list[Tensor],
    limits: Sequence[Tensor],
    memory: Sequence[Tensor],
    outside: Tensor | None,
) -> Tensor:
    """Return the pixels at integer positions as float32 [..., C]."""
    index = torch.zeros((), dtype=base.dtype, device=pixels.device)
    valid = torch.ones((), dtype=torch.bool, device=pixels.device)
    for position, size, extent in zip(at, limits, memory, strict=True):
        valid = valid & (position >= 0) & (position < size)
        index = index * extent + torch.minimum(position.clamp(min=0), size - 1)
    index = (base + index).clamp(0, len(pixels) - 1)
    picked = movable_torch(pixels).index_select(0, index.reshape(-1))
    value = picked.view(pixels.dtype).reshape(*index.shape, pixels.shape[1]).float()
    return value if outside is None else torch.where(valid.unsqueeze(-1), value, outside)
