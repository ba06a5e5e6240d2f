"""Tensor lists: the outputs of pipelines, with DALI's methods.

They only hold references. Memory returns to its pool when the last array, tensor or capsule that views it is gone, so
a view stays valid as long as it is referenced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from operator import getitem
from operator import index as as_index
from typing import Any, Generic, Self, SupportsIndex, TypeVar

import numpy as np

from dalify.base.errors import ArgumentTypeError, DTypeError, IndexingError, ShapeError, short_repr
from dalify.base.narrow import is_list_or_tuple
from dalify.base.wording import counted
from dalify.data.batch import Array, Batch, join_samples
from dalify.data.dtypes import DALIDataType
from dalify.data.exchange import address_of, contiguous, copy_out, host_array, moved
from dalify.data.formatting import format_batch
from dalify.data.tensor import (
    TensorCPU,
    TensorGPU,
    check_layout,
    converted,
    layout_of,
    on_device,
    origin_of,
    reinterpreted,
    shared_layout,
)

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU", "batch_of", "tensor_list"]


_T = TypeVar("_T", TensorCPU, TensorGPU)
_UNEQUAL_HINT = (
    "Make their shapes equal in the pipeline (fn.resize, fn.crop, fn.pad), or access single samples with list[i]."
)


class _TensorList(Generic[_T]):
    """The samples of a batch.

    Args:
        source: a Batch, a list like this, an array with a leading sample axis, or a list of arrays or tensors.
        layout: layout of a sample; "" or None keeps the layout of the tensors.
        contiguous: copy the tensors of a list, as in DALI, so that later changes of the tensors have no effect.
    """

    device = "cpu"
    _tensor: type[_T]
    _converted: Callable[[Any], Array]

    def __init__(self, source: Any, layout: str | None = "", contiguous: bool = True, **_: Any) -> None:
        layout = layout or ""
        if isinstance(source, type(self)):
            source = source._batch.with_layout(layout or source._batch.layout)
        if isinstance(source, Batch):
            self._batch = source
            return
        self._batch = _batch_of(source, layout, self.device, self._converted)
        if contiguous and is_list_or_tuple(source):
            self._batch = self._batch.copied()

    def __len__(self) -> int:
        return len(self._batch)

    def _normalize_index(self, index: SupportsIndex) -> int:
        try:
            number = as_index(index)
        except TypeError:
            raise ArgumentTypeError(
                f"a batch is indexed by the number of a sample; got {short_repr(index)}.",
                hint="Take several samples in a loop, or index batch.as_array() if all samples have the same shape.",
            ) from None
        if not -len(self) <= number < len(self):
            raise IndexingError(f"sample {number} is out of range for a batch of {len(self)}.")
        return number % len(self)

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return self._batch.dtype

    def ndim(self) -> int:
        """Return the number of dimensions of a sample."""
        return self._batch.ndim or 0

    def shape(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        return self._batch.shapes()

    def layout(self) -> str:
        """Return the layout of a sample, or ""."""
        return self._batch.layout

    def set_layout(self, layout: str) -> None:
        """Set the layout of the samples."""
        check_layout(layout, self.ndim())
        self._batch = self._batch.with_layout(layout)

    def is_dense_tensor(self) -> bool:
        """Return whether all samples have the same shape, so that they can be one tensor."""
        return self._batch.is_uniform

    def _dense(self) -> Array:
        batch = self._batch
        if batch.dense is None:
            if not len(batch):
                return np.empty((0,), np.uint8 if batch.dtype == DALIDataType.NO_TYPE else batch.dtype.numpy)
            batch.check_uniform(hint=_UNEQUAL_HINT)
        dense = contiguous(batch.stacked())  # a broadcast constant is not contiguous
        if dense is not batch.dense:  # samples are views of it from now on
            self._batch = Batch(dense, None, batch.layout, batch.device, batch.origins, batch.dtype)
        return dense

    def _elements(self) -> Array:
        """Return all elements, one sample after another: the dense tensor if the samples have the same shape."""
        return self._dense() if self.is_dense_tensor() else join_samples(self._batch.samples)

    def _joined(self) -> Array:
        """Return an array that starts at the first element; samples that are not adjacent are copied to a block."""
        batch = self._batch
        filled = [sample for sample in batch.samples if math.prod(sample.shape)]
        ends = [address_of(sample) + math.prod(sample.shape) * sample.dtype.itemsize for sample in filled]
        is_joined = all(address_of(sample) == end for sample, end in zip(filled[1:], ends, strict=False))
        if filled and is_joined and all(sample is contiguous(sample) for sample in filled):
            return filled[0]
        elements = join_samples(batch.samples)
        stops = accumulate(math.prod(sample.shape) for sample in batch.samples)
        samples = [
            elements[stop - math.prod(sample.shape) : stop].reshape(sample.shape)
            for sample, stop in zip(batch.samples, stops, strict=True)
        ]
        self._batch = Batch(None, samples, batch.layout, batch.device, batch.origins, batch.dtype)
        return elements

    def _dense_layout(self) -> str:
        layout, ndim = self._batch.layout, self._batch.ndim
        if ndim is None:  # an empty list has only the sample axis
            return ""
        return f"N{layout}" if layout or ndim == 0 else ""

    def data_ptr(self) -> int:
        """Return the address of the first element; the samples follow one another.

        Samples that are not adjacent are copied to one block first. Tensors and arrays that were created from them
        before keep the old memory.
        """
        return address_of(self._dense() if self.is_dense_tensor() else self._joined())

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copy the data to an address, one sample after another.

        Args:
            ptr: ctypes pointer or integer. The memory there must be large enough. It is on the host or, for data on a
                CUDA device, on this device.
            cuda_stream: CUDA stream that uses the memory, a ctypes pointer or an integer; the copy waits for it. None:
                torch's current stream.
            non_blocking: accepted but ignored; the copy is complete when the method returns.
            use_copy_kernel: accepted but ignored.
        """
        copy_out(self._elements(), ptr, cuda_stream)

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterpret the bits of the elements as another type of the same size.

        Raises:
            DTypeError: the element sizes differ.
        """
        self._batch = self._batch.map(lambda array: reinterpreted(array, new_type), dtype=new_type)

    def __getitem__(self, i: int) -> _T:
        origins = self._batch.origins
        index = self._normalize_index(i)
        origin = None if origins is None else partial(getitem, origins, index)
        return self._tensor(self._batch.samples[index], self._batch.layout, origin)

    def __iter__(self) -> Iterator[_T]:
        return (self[index] for index in range(len(self)))

    def as_tensor(self) -> _T:
        """Return all samples as one tensor ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        return self._tensor(self._dense(), self._dense_layout())

    def as_reshaped_tensor(self, shape: Iterable[int]) -> _T:
        """Return the data, one sample after another, with another shape.

        Raises:
            ShapeError: the number of elements differs.
        """
        elements, extents = self._elements(), tuple(shape)
        requested, available = math.prod(extents), math.prod(elements.shape)
        if requested != available:
            raise ShapeError(f"the list has {counted(available, 'element')}; the shape {extents} requires {requested}.")
        layout = f"N{self._batch.layout}"
        return self._tensor(elements.reshape(extents), layout if len(layout) == len(extents) else "")

    @classmethod
    def broadcast(cls, tensor: Any, num_samples: int) -> Self:
        """Return a list in which every sample is the same tensor."""
        return cls(Batch(None, [cls._converted(tensor)] * num_samples, layout_of(tensor), cls.device))

    def reset(self) -> None:
        """Release the data."""
        self._batch = Batch(None, [], self._batch.layout, self._batch.device, None, self._batch.dtype)

    def __repr__(self) -> str:
        """Return types and shapes without data."""
        return format_batch(self, show_data=False)

    def __str__(self) -> str:
        """Return the data and their type."""
        return format_batch(self)


