"""A tensor of a pipeline as a torch tensor, under DALI's import path."""

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
    """Return a torch tensor with the data of a tensor of a pipeline.

    Args:
        dali_tensor: where from.
        copy: copy the data; otherwise both have the same memory.
    """
    tensor = tensor_of(dali_tensor)
    return tensor.clone() if copy else tensor
