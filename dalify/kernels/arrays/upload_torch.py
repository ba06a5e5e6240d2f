"""Copies tables from the host to the device, and selects samples and rows with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.batch import Batch
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.wide_torch import wide_dtype

if TYPE_CHECKING:
    from torch import Tensor

_ALIGNMENT_BYTES = 16


def uploaded(values: Any, device: Any, dtype: Any = None) -> Tensor:
    """Return a tensor on the device with values of the host, without waiting for the device.

    torch waits for the stream when it copies ordinary memory. It copies page-locked memory asynchronously, and keeps it
    until then.

    Args:
        values: array, or a value that NumPy converts to an array. It may change afterwards.
        device: torch device.
        dtype: NumPy dtype of the tensor; None: the dtype of `values`, or float32 instead of float64 if the device does
            not support float64.
    """
    array = np.asarray(values, dtype)
    if array.dtype == np.float64 and wide_dtype(device) != torch.float64:
        array = array.astype(np.float32)
    if array.size and torch.device(device).type == "cuda":
        kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
        host = torch.empty(array.shape, dtype=kind, pin_memory=True)
        host.numpy()[...] = array
        return host.to(device, non_blocking=True)
    return torch.from_numpy(np.array(array, order="C")).to(device)


def uploaded_bytes(size_bytes: int, device: Any, fill: Callable[[np.ndarray], Any]) -> Tensor:
    """Return bytes on the device that `fill` writes on the host, without waiting for the device.

    Args:
        size_bytes: number of bytes.
        device: torch device.
        fill: writes all bytes of its argument, uint8 ``[size_bytes]``.
    """
    if not size_bytes:  # torch cannot view a tensor of an empty NumPy array as another type, because of its stride
        return torch.empty(0, dtype=torch.uint8, device=device)
    is_cuda = torch.device(device).type == "cuda"
    host = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=is_cuda)
    fill(host.numpy())
    return host.to(device, non_blocking=is_cuda)


def selected_rows(x: Tensor, rows: np.ndarray) -> Tensor:
    """Return copies of rows of a tensor on the device, without waiting for the device.

    Args:
        x: tensor of any dtype with at least one axis.
        rows: indices along the first axis, on the host.
    """
    return movable_torch(x).index_select(0, uploaded(rows, x.device, np.int64)).view(x.dtype)


def selected_samples(batch: Batch, indices: np.ndarray) -> Batch:
    """`Batch.take` on the device, without waiting for it."""
    if batch.dense is None:
        return batch.take(indices)
    origins = None if batch.origins is None else [batch.origins[index] for index in indices.tolist()]
    return Batch(selected_rows(batch.dense, indices), None, batch.layout, batch.device, origins, batch.dtype)


def uploaded_together(device: Any, *arrays: np.ndarray) -> list[Tensor]:
    """Copy arrays to a device in one transfer that the host does not wait for.

    Args:
        device: torch device.
        arrays: of int32, int64 or float32.

    Returns:
        one tensor for each.
    """
    sizes = [-(-array.nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES for array in arrays]
    is_cuda = device.type == "cuda"
    packed = torch.empty(sum(sizes) + _ALIGNMENT_BYTES, dtype=torch.uint8, pin_memory=is_cuda)
    view = packed.numpy()
    at = 0
    places: list[tuple[int, int]] = []
    for array, size in zip(arrays, sizes, strict=True):
        view[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        places.append((at, array.nbytes))
        at += size
    copied = packed.to(device, non_blocking=is_cuda)
    return [
        copied[start : start + size].view(getattr(torch, str(array.dtype)))
        for array, (start, size) in zip(arrays, places, strict=True)
    ]
