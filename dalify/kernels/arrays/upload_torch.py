"""Tables that the host has computed, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["uploaded", "uploaded_together"]

_ALIGNMENT_BYTES = 16


def uploaded(values: Any, device: Any, dtype: Any = None) -> Tensor:
    """Return a tensor on the device with values of the host, without waiting for the device.

    torch waits for all work of the stream when it copies ordinary memory. It copies page-locked memory later, and
    keeps it until then.

    Args:
        values: array, or what NumPy makes an array of. It may change afterwards.
        device: torch device.
        dtype: NumPy dtype of the tensor; None: that of `values`.
    """
    array = np.array(values, dtype, order="C")
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def uploaded_together(device: Any, *arrays: np.ndarray) -> list[Tensor]:
    """Copy arrays to a device in one transfer that the host does not wait for.

    Args:
        device: torch device.
        arrays: of int32, int64 or float32.

    Returns:
        one tensor for each.
    """
    sizes = [-(-array.nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES for array in arrays]
    packed = torch.empty(sum(sizes) + _ALIGNMENT_BYTES, dtype=torch.uint8, pin_memory=device.type != "cpu")
    view = packed.numpy()
    at = 0
    places: list[tuple[int, int]] = []
    for array, size in zip(arrays, sizes, strict=True):
        view[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        places.append((at, array.nbytes))
        at += size
    copied = packed.to(device, non_blocking=True)
    return [
        copied[start : start + size].view(getattr(torch, str(array.dtype)))
        for array, (start, size) in zip(arrays, places, strict=True)
    ]
