"""The samples of a batch in the executor.

Uniform samples are one dense array with a leading sample axis; samples of different shapes are contiguous in a block
of memory, or a list if users created them. All forms have the same interface. The public ``TensorListCPU`` and
``TensorListGPU`` wrap a Batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data.dtypes import BY_NAME, DALIDataType, from_numpy, is_bfloat16
from dalify.data.rows import Rows
from dalify.data.spec import Spec
from dalify.data.torch_unsigned import joined_torch, stacked_torch

# Samples of different shapes in one block: the block, uint8, an array or a tensor; the offset of each sample in bytes,
# int64 [N]; and the shapes, int64 [N, ndim]. Offsets and shapes are on the CPU.
Ragged = tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any]]

# A NumPy array on the CPU, a torch tensor on the GPU. Their types have too little in common for a protocol.
Array = Any

# Three cache lines: a multiple of the size of a pixel with 1, 2, 3 or 4 channels, so that kernels can treat a block
# with several images as one array of pixels.
ALIGNMENT_BYTES = 192

_TORCH_NAMES = {f"torch.{name}": dtype for name, dtype in BY_NAME.items()}


def torch_dtype(dtype: DALIDataType) -> Any:
    """Return the torch dtype of an element type."""
    return getattr(torch, str(dtype.numpy))


_torch: Any = torch  # torch does not annotate the parameter of from_numpy


def array_of(tensor: Any, dtype: DALIDataType) -> np.ndarray[Any, Any]:
    """Return a tensor on the CPU as an array that shares its memory; `dtype` is the element type of both."""
    tensor = tensor.detach()
    if dtype is DALIDataType.BFLOAT16:  # NumPy has no such type of its own
        return tensor.view(torch.int16).numpy().view(dtype.numpy)
    return tensor.numpy()


def tensor_of(array: np.ndarray[Any, Any]) -> Any:
    """Return a tensor of the same memory, including bfloat16, which torch.from_numpy does not support."""
    if is_bfloat16(array.dtype):
        return _torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return _torch.from_numpy(array)


def shared_tensor(array: Array) -> Any:
    """Return a tensor of the same memory; a copy if it is read-only or has a negative stride. A tensor is returned."""
    if not is_array(array):
        return array
    return tensor_of(array if array.flags.writeable and min(array.strides, default=0) >= 0 else array.copy())


def tensor_of_bytes(block: np.ndarray[Any, Any]) -> Any:
    """Return a block of memory, uint8, as a tensor that can be viewed as any type."""
    # torch cannot view a tensor of an empty NumPy array as another type, because of its stride.
    return _torch.from_numpy(block) if len(block) else torch.empty(0, dtype=torch.uint8)


def array_dtype(array: Array) -> DALIDataType:
    """Return the element type of a NumPy array or torch tensor.

    Raises:
        DTypeError: DALI has no such type.
    """
    if is_array(array):
        return from_numpy(array.dtype)
    found = _TORCH_NAMES.get(str(array.dtype))
    return found if found is not None else from_numpy(str(array.dtype).removeprefix("torch."))


class Batch:
    """N samples: dense (``[N, ...]``), ragged in a block, or a list of N arrays.

    Args:
        dense: all samples in one array, or None.
        samples: one array per sample, or None if `dense` or `ragged` is specified.
        layout: layout of a sample, or "".
        device: ``"cpu"`` (NumPy arrays) or ``"gpu"`` (torch tensors).
        origins: origin of each sample (file name, key), or None.
        dtype: element type; required only for an empty batch and for a ragged one.
        ragged: samples of different shapes in one block, see `Ragged`; or None.

    Attributes:
        parts: ragged batches that together hold the samples, in order, if it was joined from them; otherwise empty.
        is_lasting: the batch owns the memory of its samples, which is not scratch memory; set by the creator.
        rows: the samples, if they are ragged and concatenated without gaps; see `of_rows`.
        compiled: the samples for compiled code, once `Samples.of_batch` has created them.
    """

    __slots__ = (
        "_is_uniform",
        "_samples",
        "compiled",
        "dense",
        "device",
        "dtype",
        "is_lasting",
        "layout",
        "origins",
        "parts",
        "ragged",
        "rows",
    )

    def __init__(
        self,
        dense: Array | None = None,
        samples: list[Array] | None = None,
        layout: str = "",
        device: str = "cpu",
        origins: Sequence[str | None] | None = None,
        dtype: DALIDataType | None = None,
        ragged: Ragged | None = None,
    ) -> None:
        self.ragged = ragged
        self.dense = dense
        self._samples = samples
        self._is_uniform: bool | None = None
        self.layout = layout
        self.device = device
        self.origins = origins
        self.is_lasting = False
        self.parts: tuple[Batch, ...] = ()
        self.rows: Rows | None = None
        self.compiled: Any = None
        if dtype is None:
            if dense is not None:
                dtype = array_dtype(dense)
            elif samples:
                dtype = array_dtype(samples[0])
            else:
                dtype = DALIDataType.NO_TYPE
        self.dtype = dtype

    @staticmethod
    def of_rows(
        rows: Rows,
        layout: str = "",
        origins: Sequence[str | None] | None = None,
        dtype: DALIDataType | None = None,
    ) -> Batch:
        """Return samples on the CPU that differ only in their first extent, without a copy.

        Args:
            rows: the samples.
            layout: layout of a sample, or "".
            origins: see the class.
            dtype: element type; None for the type of the rows.
        """
        values: np.ndarray[Any, Any] = rows.values
        shapes = np.empty((len(rows), values.ndim), np.int64)
        shapes[:, 0] = rows.lengths
        shapes[:, 1:] = values.shape[1:]
        row_bytes = values.itemsize * math.prod(values.shape[1:])
        ragged = values.reshape(-1).view(np.uint8), rows.starts[:-1] * row_bytes, shapes
        batch = Batch(None, None, layout, "cpu", origins, dtype or array_dtype(values), ragged)
        batch.rows = rows
        return batch

    @property
    def samples(self) -> list[Array]:
        """The samples as a list; views of the dense array or of the block if there is one."""
        if self._samples is None:
            if self.ragged is not None:
                dtype = torch_dtype(self.dtype) if self.device == "gpu" else self.dtype.numpy
                self._samples = _views(self.ragged, dtype, self.dtype.numpy.itemsize)
            else:
                self._samples = list(self.dense) if self.dense is not None and self.dense.ndim > 1 else self._scalars()
        return self._samples

    def _scalars(self) -> list[Array]:
        # Iterating over a 1-D NumPy array yields scalars instead of 0-D arrays.
        dense = self.dense
        assert dense is not None, "dalify bug: a batch without data"
        return [dense[index, ...] for index in range(len(dense))]

    def __len__(self) -> int:
        if self.dense is not None:
            return len(self.dense)
        return len(self.ragged[1]) if self.ragged is not None else len(self._samples or ())

    @property
    def ndim(self) -> int | None:
        """Number of dimensions of one sample; None for an empty list."""
        if self.dense is not None:
            return self.dense.ndim - 1
        if self.ragged is not None:
            return self.ragged[2].shape[1]
        return self._samples[0].ndim if self._samples else None

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        if self.dense is not None:
            return [tuple(self.dense.shape[1:])] * len(self.dense)
        if self.ragged is not None:
            return [tuple(shape) for shape in self.ragged[2].tolist()]
        return [tuple(sample.shape) for sample in self.samples]

    @property
    def is_uniform(self) -> bool:
        """Whether all samples have the same shape."""
        if self.dense is not None:
            return True
        if self._is_uniform is None:
            # Lists are in the cache after a compiled call, functions of NumPy are not.
            if self.ragged is None:
                shapes: list[Any] = self.shapes()
            else:
                extents = self.ragged[2]
                shapes = (extents[:, 0] if extents.shape[1] == 1 else extents).tolist()
            self._is_uniform = shapes.count(shapes[0]) == len(shapes) if shapes else True
        return self._is_uniform

    def check_uniform(self, samples: str = "the samples", hint: str = "", line: SourceLine | None = None) -> None:
        """Raise if samples have different shapes.

        Args:
            samples: the samples in messages.
            hint: advice for the error.
            line: the user's line.

        Raises:
            ShapeError: names the first sample of another shape.
        """
        if not self.is_uniform:
            shapes = self.shapes()
            odd = next(index for index, shape in enumerate(shapes) if shape != shapes[0])
            raise ShapeError(
                f"{samples} have different shapes and cannot form one tensor: sample 0 is {shapes[0]}, sample {odd} is "
                f"{shapes[odd]}.",
                hint=hint,
                line=line,
            )

    def shape_array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the shape of each sample, int64 ``[N, ndim]``."""
        if self.ragged is not None:
            return self.ragged[2]
        if self.dense is not None:
            return repeated_shape(len(self.dense), tuple(self.dense.shape[1:]))
        return np.array([sample.shape for sample in self.samples], np.int64).reshape(len(self), -1)

    def spec_of(self, index: int) -> Spec:
        """Return the spec of one sample."""
        if self.dense is not None:
            shape = tuple(self.dense.shape[1:])
        elif self.ragged is not None:
            shape = tuple(self.ragged[2][index].tolist())
        else:
            shape = tuple(self.samples[index].shape)
        return Spec(self.dtype, None, self.layout, shape, self.device)

    def open_spec(self) -> Spec:
        """Return the spec that applies to all samples, without shapes."""
        return _open_spec(self.dtype, self.ndim, self.layout, self.device)

    def slice(self, start: int, stop: int) -> Batch:
        """Return the samples ``start`` to ``stop`` as views."""
        origins = None if self.origins is None else self.origins[start:stop]
        if self.dense is not None:
            return Batch(self.dense[start:stop], None, self.layout, self.device, origins, self.dtype)
        if self.ragged is not None:
            block, offsets, shapes = self.ragged
            part = block, offsets[start:stop], shapes[start:stop]
            return Batch(None, None, self.layout, self.device, origins, self.dtype, part)
        return Batch(None, self.samples[start:stop], self.layout, self.device, origins, self.dtype)

    def take(self, indices: np.ndarray[Any, Any]) -> Batch:
        """Return the samples at the given indices: copies of dense samples, the same arrays for lists."""
        origins = None if self.origins is None else [self.origins[index] for index in cast("list[int]", indices)]
        if self.dense is not None:
            at = torch.as_tensor(indices, device=self.dense.device) if self.device == "gpu" else indices
            return Batch(self.dense[at], None, self.layout, self.device, origins, self.dtype)
        if self.ragged is not None:
            block, offsets, shapes = self.ragged
            part = block, offsets[indices], shapes[indices]
            return Batch(None, None, self.layout, self.device, origins, self.dtype, part)
        samples = self.samples
        picked = [samples[index] for index in indices]
        return Batch(None, picked, self.layout, self.device, origins, self.dtype)

    @property
    def arrays(self) -> list[Array]:
        """The dense array alone, ``[N, ...]``, or all samples."""
        return self.samples if self.dense is None else [self.dense]

    @property
    def torch_device(self) -> Any:
        """The torch device of samples on the GPU; at least one."""
        return (self.arrays if self.ragged is None else self.ragged)[0].device

    def stacked(self) -> Array:
        """Return the samples, which have equal shapes, as one array ``[N, ...]``."""
        return stack_samples(self.samples) if self.dense is None else self.dense

    def map(
        self,
        function: Callable[[Array], Array],
        *,
        device: str | None = None,
        dtype: DALIDataType | None = None,
    ) -> Batch:
        """Apply a function to the dense array, or to one sample after the other; return the results as a batch.

        Args:
            function: takes an array and returns one with the same number of samples and dimensions.
            device: device of the results; None for the device of this batch.
            dtype: element type of the results; None for the type of this batch.
        """
        dense = None if self.dense is None else function(self.dense)
        samples = [function(sample) for sample in self.samples] if self.dense is None else None
        return Batch(dense, samples, self.layout, device or self.device, self.origins, dtype or self.dtype)

    def copied(self) -> Batch:
        """Return a copy of the data."""
        return self.map(lambda array: array.clone() if self.device == "gpu" else array.copy())

    def with_layout(self, layout: str) -> Batch:
        """Return the same data with another layout."""
        return Batch(self.dense, self._samples, layout, self.device, self.origins, self.dtype, self.ragged)

    def __repr__(self) -> str:
        """Return counts and types without data."""
        form = f"dense {tuple(self.dense.shape)}" if self.dense is not None else counted(len(self), "sample")
        return f"Batch({self.device} {self.dtype.text} {self.layout!r} {form})"


