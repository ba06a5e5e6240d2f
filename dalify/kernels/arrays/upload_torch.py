"""Tables that the host has computed, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["uploaded"]


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
