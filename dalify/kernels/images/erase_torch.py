"""Fills regions of all samples of a chunk on the device, whatever their shapes."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.dispatch import prefer_triton


@prefer_triton("erasing", "erase_regions")
def erase_samples_torch(
    out: DeviceSamples, x: DeviceSamples, regions: np.ndarray, fill_values: np.ndarray, channel_axis: int
) -> None:
    """Copy samples and fill regions of the copies.

    Args:
        out: N samples with the shapes, offsets and element type of `x`, output; none is empty.
        x: N samples.
        regions: int64 [N, k, 2, axes]: starts and ends; a region is empty if an end is not above the start.
        fill_values: [N, C], values that the element type can represent; or [N, 1] for all channels.
        channel_axis: axis of the channels of a sample.
    """
    grid = Grid(out, x, out.ndim)
    mask = torch.zeros((), dtype=torch.bool, device=out.device)
    for region in range(regions.shape[1]):
        within = torch.ones((), dtype=torch.bool, device=out.device)
        for axis, at in enumerate(grid.coordinates):
            begin, end = regions[:, region, 0, axis], regions[:, region, 1, axis]
            if begin.any() or (end < x.extents(axis)).any():
                within = within & (at >= grid.of_sample(begin)) & (at < grid.of_sample(end))
        mask = mask | within
    table = torch.empty(fill_values.size, dtype=out.dtype, device=out.device)
    saturate_cast_torch(table, uploaded(fill_values.reshape(-1), out.device))
    place = grid.sample * fill_values.shape[1] + grid.coordinates[channel_axis].clamp(0, fill_values.shape[1] - 1)
    values = movable_torch(table).index_select(0, place.reshape(-1)).reshape(place.shape)
    source = movable_torch(x.block)
    movable_torch(out.block).copy_(torch.where(grid.whole(mask), grid.whole(values), source))
