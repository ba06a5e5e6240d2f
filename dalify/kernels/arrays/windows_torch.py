"""Moves the elements of all samples of a chunk on the device, whatever their shapes: windows, borders, flips, axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.torch_unsigned import joined_torch, movable_torch
from dalify.kernels.arrays.convert import saturate_cast_torch, truncate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid, common_unit
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.dispatch import prefer_triton

if TYPE_CHECKING:
    from torch import Tensor


@prefer_triton("windows", "copy_windows")
def window_samples_torch(
    out: DeviceSamples, x: DeviceSamples, start: np.ndarray, *, fill_values: np.ndarray | float = 0
) -> None:
    """`dalify.kernels.arrays.gather.copy_windows` for samples on the device.

    Args:
        out: output.
        x: samples with the same number of dimensions.
        start: int64 [N, ndim]: start of the windows, which may exceed `x`.
        fill_values: value outside `x`: one, or one for each index of one axis, in a shape that broadcasts to samples.
    """
    if out.ndim == 0:
        truncate_cast_torch(out.block, x.block.reshape(out.block.shape))
        return
    fill_values = np.asarray(fill_values)
    is_inside = bool(((start >= 0) & (start + out.shapes <= x.shapes)).all())
    whole = ((start == 0) & (out.shapes == x.shapes)).all(0)
    grid = _grid(out, x, whole if is_inside or fill_values.size == 1 else np.zeros(out.ndim, bool))
    sources = [at + grid.of_sample(start[:, axis]) for axis, at in enumerate(grid.coordinates)]
    index = grid.sources(x, sources if is_inside else grid.limited(x, sources))
    truncate_cast_torch(out.block, grid.whole(grid.read(x, index)).reshape(out.block.shape))
    if is_inside:
        return
    filling = torch.empty(fill_values.size, dtype=out.dtype, device=out.device)
    saturate_cast_torch(filling, uploaded(fill_values.reshape(-1), out.device))
    value = movable_torch(filling)
    if fill_values.size > 1:
        axis = int(np.argmax(fill_values.shape))
        value = value.index_select(0, grid.coordinates[axis].reshape(-1).clamp(0, fill_values.size - 1))
        value = value.reshape(grid.coordinates[axis].shape)
    inside = grid.inside(x, sources)
    target = movable_torch(out.block)
    values = value.expand(inside.shape) if fill_values.size > 1 else value
    if grid.unit > 1:
        inside = inside.unsqueeze(-1).expand(*inside.shape, grid.unit)
    where = grid.whole(inside)
    other = grid.whole(values) if fill_values.size > 1 else values
    target.copy_(torch.where(where, target, other))


def pad_samples_torch(out: DeviceSamples, x: DeviceSamples, fill_value: np.ndarray) -> None:
    """`dalify.kernels.arrays.gather.pad_samples` for samples on the device; none of `out` is empty."""
    grid = Grid(out, x, out.ndim)
    values = movable_torch(grid.read(x, grid.sources(x, grid.limited(x, grid.coordinates))))
    outside = grid.of_sample(movable_torch(uploaded(fill_value, out.device)))
    movable_torch(out.block).copy_(grid.whole(torch.where(grid.inside(x, grid.coordinates), values, outside)))


def bordered_samples_torch(out: DeviceSamples, x: DeviceSamples, start: np.ndarray, border: str) -> None:
    """Copy windows; outside of a sample its elements are repeated.

    Args:
        out: output.
        x: samples with the same number of dimensions, not empty.
        start: int64 [N, ndim]: start of the windows.
        border: key of `dalify.kernels.arrays.gather.BORDERS`.
    """
    place = BORDERS_TORCH[border]
    grid = _grid(out, x, ((start == 0) & (out.shapes == x.shapes)).all(0))
    sources = [
        place(at + grid.of_sample(start[:, axis]), grid.of_sample(x.shapes[:, axis]))
        for axis, at in enumerate(grid.coordinates)
    ]
    truncate_cast_torch(
        out.block, grid.whole(grid.read(x, grid.sources(x, grid.limited(x, sources)))).reshape(out.block.shape)
    )


@prefer_triton("windows", "flip_axes")
def flip_samples_torch(out: DeviceSamples, x: DeviceSamples, flags: Mapping[int, np.ndarray]) -> None:
    """`dalify.kernels.arrays.gather.flip_axes` for samples on the device.

    Args:
        out: output with the shapes and element type of `x`.
        x: samples.
        flags: for axes of a sample, [N]; non-zero reverses the axis.
    """
    reversed_axes = {axis: values != 0 for axis, values in flags.items() if values.any()}
    if not reversed_axes:
        out.block.copy_(x.block)
        return
    kept = np.array([axis not in reversed_axes for axis in range(out.ndim)])
    grid = _grid(out, x, kept)
    sources = list(grid.coordinates)
    for axis, flag in reversed_axes.items():
        extent, at = grid.of_sample(x.shapes[:, axis]), sources[axis]
        is_reversed = grid.of_sample(flag.astype(np.int64))
        sources[axis] = at + is_reversed * (extent - 1 - 2 * at)
    movable_torch(out.block).copy_(movable_torch(grid.whole(grid.read(x, grid.sources(x, sources)))))


@prefer_triton("windows", "transpose_axes")
def transpose_samples_torch(out: DeviceSamples, x: DeviceSamples, order: Sequence[int]) -> None:
    """Reorder the axes of samples.

    Args:
        out: output.
        x: samples of the same element type.
        order: axis of `x` for each axis of `out`.
    """
    if out.dense is not None and x.dense is not None:
        out.dense.copy_(x.dense.permute(0, *(axis + 1 for axis in order)))
        return
    grid = Grid(out, x, out.ndim)
    sources = [grid.coordinates[order.index(axis)] for axis in range(x.ndim)]
    movable_torch(out.block).copy_(movable_torch(grid.whole(grid.read(x, grid.sources(x, sources)))))


def interleave_samples_torch(out: DeviceSamples, x: DeviceSamples, start: np.ndarray | None) -> None:
    """Copy images, or a window of each, from planes.

    Args:
        out: images [h, w, C], output; none is empty.
        x: planes [C, H, W] of the same element type.
        start: row and column of the windows, which are inside of the images, int64 [N, 2]; None for whole images.
    """
    if start is not None:
        windows = DeviceSamples.empty(out.shapes[:, [2, 0, 1]], x.dtype, x.device)
        window_samples_torch(windows, x, np.insert(start, 0, 0, axis=1))
        x = windows
    transpose_samples_torch(out, x, (1, 2, 0))


@prefer_triton("joining", "join_samples")
def joined_samples_torch(out: DeviceSamples, parts: Sequence[DeviceSamples], axis: int) -> None:
    """Concatenate samples along an axis.

    Args:
        out: output; none is empty.
        parts: samples of the same element type. Their extents along the axis add up to those of `out`; extents of
            samples without elements count as 0.
        axis: axis of a sample.
    """
    full = [part for part in parts if part.ndim == out.ndim and part.shapes.all(1).any()]
    if all(samples.dense is not None for samples in (out, *full)):
        out.dense.copy_(joined_torch([part.dense for part in full], axis + 1))
        return
    units = {common_unit(samples, out.ndim - 1) if axis < out.ndim - 1 else 0 for samples in (out, *full)}
    unit = units.pop() if len(units) == 1 else 0

    def runs(samples: DeviceSamples) -> DeviceSamples:
        """Return samples as rows; the elements of a row are adjacent in the result."""
        shapes = samples.shapes
        forms = [shapes[:, :axis].prod(1), shapes[:, axis:].prod(1) // (unit or 1), np.full(len(shapes), unit or 1)]
        return samples.reshaped(np.stack(forms, 1)).ragged()

    target, sources = runs(out), [runs(part) for part in full]
    grid = Grid(target, max(sources, key=lambda part: part.block.numel()), 2, unit or 1)
    row, at = grid.coordinates
    begin = np.zeros(len(out), np.int64)
    result = None
    for part in sources:
        place = at - grid.of_sample(begin)
        begin += np.where(part.shapes.all(1), part.shapes[:, 1], 0)
        values = movable_torch(grid.read(part, grid.sources(part, grid.limited(part, [row, place]))))
        # Elements after the end of this part repeat its edge; later parts overwrite them.
        is_behind = (place >= 0) if not unit or unit == 1 else (place >= 0)[:, None]
        result = values if result is None else torch.where(is_behind, values, result)
    assert result is not None, "dalify bug: a result of no elements"
    movable_torch(out.block).copy_(result.reshape(-1))


def fill_by_kind(out: DeviceSamples, kinds: Sequence[Any], fill: Callable[[DeviceSamples, np.ndarray], None]) -> None:
    """Compute samples of several kinds, those of a kind together.

    Args:
        out: output.
        kinds: kind of each sample, hashable.
        fill: called once for each kind with the samples to fill and their indices, int64 ascending.
    """
    found = list(dict.fromkeys(kinds))
    if len(found) == 1:
        fill(out, np.arange(len(out)))
        return
    blocks, offsets, start = [], np.zeros(len(out), np.int64), 0
    for kind in found:
        numbers = np.array([n for n, other in enumerate(kinds) if other == kind])
        part = DeviceSamples.empty(out.shapes[numbers], out.dtype, out.device)
        fill(part, numbers)
        blocks.append(part.block)
        offsets[numbers] = part.offsets + start
        start += part.block.numel()
    window_samples_torch(out, DeviceSamples(joined_torch(blocks), offsets, out.shapes), np.zeros_like(out.shapes))


def moved_torch(x: DeviceSamples, offsets: np.ndarray, size: int) -> Tensor:
    """Return the elements of samples in a buffer with other offsets.

    Args:
        x: samples, none of them empty.
        offsets: offset of each sample in the result, int64 [N].
        size: number of elements of the result.
    """
    if np.array_equal(x.offsets, offsets) and x.block.numel() == size:
        return x.block
    flat = x.flattened()
    block = torch.empty(size, dtype=x.dtype, device=x.device)
    window_samples_torch(DeviceSamples(block, offsets, flat.shapes), flat, np.zeros_like(flat.shapes))
    return block


def _reflect(at: Tensor, extent: Tensor) -> Tensor:
    place = at.remainder(2 * extent)
    return torch.minimum(place, 2 * extent - 1 - place)


def _reflect_101(at: Tensor, extent: Tensor) -> Tensor:
    period = (2 * extent - 2).clamp(min=1)
    place = at.remainder(period)
    return torch.minimum(place, period - place)


def _edge(at: Tensor, extent: Tensor) -> Tensor:
    return torch.minimum(at.clamp(min=0), extent - 1)


def _wrap(at: Tensor, extent: Tensor) -> Tensor:
    return at.remainder(extent)


# The keys and results of `dalify.kernels.arrays.gather.BORDERS`, for tensors.
BORDERS_TORCH: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "edge": _edge,
    "clamp": _edge,
    "reflect": _reflect,
    "reflect_1001": _reflect,
    "reflect_101": _reflect_101,
    "wrap": _wrap,
}


def _grid(out: DeviceSamples, x: DeviceSamples, whole: np.ndarray) -> Grid:
    """Return the grid of `out`; the last axes for which `whole` is True form units if both buffers allow it."""
    changed = np.flatnonzero(~whole)
    axes = max(1, int(changed[-1]) + 1 if len(changed) else 1)
    unit = common_unit(out, axes)
    if unit and unit == common_unit(x, axes):
        return Grid(out, x, axes, unit)
    return Grid(out, x, out.ndim)
