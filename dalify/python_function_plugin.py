"""Conversion between arrays and DLPack capsules, under DALI's import path."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.batch import tensor_of

__all__ = ["ArrayToDLTensor", "DLTensorToArray", "current_dali_stream"]

# Names are DALI's.
# ruff: noqa: N802


def ArrayToDLTensor(array: np.ndarray[Any, Any], /) -> Any:
    """Return a DLPack capsule of the memory of a NumPy array."""
    return torch.to_dlpack(tensor_of(np.asarray(array)))


def DLTensorToArray(dl_capsule: Any, /) -> np.ndarray[Any, Any]:
    """Return a NumPy array of the memory of a DLPack capsule; the capsule is consumed."""
    return torch.from_dlpack(dl_capsule).numpy()


def current_dali_stream() -> int:
    """Return the address of torch's current CUDA stream, on which operators run; 0 without CUDA."""
    return torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0
