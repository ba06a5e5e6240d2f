"""The samples of a chunk for kernels on the device: one buffer, and the offset and shape of each sample.

Offsets and shapes are on the host: kernels compute sizes of results without waiting for the device, and need a fixed
number of launches for a chunk, whatever the number of its samples and their shapes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.batch import Batch, repeated_shape, torch_dtype
from dalify.data.torch_unsigned import joined_torch, stacked_torch

Integers = np.ndarray[Any, np.dtype[np.int64]]


class DeviceSamples:
    """N tensors of one element type and number of dimensions in one buffer on the device.

    Args:
        block: the buffer, a tensor with one axis. There may be unused elements between samples.
        offsets: index of the first element of each sample, int64 ``[N]``, on the host.
        shapes: shapes, int64 ``[N, ndim]``, on the host.
        dense: the samples as one tensor ``[N, ...]`` if it exists; otherwise None.

    Attributes:
        table: tables precomputed from the shapes, or None.
    """

    __slots__ = ("block", "dense", "offsets", "shapes", "table")

    def __init__(self, block: Any, offsets: Integers, shapes: Integers, dense: Any = None) -> None:
        self.block = block
        self.offsets = offsets
        self.shapes = shapes
        self.dense = dense
        self.table: Any = None

    @staticmethod
    def of_batch(batch: Batch) -> DeviceSamples:
        """Return the samples of a batch on the device; the samples of a list are copied to one buffer."""
        if batch.dense is not None:
            return DeviceSamples.of_dense(batch.dense)
        if batch.ragged is not None:
            block, offsets, shapes = batch.ragged
            found = DeviceSamples(block.view(torch_dtype(batch.dtype)), offsets // batch.dtype.numpy.itemsize, shapes)
        else:
            shapes = batch.shape_array()
            offsets, _ = _element_offsets(shapes)
            found = DeviceSamples(joined_torch([sample.reshape(-1) for sample in batch.samples]), offsets, shapes)
        return found.stacked() if found.is_uniform else found

    @staticmethod
    def of_dense(dense: Any) -> DeviceSamples:
        """Return the samples of a tensor ``[N, ...]``."""
        dense = dense.contiguous()
        count, shape = len(dense), tuple(dense.shape[1:])
        offsets = np.arange(count, dtype=np.int64) * math.prod(shape)
        return DeviceSamples(dense.reshape(-1), offsets, repeated_shape(count, shape), dense)

    @staticmethod
    def empty(shapes: Integers, dtype: Any, device: Any) -> DeviceSamples:
        """Return uninitialized samples of the given shapes, int64 ``[N, ndim]``, contiguous."""
        if len(shapes) and (shapes == shapes[0]).all():
            return DeviceSamples.of_dense(torch.empty((len(shapes), *shapes[0].tolist()), dtype=dtype, device=device))
        offsets, size = _element_offsets(shapes)
        return DeviceSamples(torch.empty(size, dtype=dtype, device=device), offsets, shapes)

    def stacked(self) -> DeviceSamples:
        """Return the same samples, which have equal shapes, as one tensor."""
        shape = tuple(self.shapes[0].tolist())
        steps = np.diff(self.offsets)
        if len(steps) and (steps != steps[0]).any():
            return DeviceSamples.of_dense(stacked_torch(self.tensors()))
        start, size = int(self.offsets[0]), math.prod(shape)
        step = int(steps[0]) if len(steps) else size
        rows = self.block.as_strided((len(self), size), (step, 1), self.block.storage_offset() + start)
        return DeviceSamples.of_dense(rows.contiguous().view(len(self), *shape))

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def array(self) -> Any:
        """The same as `dense`; `Samples` has both attributes."""
        return self.dense

    @property
    def ndim(self) -> int:
        """Number of dimensions of one sample."""
        return self.shapes.shape[1]

    @property
    def dtype(self) -> Any:
        """Element type, as in torch."""
        return self.block.dtype

    @property
    def device(self) -> Any:
        """Device of the buffer, as in torch."""
        return self.block.device

    @property
    def addresses(self) -> Integers:
        """Address of the first element of each sample in the device's memory, int64 ``[N]``, on the host."""
        return self.offsets * self.block.element_size() + self.block.data_ptr()

    @property
    def is_uniform(self) -> bool:
        """Whether all shapes are equal."""
        return self.dense is not None or len(self) < 2 or bool((self.shapes == self.shapes[0]).all())

    def extents(self, axis: int) -> Integers:
        """Return one extent of all samples, int64 ``[N]``."""
        return self.shapes[:, axis]

    def reshaped(self, shapes: Integers) -> DeviceSamples:
        """Return the same elements with other shapes, int64 ``[N, ...]``; without a copy."""
        dense = self.dense
        if dense is not None:
            is_one = len(shapes) and bool((shapes == shapes[0]).all())
            dense = dense.reshape(len(shapes), *shapes[0].tolist()) if is_one else None
        return DeviceSamples(self.block, self.offsets, shapes, dense)

    def flattened(self) -> DeviceSamples:
        """Return the same elements with one axis; without a copy."""
        return self.reshaped(self.shapes.prod(1)[:, None])

    def with_axis(self, axis: int) -> DeviceSamples:
        """Return the same elements with a new axis of extent 1 at the given position."""
        return self.reshaped(np.insert(self.shapes, axis, 1, axis=1))

    def folded(self, axes: int) -> tuple[DeviceSamples, Integers | None]:
        """Return each index along the first axes as a separate sample, without a copy.

        Returns:
            the parts, and int64 ``[parts]``: the sample of each part; None without axes.
        """
        if axes == 0:
            return self, None
        counts = self.shapes[:, :axes].prod(1)
        sizes = self.shapes[:, axes:].prod(1)
        owner = np.repeat(np.arange(len(self)), counts)
        part = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        offsets, shapes = self.offsets[owner] + part * sizes[owner], self.shapes[owner, axes:]
        dense = None if self.dense is None else self.dense.flatten(0, axes)
        return DeviceSamples(self.block, offsets, shapes, dense), owner

    def take(self, indices: Integers) -> DeviceSamples:
        """Return some of the samples, without a copy."""
        return DeviceSamples(self.block, self.offsets[indices], self.shapes[indices])

    def numbers(self) -> Any:
        """Return samples of one element each as a tensor ``[N]``."""
        dense = self.dense if self.dense is not None else self.stacked().dense
        return dense.reshape(-1)

    def ragged(self) -> DeviceSamples:
        """Return the same samples without ``dense``, so that kernels process the elements along one axis."""
        return self if self.dense is None else DeviceSamples(self.block, self.offsets, self.shapes)

    def tensors(self) -> list[Any]:
        """Return the samples as views, for kernels that have to process them one by one."""
        if self.dense is not None:
            return list(self.dense.unbind(0))
        sizes = self.shapes.prod(1).tolist()
        return [
            self.block[start : start + size].view(tuple(shape))
            for start, size, shape in zip(self.offsets.tolist(), sizes, self.shapes.tolist(), strict=True)
        ]

    def __repr__(self) -> str:
        """Return counts and types without data."""
        return f"DeviceSamples({len(self)} of {self.ndim} dimensions, {self.dtype}, on {self.device})"


def _element_offsets(shapes: Integers) -> tuple[Integers, int]:
    sizes = shapes.prod(1, dtype=np.int64)
    ends = np.cumsum(sizes)
    return ends - sizes, int(ends[-1]) if len(ends) else 0
