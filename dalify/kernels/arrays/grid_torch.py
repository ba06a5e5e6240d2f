"""Positions of the elements of all samples of a chunk on the device, whatever their shapes.

A kernel for samples of several shapes computes all elements of all results at once. For each element it needs the
sample of the element, the coordinates in this sample, and the positions of the source elements in the buffer of the
input. The number of launches of the functions here depends only on the number of axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.upload_torch import uploaded

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_INT32 = 2**31 - 1


def common_unit(x: DeviceSamples, axes: int) -> int:
    """Return the product of the extents after the first `axes`; 0 if the buffer is not an array of such units."""
    units = x.shapes[:, axes:].prod(1)
    unit = int(units[0]) if len(units) else 0
    if unit == 0 or (units != unit).any() or (x.offsets % unit).any() or x.block.numel() % unit:
        return 0
    return unit


class Grid:
    """The units of all samples: elements, or all elements after some axes together.

    Args:
        samples: the results; none is empty, and their offsets ascend.
        x: the samples that are read; indices are int64 if either buffer is too large for int32.
        axes: number of axes that are coordinates.
        unit: elements of a unit: the product of the other extents.

    Attributes:
        sample: the sample of each unit. All tensors are integers that broadcast to one shape: ``[N, ...]`` if the
            samples have one shape, otherwise ``[units]``. In the latter, elements in gaps between samples belong to
            the sample before, with coordinates outside of it.
        coordinates: the index of each unit along each axis.
    """

    def __init__(self, samples: DeviceSamples, x: DeviceSamples, axes: int, unit: int = 1) -> None:
        device = samples.device
        self.samples = samples
        self.unit = unit
        largest = max(samples.block.numel(), x.block.numel())
        self.kind = torch.int32 if largest <= _LARGEST_INT32 else torch.int64
        self._is_dense = samples.dense is not None
        if self._is_dense:
            shape = (len(samples), *samples.shapes[0, :axes].tolist())
            forms = [[-1 if i == axis else 1 for i in range(axes + 1)] for axis in range(axes + 1)]
            self.sample, *self.coordinates = (
                torch.arange(extent, device=device, dtype=self.kind).reshape(form)
                for extent, form in zip(shape, forms, strict=True)
            )
            return
        starts = samples.offsets // unit
        total = samples.block.numel() // unit
        counts = np.diff(np.append(starts, total))
        counts[0] += starts[0]
        numbers = torch.arange(len(samples), device=device, dtype=self.kind)
        self.sample = torch.repeat_interleave(numbers, uploaded(counts, device), output_size=total)
        rest = torch.arange(total, device=device, dtype=self.kind) - self.of_sample(starts)
        places: list[Tensor] = []
        for axis in range(axes - 1, 0, -1):
            extent = self.of_sample(samples.shapes[:, axis])
            above = rest.div(extent, rounding_mode="floor")
            places.append(rest - above * extent)
            rest = above
        self.coordinates = [rest, *reversed(places)]

    def of_sample(self, values: Any) -> Tensor:
        """Return the value of the sample of each unit.

        Args:
            values: NumPy integers or floats [N], which become the integer type of the grid or float32; or a tensor [N]
                on the device, which keeps its type.
        """
        if isinstance(values, torch.Tensor):
            return values.reshape(self.sample.shape) if self._is_dense else values.index_select(0, self.sample)
        array = np.asarray(values)
        is_float = array.dtype.kind == "f"
        dtype = np.float32 if is_float else np.int32 if self.kind == torch.int32 else np.int64
        if len(array) and (array == array[0]).all():
            return torch.full(
                (), array[0].item(), dtype=torch.float32 if is_float else self.kind, device=self.samples.device
            )
        table = uploaded(array, self.samples.device, dtype)
        if self._is_dense:
            return table.reshape(self.sample.shape)
        return table.index_select(0, self.sample)

    def picked(self, table: np.ndarray, index: Tensor) -> Tensor:
        """Return the entries of an integer table [k] at the indices `index`."""
        values = uploaded(table, self.samples.device, np.int32 if self.kind == torch.int32 else np.int64)
        return values.index_select(0, index.reshape(-1)).reshape(index.shape)

    def sources(self, x: DeviceSamples, coordinates: Sequence[Tensor]) -> Tensor:
        """Return the index of the unit of `x` at given coordinates in the same sample, limited to the buffer of `x`.

        Args:
            x: samples with as many coordinates.
            coordinates: one for each axis, inside the sample.
        """
        axes = len(coordinates)
        place = self.of_sample(x.offsets // self.unit)
        for axis, coordinate in enumerate(coordinates):
            step = x.shapes[:, axis + 1 :].prod(1) // self.unit
            is_last = axis == axes - 1 and bool((step == 1).all())
            place = place + (coordinate if is_last else coordinate * self.of_sample(step))
        return place.clamp(0, max(0, x.block.numel() // self.unit - 1))

    def read(self, x: DeviceSamples, index: Tensor) -> Tensor:
        """Return the units of `x` at the given indices, [..., unit]; without the last axis for units of one element."""
        units = movable_torch(x.block)
        if not len(units):  # all samples are empty; the caller replaces elements outside of samples
            units = units.new_zeros(self.unit)
        if self.unit == 1:
            return units.index_select(0, index.reshape(-1)).view(x.dtype).reshape(index.shape)
        found = units.reshape(-1, self.unit).index_select(0, index.reshape(-1))
        return found.view(x.dtype).reshape(*index.shape, self.unit)

    def whole(self, values: Tensor) -> Tensor:
        """Return values [...] or [..., unit] in the shape of the buffer of the samples."""
        if not self._is_dense:
            return values.reshape(-1)
        axes = len(self.coordinates)
        shape = (len(self.samples), *self.samples.shapes[0, :axes].tolist())
        trailing = values.shape[axes + 1 :]
        return values.expand(*shape, *trailing).reshape(-1)

    def inside(self, x: DeviceSamples, coordinates: Sequence[Tensor]) -> Tensor:
        """Return which coordinates are inside the samples of `x`."""
        mask = torch.ones((), dtype=torch.bool, device=x.device)
        for axis, coordinate in enumerate(coordinates):
            mask = mask & (coordinate >= 0) & (coordinate < self.of_sample(x.shapes[:, axis]))
        return mask

    def limited(self, x: DeviceSamples, coordinates: Sequence[Tensor]) -> list[Tensor]:
        """Return the nearest coordinates inside the samples of `x`."""
        return [
            torch.minimum(coordinate.clamp(min=0), self.of_sample(x.shapes[:, axis] - 1))
            for axis, coordinate in enumerate(coordinates)
        ]
