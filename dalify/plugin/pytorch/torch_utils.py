"""Conversion of tensors to torch, under DALI's import path."""

from __future__ import annotations

import torch

from dalify.data import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from dalify.plugin.pytorch.tensors import feed_ndarray, tensor_of, to_torch_type

__all__ = [
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "feed_ndarray",
    "to_torch_tensor",
    "to_torch_type",
]


def to_torch_tensor(dali_tensor: TensorCPU | TensorGPU, copy: bool) -> torch.Tensor:
    """Convert a tensor of a pipeline to a torch tensor.

    Args:
        dali_tensor: the source.
        copy: copy the data; otherwise share the memory if possible, see ``tensor_of``.
    """
    tensor = tensor_of(dali_tensor)
    return tensor.clone() if copy else tensor