@lru_cache(1024)  # steps need it for each chunk
def _open_spec(dtype: DALIDataType, ndim: int, layout: str, device: str) -> Spec:
    return Spec(dtype, ndim, layout, None, device)


def repeated_shape(count: int, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return one shape for each of several samples, int64 ``[count, ndim]``."""
    shapes = np.empty((count, len(shape)), np.int64)
    shapes[:] = shape
    return shapes


def block_offsets(shapes: np.ndarray[Any, Any], item_bytes: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return the offsets of samples with shapes int64 ``[N, ndim]`` in a block, and its size; both in bytes."""
    # Ufuncs themselves: the functions that wrap them take several times as long for a chunk.
    sizes = np.multiply.reduce(shapes, 1) * item_bytes
    sizes += -sizes % ALIGNMENT_BYTES
    ends = np.empty(len(shapes) + 1, np.int64)
    ends[0] = 0
    np.add.accumulate(sizes, out=ends[1:])
    return ends[:-1], int(ends[-1])


def contiguous_strides(shapes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the strides of contiguous samples with shapes int64 ``[N, ndim]``, in elements, int64 ``[N, ndim]``."""
    strides = np.empty(shapes.shape, np.int64)
    strides[:, -1:] = 1
    for axis in range(shapes.shape[1] - 1, 0, -1):
        strides[:, axis - 1] = strides[:, axis] * shapes[:, axis]
    return strides


def packed(batch: Batch, allocate: Callable[[int], np.ndarray[Any, Any]]) -> Batch:
    """Return copies of samples on the CPU, of any shapes, in one block of memory.

    Args:
        batch: the samples.
        allocate: returns memory of a size in bytes.
    """
    shapes, dtype = batch.shape_array(), batch.dtype.numpy
    offsets, size_bytes = block_offsets(shapes, dtype.itemsize)
    block = allocate(size_bytes)
    row = block.view(dtype)
    for sample, start in zip(batch.samples, (offsets // dtype.itemsize).tolist(), strict=True):
        row[start : start + sample.size] = sample.reshape(-1)
    return Batch(None, None, batch.layout, batch.device, batch.origins, batch.dtype, (block, offsets, shapes))


def _views(ragged: Ragged, dtype: Any, item_bytes: int) -> list[Array]:
    block, offsets, shapes = ragged
    starts = offsets.tolist()
    if shapes.shape[1] == 1 and block.dtype == dtype:  # contents of files
        return [block[start : start + size] for start, size in zip(starts, shapes[:, 0].tolist(), strict=True)]
    lists = shapes.tolist()
    if not is_array(block) and len(block) % item_bytes == 0:
        # One call of torch for each sample instead of three.
        whole = block.view(dtype)
        steps = contiguous_strides(np.maximum(shapes, 1))  # the strides that torch has, also for empty samples
        positions = (offsets // item_bytes + whole.storage_offset()).tolist()
        return [
            whole.as_strided(shape, strides, position)
            for shape, strides, position in zip(lists, steps.tolist(), positions, strict=True)
        ]
    sizes = (shapes.prod(1) * item_bytes).tolist()
    return [
        block[start : start + size].view(dtype).reshape(shape)
        for start, size, shape in zip(starts, sizes, lists, strict=True)
    ]


def stack_samples(samples: list[Array], out: Array | None = None) -> Array:
    """Stack samples of equal shape into one dense array, into ``out`` if specified."""
    if is_array(samples[0]):
        if out is None:
            out = np.empty((len(samples), *samples[0].shape), samples[0].dtype)
        # Row assignment is faster than np.stack, which first creates a view with a new axis for every sample.
        for row, sample in enumerate(samples):
            out[row] = sample
        return out
    return stacked_torch(samples, out)


def joined_on_device(batch: Batch) -> Ragged:
    """Return a copy of samples on the device, which may have different shapes, as one block."""
    shapes = batch.shape_array()
    sizes = shapes.prod(1, dtype=np.int64) * batch.dtype.numpy.itemsize
    block = joined_torch([sample.reshape(-1) for sample in batch.samples]).view(torch.uint8)
    return block, np.cumsum(sizes) - sizes, shapes


def join_samples(samples: list[Array]) -> Array:
    """Return the elements of all samples, which may have different shapes, one after another."""
    rows = [sample.reshape(-1) for sample in samples]
    return np.concatenate(rows) if is_array(rows[0]) else joined_torch(rows)
