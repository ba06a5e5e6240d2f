"""What users get out of a pipeline: tensors and lists of tensors, with DALI's methods.

They only hold references. Memory goes back to its pool when the last array, tensor or capsule that views it is gone, so a view stays
valid for as long as anybody keeps it, whatever the pipeline does meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dalify.base.errors import DeviceError, IndexingError, LayoutError, ShapeError
from dalify.base.optional import torch
from dalify.data.batch import Array, Batch, array_dtype, stack_samples
from dalify.data.dtypes import DALIDataType

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU", "tensor_list"]


class _Tensor:
    """One array with a layout and a note on where it came from."""

    device = "cpu"

    def __init__(self, array: Array, layout: str = "", origin: str | None = None) -> None:
        if layout and len(layout) != array.ndim:
            raise LayoutError(f"the layout {layout!r} has {len(layout)} letters for {array.ndim} dimensions.")
        self._array = array
        self._layout = layout
        self._origin = origin

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return array_dtype(self._array)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._array.ndim

    def shape(self) -> list[int]:
        """Return the extents."""
        return list(self._array.shape)

    def layout(self) -> str:
        """Return the layout, or ""."""
        return self._layout

    def set_layout(self, layout: str) -> None:
        """Give the dimensions other letters."""
        self.__init__(self._array, layout, self._origin)

    def source_info(self) -> str:
        """Return where the data came from, e.g. a file name; "" when that is not known."""
        return self._origin or ""

    def get_property(self, key: str) -> str:
        """Return ``layout`` or ``source_info``."""
        return {"layout": self._layout, "source_info": self.source_info()}[key]

    def squeeze(self, dim: int | None = None) -> bool:
        """Drop dimensions of extent one, or only ``dim`` where its extent is one; tell whether any was dropped."""
        shape = self._array.shape
        axes = range(len(shape)) if dim is None else (dim % len(shape),)
        drop = {axis for axis in axes if shape[axis] == 1}
        kept = [axis for axis in range(len(shape)) if axis not in drop]
        self._array = self._array.reshape([shape[axis] for axis in kept])
        self._layout = "".join(self._layout[axis] for axis in kept) if self._layout else ""
        return bool(drop)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._array.ctypes.data if isinstance(self._array, np.ndarray) else self._array.data_ptr()

    def copy_to_external(self, ptr: Any, *_: Any, **__: Any) -> None:
        """Copy the data to an address, as ctypes pointer or integer; the memory must be large enough and on the host."""
        _copy_out(self._array, ptr)

    def __dlpack__(self, **arguments: Any) -> Any:
        """Return a DLPack capsule of the same memory."""
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        """Return the DLPack device."""
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        """Return types and shape, no data."""
        name = type(self).__name__
        layout = f", layout={self._layout!r}" if self._layout else ""
        return f"{name}(dtype={self.dtype!s}, device={self.device!r}{layout}, shape={tuple(self._array.shape)})"


class TensorCPU(_Tensor):
    """An array in main memory.

    Args:
        object: anything that numpy can view: an array, a torch CPU tensor, an object with ``__dlpack__`` or a buffer.
        layout: letters of the dimensions, or "".
    """

    def __init__(self, object: Any, layout: str = "", origin: str | None = None, **_: Any) -> None:
        super().__init__(_host_array(object), layout, origin)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Numpy's description of the memory."""
        return self._array.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a numpy array of the same memory; a copy where asked for, or for another ``dtype``."""
        array: np.ndarray[Any, Any] = self._array
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def as_cpu(self) -> TensorCPU:
        """Return itself."""
        return self

    def __str__(self) -> str:
        """Return the data and their type."""
        return f"TensorCPU(\n{self._array},\n    {repr(self)[len('TensorCPU(') :]}"


class TensorGPU(_Tensor):
    """A tensor on the device.

    Args:
        object: a torch tensor on a device, or an object with ``__dlpack__`` or ``__cuda_array_interface__``.
        layout: letters of the dimensions, or "".
    """

    device = "gpu"

    def __init__(self, object: Any, layout: str = "", origin: str | None = None, **_: Any) -> None:
        super().__init__(_device_tensor(object), layout, origin)

    def as_cpu(self) -> TensorCPU:
        """Return a copy in main memory."""
        return TensorCPU(self._array.detach().cpu().numpy(), self._layout, self._origin)

    def device_id(self) -> int:
        """Return the number of the device."""
        return self._array.device.index or 0

    @property
    def stream(self) -> None:
        """Data are ready on torch's current stream; there is no other to wait for."""
        return None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's description of the memory; AttributeError on other devices."""
        return self._array.__cuda_array_interface__

    def __str__(self) -> str:
        """Return the data and their type."""
        return f"TensorGPU(\n{self._array},\n    {repr(self)[len('TensorGPU(') :]}"


