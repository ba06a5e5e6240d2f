"""Conversion between tensors and arrays of other libraries without copies, and copies to an address."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from operator import index as as_index
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, DeviceError, ShapeError, short_repr
from dalify.base.narrow import is_array, is_list_or_tuple
from dalify.base.optional import torch
from dalify.base.processors import default_device
from dalify.data.batch import Array, Batch, array_dtype, array_of, tensor_of
from dalify.data.dtypes import is_bfloat16


def host_array(value: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array of the same memory.

    Args:
        value: an array, a torch CPU tensor, an object with ``__array_interface__``, ``__array__``, ``__dlpack__``, a
            DLPack capsule or a buffer; numbers and nested lists become new arrays.

    Raises:
        DeviceError: the data is on a GPU.
        ShapeError: nested lists of different lengths.
    """
    if is_array(value):
        return value
    if getattr(value, "device", "cpu") == "gpu":
        raise DeviceError("this tensor is on the GPU.", hint="Copy it with .as_cpu() first.")
    if hasattr(value, "__cuda_array_interface__"):
        raise DeviceError(
            f"this {type(value).__name__} is on the GPU.", hint="Copy it to the CPU first, or use TensorGPU."
        )
    if isinstance(value, (bytes, bytearray, memoryview)):
        return np.frombuffer(value, np.uint8) if not isinstance(value, memoryview) else np.asarray(value)
    if type(value).__name__ == "PyCapsule":
        return torch.from_dlpack(value).numpy()
    if is_list_or_tuple(value):
        try:
            return np.asarray(value)
        except ValueError as error:
            raise ShapeError(f"these nested lists cannot be converted to an array: {error}") from None
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def device_tensor(value: Any) -> Any:
    """Return a torch tensor on the device: of the same memory if it is on the device, otherwise a copy.

    Args:
        value: a torch tensor, an object with ``__dlpack__`` or ``__cuda_array_interface__``, or a NumPy array.

    Raises:
        DeviceError: the data must be copied, and torch finds no accelerator.
    """
    if isinstance(value, torch.Tensor):
        return value
    if is_array(value):
        # torch warns about read-only memory, and would share the memory on its CPU device.
        return torch.tensor(value, device=_device()) if not is_bfloat16(value.dtype) else tensor_of(value).to(_device())
    if hasattr(value, "__cuda_array_interface__"):
        return cuda_tensor(value)
    return torch.from_dlpack(value)


def cuda_tensor(value: Any) -> Any:
    """Return a torch tensor of the same memory.

    Args:
        value: an object with ``__cuda_array_interface__``. If it also has ``__dlpack__``, torch's current stream waits
            for the stream that writes the data, and the tensor stays on its device.
    """
    if hasattr(value, "__dlpack__"):
        with suppress(BufferError, RuntimeError, TypeError):  # for example an element type that DLPack does not have
            return torch.from_dlpack(value)
    return torch.as_tensor(value, device="cuda")


def to_host(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a torch tensor as a NumPy array; of the same memory if it is on the CPU."""
    return array_of(tensor.cpu(), array_dtype(tensor))


def moved(batch: Batch, device: str) -> Batch:
    """Return samples on the CPU or the accelerator: ``cpu`` or ``gpu``; the same batch if they are there."""
    if batch.device == device:
        return batch
    return batch.map(device_tensor if device == "gpu" else to_host, device=device)


def _device() -> str:
    device = default_device()
    if device is None:
        raise DeviceError(
            "data cannot be copied to the GPU: torch finds no accelerator on this machine.",
            hint="Set the environment variable DALIFY_DEVICE=cpu to run GPU programs on the CPU.",
        )
    return device


def contiguous(array: Array) -> Array:
    """Return the array if it is contiguous, otherwise a contiguous copy."""
    if is_array(array):
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return array.contiguous()


def address_of(array: Array) -> int:
    """Return the address of the first element."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


def copy_out(array: Array, pointer: Any, stream: Any = None) -> None:
    """Copy all elements, in order, to an address. The copy is complete when the function returns.

    Args:
        array: the array to copy.
        pointer: the address, a ctypes pointer or an integer; the memory there must be large enough, and on the host or,
            for a tensor on a CUDA device, on this device.
        stream: CUDA stream that uses the memory at the address, a ctypes pointer or an integer; the copy waits for it.
            None: torch's current stream.

    Raises:
        ArgumentTypeError: not an address.
        DeviceError: the address is on another device.
    """
    try:
        address = as_index(getattr(pointer, "value", pointer))
    except TypeError:
        raise ArgumentTypeError(
            f"ptr must be an address, a ctypes pointer or an integer; got {short_repr(pointer)}.",
            hint="For an array: ctypes.c_void_p(array.ctypes.data); for a torch tensor: tensor.data_ptr().",
        ) from None
    if not isinstance(array, np.ndarray) and array.is_cuda:
        source = contiguous(array).reshape(-1).view(torch.uint8)
        target = _memory_at(address, len(source), source.device)
        if target is not None:
            current, other = torch.cuda.current_stream(source.device), getattr(stream, "value", stream)
            if other:
                current.wait_stream(torch.cuda.ExternalStream(other, source.device))
            target.copy_(source)
            current.synchronize()
            return
    source = contiguous(array if isinstance(array, np.ndarray) else to_host(array))
    ctypes.memmove(address, source.ctypes.data, source.nbytes)


class _Memory:
    """Bytes at an address."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip


def _memory_at(address: int, size_bytes: int, device: Any) -> Any:
    """Return the memory at an address as a tensor; None if it is ordinary memory of the host."""
    if not size_bytes:
        return None
    try:
        found = torch.as_tensor(_Memory(address, size_bytes), device=device)
    except RuntimeError:  # CUDA does not know the address
        return None
    if found.data_ptr() != address:  # torch has made a copy
        raise DeviceError(f"the address {address:#x} is on another device than the data, which are on {device}.")
    return found