class TensorListCPU(_TensorList[TensorCPU]):
    """Samples on the CPU.

    Args:
        source: a Batch, a TensorListCPU, an array with a leading sample axis, or a list of arrays or TensorCPU.
        layout: layout of a sample; "" or None keeps the layout of the tensors.
        contiguous: copy the tensors of a list.
    """

    _tensor = TensorCPU
    _converted = staticmethod(host_array)

    def at(self, index: int) -> np.ndarray[Any, Any]:
        """Return a sample as a NumPy array of the same memory."""
        return self._batch.samples[self._normalize_index(index)]

    def as_array(self) -> np.ndarray[Any, Any]:
        """Return all samples as one NumPy array ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        return self._dense()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return ``as_array()``, converted or copied if requested."""
        return converted(self._dense(), dtype, copy)

    def as_cpu(self) -> TensorListCPU:
        """Return self."""
        return self

    def _as_gpu(self) -> TensorListGPU:
        return TensorListGPU(moved(self._batch, "gpu"))

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Iterable[Any], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """Return a tensor list of objects that support DLPack.

        Args:
            list_of_objects: one for each sample.
            layout: layout of a sample.
            contiguous: copy samples of equal shapes to one block; False: no copies.
        """
        found = TensorListCPU(list(list_of_objects), layout or "", contiguous=False)
        if contiguous and found.is_dense_tensor():
            found._dense()
        return found


