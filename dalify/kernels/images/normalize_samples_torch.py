"""Crop, mirror, normalize and transpose all samples of a chunk on the device, whatever their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.upload_torch import uploaded

if TYPE_CHECKING:
    from torch import Tensor


def normalize_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    layout: str,
    output_layout: str,
    start: np.ndarray,
    *,
    mirror: np.ndarray,
    mean: np.ndarray | list[np.ndarray],
    multiplier: Any,
    shift: float,
    fill_values: np.ndarray,
) -> None:
    """`dalify.kernels.images.normalize_axes.normalize_axes` for samples on the device, in one pass over the results.

    Args:
        out: N samples, output, none of them empty.
        x: N samples.
        layout: layout of a sample of `x`.
        output_layout: layout of a sample of `out`, a permutation of `layout`.
        start: int64 [N, ndim], start of the windows, which may exceed `x`.
        mirror: [N], non-zero: reverse W.
        mean: float [N, C] or [N, 1], or a list of N vectors.
        multiplier: like `mean`: scale / standard deviation.
        shift: added at the end.
        fill_values: float32 [C], value of `out` outside `x`, and in channels that `x` does not have.
    """
    grid = Grid(out, x, out.ndim)
    coordinates = dict(zip(output_layout, grid.coordinates, strict=True))
    channel = coordinates["C"]
    is_inside = True
    if mirror.any():
        width = grid.of_sample(out.shapes[:, output_layout.index("W")])
        coordinates["W"] = coordinates["W"] + grid.of_sample((mirror != 0).astype(np.int64)) * (
            width - 1 - 2 * coordinates["W"]
        )
    for axis, letter in enumerate(layout):
        window = out.shapes[:, output_layout.index(letter)]
        first = start[:, axis]
        if first.any():
            coordinates[letter] = coordinates[letter] + grid.of_sample(first)
        is_inside = is_inside and bool(((first >= 0) & (first + window <= x.shapes[:, axis])).all())
    sources = [coordinates[letter] for letter in layout]
    index = grid.sources(x, sources if is_inside else grid.limited(x, sources))
    result = grid.read(x, index).to(torch.float32)
    result = (result - _by_channel(grid, mean, channel)) * _by_channel(grid, multiplier, channel) + shift
    if not is_inside:
        border = uploaded(fill_values, out.device, np.float32)
        other = border.index_select(0, channel.reshape(-1).clamp(0, len(fill_values) - 1)).reshape(channel.shape)
        result = torch.where(grid.inside(x, sources), result, other)
    saturate_cast_torch(out.block, grid.whole(result))


def _by_channel(grid: Grid, values: Any, channel: Tensor) -> Tensor:
    """Return a parameter for each element: the value of its sample and channel."""
    if isinstance(values, list):  # vectors of different lengths; a single value is for all channels
        widest = max(len(row) for row in values)
        table = np.stack([np.pad(row, (0, widest - len(row)), "edge") for row in values])
    else:
        table = np.asarray(values)
    table = table.astype(np.float32)
    width = table.shape[1]
    at = channel.clamp(0, width - 1)
    if len(table) and not (table == table[0]).all():
        at = grid.sample * width + at
    else:
        table = table[:1]
    found = uploaded(table.reshape(-1), grid.samples.device).index_select(0, at.reshape(-1))
    return found.reshape(at.shape)
