"""Correlation of images and volumes with a filter for each sample, for all samples of a chunk on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.grid_torch import Grid, common_unit
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import bordered_samples_torch

if TYPE_CHECKING:
    from torch import Tensor


def correlate_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    filters: DeviceSamples,
    anchors: np.ndarray,
    border: str,
    fills: Tensor | None,
    first_axis: int,
) -> None:
    """Fill `out` with the sums of the products of filters and data, in float32, rounded once.

    Samples are padded first. The number of launches depends only on the extents of the largest filter.

    Args:
        out: N samples, output, none of them empty.
        x: N samples, any dtype.
        filters: N filters, which have only the filtered axes, any dtype; their values are not copied to the host.
        anchors: element of the filter aligned with the result, int64 [N, filtered axes].
        border: "reflect_101", "reflect_1001", "wrap", "clamp" or "constant".
        fills: values of the border "constant", float32 [N] on the device; None for 0.
        first_axis: the first filtered axis of a sample; the others follow it.
    """
    filtered = range(first_axis, first_axis + filters.ndim)
    largest = filters.shapes.max(0)
    shapes, begin = out.shapes.copy(), np.zeros_like(out.shapes)
    shapes[:, filtered] += largest - 1
    begin[:, filtered] = -anchors
    source = _bordered(x, shapes, begin, border, fills)

    taps = np.stack(np.unravel_index(np.arange(largest.prod()), largest), 1)
    steps = np.stack([filters.shapes[:, axis + 1 :].prod(1) for axis in range(filters.ndim)], 1)
    is_inside = np.all(taps[:, None] < filters.shapes, axis=2)  # [taps, N]: smaller filters have fewer taps
    used = np.any(is_inside, axis=1)
    taps, is_inside = taps[used], is_inside[used]
    places = filters.offsets + np.where(is_inside, (taps[:, None] * steps).sum(2), 0)
    weights = filters.block.float().index_select(0, uploaded(places.reshape(-1), x.device)).reshape(places.shape)

    dense: Any = source.dense
    unit = 0 if dense is not None else common_unit(source, filtered.stop) and common_unit(out, filtered.stop)
    grid = Grid(out, source, filtered.stop if unit else out.ndim, unit or 1)
    origin, strides = None, []
    if out.dense is None or dense is None:
        origin = grid.sources(source, grid.limited(out, grid.coordinates))
        strides = [grid.of_sample(source.shapes[:, axis + 1 :].prod(1) // grid.unit) for axis in filtered]
    total: Tensor | None = None
    for number, tap in enumerate(taps.tolist()):
        if origin is None:
            values: Any = dense
            for axis, at in zip(filtered, tap, strict=True):
                values = values.narrow(axis + 1, at, int(out.shapes[0, axis]))
        else:
            index = origin
            for stride, at in zip(strides, tap, strict=True):
                index = torch.add(index, stride, alpha=at) if at else index
            values = grid.read(source, index)
        weight = grid.of_sample(weights[number])
        form = (*weight.shape, *[1] * (values.ndim - weight.ndim))
        product = values.float() * weight.reshape(form)
        if not is_inside[number].all():  # a weight of 0 would not be sufficient, because data may be infinite
            is_own = grid.of_sample(uploaded(is_inside[number], x.device))
            product = torch.where(is_own.reshape(form), product, 0.0)
        total = product if total is None else total.add_(product)
    assert total is not None, "dalify bug: a filter without elements"
    saturate_cast_torch(out.block, total.reshape(-1))


def _bordered(
    x: DeviceSamples, shapes: np.ndarray, begin: np.ndarray, border: str, fills: Tensor | None
) -> DeviceSamples:
    """Return windows of samples, which may exceed them, as float32; `x` itself if the windows are whole samples."""
    if not begin.any() and np.array_equal(shapes, x.shapes):
        return x
    result = DeviceSamples.empty(shapes, torch.float32, x.device)
    if border != "constant":
        bordered_samples_torch(result, x, begin, border)
        return result
    grid = Grid(result, x, x.ndim)
    sources = [at + grid.of_sample(begin[:, axis]) for axis, at in enumerate(grid.coordinates)]
    values = grid.read(x, grid.sources(x, grid.limited(x, sources))).float()
    fill = 0.0 if fills is None else grid.of_sample(fills)
    result.block.copy_(grid.whole(torch.where(grid.inside(x, sources), values, fill)))
    return result