class TensorListGPU(_TensorList[TensorGPU]):
    """Samples on the GPU.

    Args:
        source: a Batch, a TensorListGPU, a tensor with a leading sample axis, or a list of tensors or TensorGPU.
        layout: layout of a sample; "" or None keeps the layout of the tensors.
        contiguous: copy the tensors of a list.
    """

    device = "gpu"
    _tensor = TensorGPU
    _converted = staticmethod(on_device)

    def at(self, index: int) -> TensorGPU:
        """Return a sample."""
        return self[index]

    def as_cpu(self) -> TensorListCPU:
        """Return a copy on the CPU."""
        return TensorListCPU(moved(self._batch, "cpu"))

    def device_id(self) -> int:
        """Return the index of the device."""
        samples = self._batch.samples
        return (samples[0].device.index or 0) if samples else 0

    @property
    def stream(self) -> None:
        """None: the data is ready on torch's current stream."""
        return None

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Iterable[Any], layout: str | None = None, stream: Any = None, contiguous: bool = False
    ) -> TensorListGPU:
        """Return a tensor list of objects that support DLPack.

        Args:
            list_of_objects: one for each sample.
            layout: layout of a sample.
            stream: accepted but ignored.
            contiguous: copy samples of equal shapes to one block; False: no copies.
        """
        found = TensorListGPU(list(list_of_objects), layout or "", contiguous=False)
        if contiguous and found.is_dense_tensor():
            found._dense()
        return found


def tensor_list(batch: Batch) -> TensorListCPU | TensorListGPU:
    """Wrap a batch for users."""
    return TensorListGPU(batch) if batch.device == "gpu" else TensorListCPU(batch)


def batch_of(tensors: TensorListCPU | TensorListGPU) -> Batch:
    """Return the batch that a tensor list wraps."""
    return tensors._batch  # pyright: ignore[reportPrivateUsage]


def _batch_of(source: Any, layout: str, device: str, convert: Callable[[Any], Array]) -> Batch:
    """Return a batch of an array with a leading sample axis, or of a list of arrays or tensors of one type."""
    if not is_list_or_tuple(source):
        dense = convert(source)
        if not dense.ndim:
            raise ShapeError("a scalar cannot be a list of samples.", hint="Pass an array with a leading sample axis.")
        batch = Batch(dense, None, layout, device)
    else:
        samples = [convert(item) for item in source]
        for index, sample in enumerate(samples):
            if sample.dtype != samples[0].dtype:
                raise DTypeError(
                    f"all samples must have the same element type; sample 0 has {samples[0].dtype}, "
                    f"sample {index} has {sample.dtype}."
                )
            if sample.ndim != samples[0].ndim:
                raise ShapeError(
                    f"all samples must have {counted(samples[0].ndim, 'dimension')} like sample 0; sample {index} has "
                    f"{sample.ndim}."
                )
        layout = layout or shared_layout(source)
        origins = [origin_of(item) for item in source]
        batch = Batch(None, samples, layout, device, origins if any(origins) else None)
    check_layout(layout, len(layout) if batch.ndim is None else batch.ndim)
    return batch
