"""Tensors: single arrays of pipeline outputs, with DALI's methods.

A tensor only holds a reference: its memory returns to the pool when the last array, tensor or capsule that views it is
gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, IndexingError, LayoutError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data.batch import Array, array_dtype, tensor_of
from dalify.data.dtypes import DALIDataType, is_bfloat16
from dalify.data.exchange import address_of, copy_out, device_tensor, host_array, to_host
from dalify.data.formatting import format_tensor
from dalify.data.origin import source_info

_Origin = str | Callable[[], str | None] | None


class Tensor:
    """One array with a layout and an origin, which may be a function that finds it."""

    device = "cpu"

    def __init__(self, array: Array, layout: str = "", origin: _Origin = None) -> None:
        check_layout(layout, array.ndim)
        self._array = array
        self._layout = layout
        self._given_origin = origin

    @property
    def _origin(self) -> str | None:
        if callable(self._given_origin):
            self._given_origin = self._given_origin()
        return self._given_origin

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling: the origin, not the origins of the whole batch."""
        return {**self.__dict__, "_given_origin": self._origin}

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return array_dtype(self._array)

    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self._array.ndim

    def shape(self) -> list[int]:
        """Return the extents."""
        return list(self._array.shape)

    def layout(self) -> str:
        """Return the layout, or ""."""
        return self._layout

    def set_layout(self, layout: str) -> None:
        """Set the layout."""
        check_layout(layout, self._array.ndim)
        self._layout = layout

    def source_info(self) -> str:
        """Return the origin of the data, e.g. a file name; "" if unknown."""
        return source_info(self._origin) or ""

    def get_property(self, key: str) -> str | None:
        """Return ``layout`` or ``source_info``; None if unknown, and for other keys."""
        return {"layout": self._layout or None, "source_info": source_info(self._origin)}.get(key)

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterpret the bits of the elements as another type of the same size.

        Raises:
            DTypeError: the element sizes differ.
        """
        self._array = reinterpreted(self._array, new_type)

    def squeeze(self, dim: int | None = None) -> bool:
        """Remove dimensions of extent 1, or only ``dim`` if its extent is 1; return whether any was removed.

        Raises:
            IndexingError: ``dim`` is out of range.
        """
        shape = self._array.shape
        if dim is not None and not -len(shape) <= dim < len(shape):
            raise IndexingError(
                f"dimension {dim} is out of range for a tensor with {counted(len(shape), 'dimension')}."
            )
        axes = range(len(shape)) if dim is None else (dim % len(shape),)
        drop = {axis for axis in axes if shape[axis] == 1}
        kept = [axis for axis in range(len(shape)) if axis not in drop]
        self._array = self._array.reshape([shape[axis] for axis in kept])
        self._layout = "".join(self._layout[axis] for axis in kept) if self._layout else ""
        return bool(drop)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return address_of(self._array)

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copy the data to an address.

        Args:
            ptr: ctypes pointer or integer. The memory there must be large enough. It is on the host or, for data on a
                CUDA device, on this device.
            cuda_stream: CUDA stream that uses the memory, a ctypes pointer or an integer; the copy waits for it. None:
                torch's current stream.
            non_blocking: accepted but ignored; the copy is complete when the method returns.
            use_copy_kernel: accepted but ignored.
        """
        copy_out(self._array, ptr, cuda_stream)

    def __dlpack__(
        self,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the same memory, or of a copy; see the protocol for the arguments."""
        given: dict[str, Any] = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        arguments = {name: value for name, value in given.items() if value is not None}
        array = self._array
        if is_array(array) and is_bfloat16(array.dtype):  # DLPack supports bfloat16, NumPy does not
            return tensor_of(array).__dlpack__(**arguments)
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        """Return types and shape without data."""
        return format_tensor(self, show_data=False)

    def __str__(self) -> str:
        """Return the data and their type."""
        return format_tensor(self)


class TensorCPU(Tensor):
    """An array on the CPU.

    Args:
        object: any object that NumPy can view: an array, a torch CPU tensor, an object with ``__dlpack__`` or a buffer.
        layout: letters of the dimensions, or "".
    """

    def __init__(self, object: Any, layout: str = "", origin: _Origin = None, **_: Any) -> None:
        array = host_array(object)
        array_dtype(array)  # raises for unsupported element types
        super().__init__(array, layout or layout_of(object), origin or origin_of(object))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface; missing for bfloat16, which it does not support."""
        if is_bfloat16(self._array.dtype):
            raise AttributeError("__array_interface__")
        return self._array.__array_interface__

    @property
    def __array_struct__(self) -> Any:
        """The array interface for C code, which NumPy prefers because it takes half the time."""
        if is_bfloat16(self._array.dtype):
            raise AttributeError("__array_struct__")
        return self._array.__array_struct__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a NumPy array of the same memory; a copy if requested or for another ``dtype``."""
        return converted(self._array, dtype, copy)

    def __bytes__(self) -> bytes:
        """Return the bytes of all elements, in C order."""
        return self._array.tobytes()

    def as_cpu(self) -> TensorCPU:
        """Return self."""
        return self

    def _as_gpu(self) -> TensorGPU:
        """Return a copy on the GPU."""
        return TensorGPU(device_tensor(self._array), self._layout, self._origin)


class TensorGPU(Tensor):
    """A tensor on the GPU.

    Args:
        object: a torch tensor on a device, or an object with ``__dlpack__`` or ``__cuda_array_interface__``.
        layout: letters of the dimensions, or "".
    """

    device = "gpu"

    def __init__(self, object: Any, layout: str = "", origin: _Origin = None, **_: Any) -> None:
        super().__init__(on_device(object), layout or layout_of(object), origin or origin_of(object))

    def as_cpu(self) -> TensorCPU:
        """Return a copy on the CPU."""
        return TensorCPU(to_host(self._array), self._layout, self._origin)

    def device_id(self) -> int:
        """Return the index of the device."""
        return self._array.device.index or 0

    @property
    def stream(self) -> None:
        """None: the data is ready on torch's current stream."""
        return None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface; AttributeError on other devices."""
        return self._array.__cuda_array_interface__


def reinterpreted(array: Array, new_type: DALIDataType) -> Array:
    """Reinterpret the bits as elements of another type of the same size.

    Raises:
        DTypeError: the element sizes differ.
    """
    dtype = new_type.numpy
    if dtype.itemsize != array.itemsize:
        raise DTypeError(
            f"elements of {array.itemsize} bytes ({array_dtype(array)!s}) cannot be reinterpreted as {new_type!s}, "
            f"whose elements have {dtype.itemsize}.",
            hint="Convert them in the pipeline with fn.cast.",
        )
    return array.view(dtype if isinstance(array, np.ndarray) else getattr(torch, dtype.name))


def check_layout(layout: str, ndim: int) -> None:
    """Raise if a layout does not have one letter per dimension.

    Raises:
        LayoutError: the numbers of letters and dimensions differ.
    """
    if layout and len(layout) != ndim:
        letters = counted(len(layout), "letter")
        raise LayoutError(f"the layout {layout!r} has {letters} for {counted(ndim, 'dimension')}.")


def layout_of(value: Any) -> str:
    """Return the layout of a tensor of this module; "" for other values."""
    return value.layout() if isinstance(value, Tensor) else ""


def shared_layout(samples: Iterable[Any]) -> str:
    """Return the layout of the tensors of this module among the samples of a batch; "" if none has one.

    Raises:
        LayoutError: tensors have different layouts.
    """
    layout = ""
    for index, sample in enumerate(samples):
        own = layout_of(sample)
        if own and layout and own != layout:
            raise LayoutError(
                f"the samples of a batch must have the same layout: sample {index} has {own!r}, others {layout!r}.",
                hint="Transpose the samples, or specify layout= if the letters are wrong.",
                sample=index,
            )
        layout = layout or own
    return layout


def origin_of(value: Any) -> str | None:
    """Return the origin of a tensor; None for other values."""
    return value._origin if isinstance(value, Tensor) else None  # pyright: ignore[reportPrivateUsage]


def memory_of(tensor: Tensor) -> Array:
    """Return the NumPy array or torch tensor that a tensor consists of."""
    return tensor._array  # pyright: ignore[reportPrivateUsage]


def on_device(value: Any) -> Any:
    """Return a torch tensor on the device, see ``device_tensor``; also accepts tensors of this module."""
    return device_tensor(memory_of(value) if isinstance(value, Tensor) else value)


def converted(array: np.ndarray[Any, Any], dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """Implement NumPy's ``__array__`` protocol."""
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"elements of type {array.dtype} cannot be converted to {dtype} without a copy.")
        return array.astype(dtype)
    return array.copy() if copy else array
