"""Resamples all images of a chunk on the device, whatever their shapes: one pass for each axis and tap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIInterpType
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid, common_unit
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.dispatch import prefer_triton
from dalify.kernels.images.resample_filters import axis_weights

if TYPE_CHECKING:
    from torch import Tensor

_NEAREST = int(DALIInterpType.INTERP_NN)

# The taps of one axis of all samples. There is one row for each output pixel of each sample: its first source pixel,
# int64 [rows], and weights, float32 [taps, rows]; then the first row of each sample, int64 [N].
_Taps = tuple[np.ndarray, np.ndarray, np.ndarray]


@prefer_triton("resampling", "resample")
def resample_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    start: np.ndarray,
    end: np.ndarray,
    *,
    min_filter: np.ndarray,
    mag_filter: np.ndarray,
    antialias: bool,
) -> None:
    """`dalify.kernels.images.resample.resample` for samples on the device.

    Args:
        out: N samples [h, w, C] or [d, h, w, C], output, none of them empty.
        x: N samples with as many axes, on the same device.
        start: as in `resample`.
        end: as in `resample`.
        min_filter: int [N].
        mag_filter: int [N].
        antialias: as in `resample`.

    Raises:
        ShapeError: an image is empty.
    """
    empty = np.flatnonzero(x.shapes.prod(1) == 0)
    if len(empty):
        sample = int(empty[0])
        raise ShapeError(
            f"an empty image with shape {tuple(x.shapes[sample].tolist())} cannot be resampled.", sample=sample
        )
    axes = x.ndim - 1
    taps = [
        _taps(x, out, axis, start, end, min_filter, mag_filter, antialias=antialias, is_last=axis == axes - 1)
        for axis in range(axes)
    ]
    unit = common_unit(x, axes)
    unit = unit if unit == common_unit(out, axes) else 0
    # Without units, the channel is another coordinate, which is not resampled.
    coordinates = axes if unit else axes + 1
    unit = unit or 1
    if out.dtype == x.dtype and bool((min_filter == _NEAREST).all() and (mag_filter == _NEAREST).all()):
        grid = Grid(out, x, coordinates, unit)
        sources = list(grid.coordinates)
        for axis, (first, _, rows) in enumerate(taps):
            sources[axis] = grid.picked(first, _row(grid, axis, rows, len(first)))
        movable_torch(out.block).copy_(movable_torch(grid.whole(grid.read(x, grid.sources(x, sources)))))
        return
    source = x
    for axis in reversed(range(axes)):
        shapes = source.shapes.copy()
        shapes[:, axis] = out.shapes[:, axis]
        low = np.zeros((len(x), axes), np.int64)
        if axis == axes - 1:  # only for the pixels that later passes read
            for other in range(axis):
                low[:, other], high = _range(taps[other], x.shapes[:, other])
                shapes[:, other] = high - low[:, other]
                first, weights, rows = taps[other]
                taps[other] = first - np.repeat(low[:, other], out.shapes[:, other]), weights, rows
        target = DeviceSamples.empty(shapes, torch.float32, x.device) if axis else out
        grid = Grid(target, source, coordinates, unit)
        saturate_cast_torch(target.block, grid.whole(_blended(grid, source, axis, taps[axis], low)))
        source = target


def _blended(grid: Grid, x: DeviceSamples, axis: int, taps: _Taps, low: np.ndarray) -> Tensor:
    """Return the weighted sums of the sources along one axis, float32 [..., unit]."""
    first, weights, rows = taps
    row = _row(grid, axis, rows, len(first))
    begin = grid.picked(first, row)
    last = grid.of_sample(x.shapes[:, axis] - 1)
    columns = uploaded(weights, x.device)
    sources = list(grid.coordinates)
    for other in range(axis):
        if low[:, other].any():
            sources[other] = sources[other] + grid.of_sample(low[:, other])
    total: Tensor | None = None
    for tap in range(len(weights)):
        # Taps with weight 0 of narrower filters may be outside the image.
        sources[axis] = torch.minimum(begin + tap, last)
        values = grid.read(x, grid.sources(x, sources)).float()
        weight = columns[tap].index_select(0, row.reshape(-1)).reshape(row.shape)
        if grid.unit > 1:
            weight = weight.unsqueeze(-1)
        total = values * weight if total is None else total.addcmul_(values, weight)
    assert total is not None, "dalify bug: a filter without taps"
    return total


def _row(grid: Grid, axis: int, rows: np.ndarray, count: int) -> Tensor:
    """Return the row of each unit in the table of an axis."""
    return (grid.of_sample(rows) + grid.coordinates[axis]).clamp(0, count - 1)


def _taps(
    x: DeviceSamples,
    out: DeviceSamples,
    axis: int,
    start: np.ndarray,
    end: np.ndarray,
    min_filter: np.ndarray,
    mag_filter: np.ndarray,
    *,
    antialias: bool,
    is_last: bool,
) -> _Taps:
    tables = [
        axis_weights(
            int(x.shapes[n, axis]),
            int(out.shapes[n, axis]),
            float(start[n, axis]),
            float(end[n, axis]),
            min_filter=int(min_filter[n]),
            mag_filter=int(mag_filter[n]),
            antialias=antialias,
            is_last=is_last,
        )
        for n in range(len(x))
    ]
    first = np.concatenate([each for each, _ in tables])
    weights = np.zeros((max(each.shape[1] for _, each in tables), len(first)), np.float32)
    rows = np.zeros(len(x), np.int64)
    place = 0
    for n, (each, table) in enumerate(tables):
        rows[n] = place
        weights[: table.shape[1], place : place + len(each)] = table.T
        place += len(each)
    return first, weights, rows


def _range(taps: _Taps, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first pixel that the rows of each sample read, and the end of the last one, int64 [N] each."""
    first, weights, rows = taps
    low = np.minimum.reduceat(first, rows)
    high = np.maximum.reduceat(first, rows) + len(weights)
    return low, np.minimum(high, extents)