class _TensorList:
    """The samples of a batch."""

    device = "cpu"

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._batch)

    def _checked(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexingError(f"there is no sample {index} in a batch of {len(self)}.")
        return index % len(self)

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return self._batch.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions of a sample."""
        return self._batch.ndim or 0

    def shape(self) -> list[tuple[int, ...]]:
        """Return the shape of each sample."""
        return self._batch.shapes()

    def layout(self) -> str:
        """Return the layout of a sample, or ""."""
        return self._batch.layout

    def set_layout(self, layout: str) -> None:
        """Give the dimensions of the samples other letters."""
        if layout and len(layout) != self.ndim:
            raise LayoutError(f"the layout {layout!r} has {len(layout)} letters for {self.ndim} dimensions.")
        self._batch = self._batch.with_layout(layout)

    def is_dense_tensor(self) -> bool:
        """Tell whether all samples have one shape, so that they are one tensor."""
        return self._batch.dense is not None or len(set(self._batch.shapes())) <= 1

    def _dense(self) -> Array:
        batch = self._batch
        if batch.dense is None:
            shapes = batch.shapes()
            odd = next((index for index, shape in enumerate(shapes) if shape != shapes[0]), None)
            if odd is not None:
                raise ShapeError(
                    f"the samples have different shapes and are not one tensor: sample 0 is {shapes[0]}, sample {odd} is {shapes[odd]}.",
                    hint="Bring them to one size in the pipeline (fn.resize, fn.crop, fn.pad), or take them one by one with list[i].",
                )
            if not shapes:
                return np.empty((0,), np.uint8)
            batch.dense = stack_samples(batch.samples)
        return batch.dense

    def data_ptr(self) -> int:
        """Return the address of the first element of the dense tensor."""
        dense = self._dense()
        return dense.ctypes.data if isinstance(dense, np.ndarray) else dense.data_ptr()

    def copy_to_external(self, ptr: Any, *_: Any, **__: Any) -> None:
        """Copy the dense data to an address on the host; the memory must be large enough."""
        _copy_out(self._dense(), ptr)

    def reset(self) -> None:
        """Let go of the data."""
        self._batch = Batch(None, [], self._batch.layout, self._batch.device, None, self._batch.dtype)

    def __repr__(self) -> str:
        """Return types and shapes, no data."""
        layout = f", layout={self.layout()!r}" if self.layout() else ""
        dense = self._batch.dense
        shape = f"{len(self)} x {tuple(dense.shape[1:])}" if dense is not None else str(self.shape())
        return f"{type(self).__name__}(dtype={self.dtype!s}, device={self.device!r}, num_samples={len(self)}{layout}, shape={shape})"


class TensorListCPU(_TensorList):
    """Samples in main memory.

    Args:
        source: a Batch, an array with a leading sample axis, or a list of arrays or TensorCPU.
        layout: letters of a sample's dimensions, or "".
    """

    def __init__(self, source: Any, layout: str = "", **_: Any) -> None:
        if not isinstance(source, Batch):
            if isinstance(source, (list, tuple)):
                source = Batch(None, [_host_array(item) for item in source], layout)
            else:
                source = Batch(_host_array(source), None, layout)
        super().__init__(source)

    def at(self, index: int) -> np.ndarray[Any, Any]:
        """Return a sample as a numpy array of the same memory."""
        return self._batch.samples[self._checked(index)]

    def __getitem__(self, index: int) -> TensorCPU:
        """Return a sample."""
        origins = self._batch.origins
        index = self._checked(index)
        return TensorCPU(self._batch.samples[index], self._batch.layout, None if origins is None else origins[index])

    def __iter__(self) -> Iterator[TensorCPU]:
        """Yield the samples."""
        return (self[index] for index in range(len(self)))

    def as_array(self) -> np.ndarray[Any, Any]:
        """Return all samples as one numpy array ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        return self._dense()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return ``as_array()``, converted or copied where asked for."""
        array = self._dense()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def as_tensor(self) -> TensorCPU:
        """Return all samples as one tensor ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        layout = self._batch.layout
        return TensorCPU(self._dense(), f"N{layout}" if layout else "")

    def as_reshaped_tensor(self, shape: Iterable[int]) -> TensorCPU:
        """Return the dense data under another shape."""
        return TensorCPU(self._dense().reshape(tuple(shape)))

    def as_cpu(self) -> TensorListCPU:
        """Return itself."""
        return self

    def _as_gpu(self) -> TensorListGPU:
        batch = self._batch
        dense = None if batch.dense is None else _device_tensor(batch.dense)
        samples = None if batch.dense is not None else [_device_tensor(sample) for sample in batch.samples]
        return TensorListGPU(Batch(dense, samples, batch.layout, "gpu", batch.origins, batch.dtype))

    @staticmethod
    def broadcast(tensor: Any, num_samples: int) -> TensorListCPU:
        """Return a list in which every sample is the same tensor."""
        array = _host_array(tensor)
        return TensorListCPU(Batch(np.broadcast_to(array, (num_samples, *array.shape)), None))

    @staticmethod
    def from_dlpack_list(objects: Iterable[Any], layout: str = "") -> TensorListCPU:
        """Return a list of objects that speak DLPack, without copies."""
        return TensorListCPU(list(objects), layout)

    def __str__(self) -> str:
        """Return the data and their type."""
        data = str(self._dense()) if self.is_dense_tensor() else "\n".join(str(sample) for sample in self._batch.samples)
        return f"TensorListCPU(\n{data},\n    {repr(self)[len('TensorListCPU(') :]}"


class TensorListGPU(_TensorList):
    """Samples on the device.

    Args:
        source: a Batch, a tensor with a leading sample axis, or a list of tensors or TensorGPU.
        layout: letters of a sample's dimensions, or "".
    """

    device = "gpu"

    def __init__(self, source: Any, layout: str = "", **_: Any) -> None:
        if not isinstance(source, Batch):
            if isinstance(source, (list, tuple)):
                source = Batch(None, [_device_tensor(item) for item in source], layout, "gpu")
            else:
                source = Batch(_device_tensor(source), None, layout, "gpu")
        super().__init__(source)

    def at(self, index: int) -> TensorGPU:
        """Return a sample."""
        return self[index]

    def __getitem__(self, index: int) -> TensorGPU:
        """Return a sample."""
        origins = self._batch.origins
        index = self._checked(index)
        return TensorGPU(self._batch.samples[index], self._batch.layout, None if origins is None else origins[index])

    def __iter__(self) -> Iterator[TensorGPU]:
        """Yield the samples."""
        return (self[index] for index in range(len(self)))

    def as_tensor(self) -> TensorGPU:
        """Return all samples as one tensor ``[N, ...]``.

        Raises:
            ShapeError: the samples have different shapes.
        """
        layout = self._batch.layout
        return TensorGPU(self._dense(), f"N{layout}" if layout else "")

    def as_reshaped_tensor(self, shape: Iterable[int]) -> TensorGPU:
        """Return the dense data under another shape."""
        return TensorGPU(self._dense().reshape(tuple(shape)))

    def as_cpu(self) -> TensorListCPU:
        """Return a copy in main memory."""
        batch = self._batch
        dense = None if batch.dense is None else batch.dense.detach().cpu().numpy()
        samples = None if batch.dense is not None else [sample.detach().cpu().numpy() for sample in batch.samples]
        return TensorListCPU(Batch(dense, samples, batch.layout, "cpu", batch.origins, batch.dtype))

    def device_id(self) -> int:
        """Return the number of the device."""
        samples = self._batch.samples
        return (samples[0].device.index or 0) if samples else 0

    @property
    def stream(self) -> None:
        """Data are ready on torch's current stream; there is no other to wait for."""
        return None

    @staticmethod
    def broadcast(tensor: Any, num_samples: int) -> TensorListGPU:
        """Return a list in which every sample is the same tensor."""
        one = _device_tensor(tensor)
        return TensorListGPU(Batch(one.expand(num_samples, *one.shape), None, "", "gpu"))

    @staticmethod
    def from_dlpack_list(objects: Iterable[Any], layout: str = "") -> TensorListGPU:
        """Return a list of objects that speak DLPack, without copies."""
        return TensorListGPU(list(objects), layout)

    def __str__(self) -> str:
        """Return the data and their type."""
        return str(self.as_cpu()).replace("TensorListCPU", "TensorListGPU", 1)


def tensor_list(batch: Batch) -> TensorListCPU | TensorListGPU:
    """Wrap a batch for users."""
    return TensorListGPU(batch) if batch.device == "gpu" else TensorListCPU(batch)


def _host_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, _Tensor):
        if value.device == "gpu":
            raise DeviceError("this tensor lies on the device.", hint="Copy it with .as_cpu() first.")
        return value._array
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def _device_tensor(value: Any) -> Any:
    if isinstance(value, _Tensor):
        value = value._array
    if isinstance(value, np.ndarray):
        return torch.as_tensor(value)
    return value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)


def _copy_out(array: Array, ptr: Any) -> None:
    contiguous = np.ascontiguousarray(array if isinstance(array, np.ndarray) else array.cpu().numpy())
    address = getattr(ptr, "value", ptr)
    target = (ctypes.c_ubyte * contiguous.nbytes).from_address(int(address))
    np.frombuffer(target, np.uint8)[...] = contiguous.reshape(-1).view(np.uint8)
