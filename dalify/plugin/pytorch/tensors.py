"""Converts outputs of a pipeline to torch tensors, without a copy if possible."""

from __future__ import annotations

from typing import Any

import torch

from dalify.base.errors import TargetTypeError
from dalify.data import BY_NAME, DALIDataType, TensorCPU, TensorGPU, TensorListCPU, TensorListGPU, shared_tensor
from dalify.plugin.collate import array_of
from dalify.plugin.frameworks import of_equal_shape

to_torch_type: dict[DALIDataType, torch.dtype] = {kind: getattr(torch, name) for name, kind in BY_NAME.items()}


def tensor_of(value: TensorCPU | TensorGPU) -> torch.Tensor:
    """Return a torch tensor that shares the memory, or a copy if it is read-only or has a negative stride."""
    return shared_tensor(array_of(value))


def feed_ndarray(
    dali_tensor: TensorCPU | TensorGPU | TensorListCPU | TensorListGPU,
    arr: torch.Tensor,
    cuda_stream: Any = None,
    non_blocking: bool = False,
) -> torch.Tensor:
    """Copy a tensor, or a list of equally shaped samples, into a torch tensor.

    Args:
        dali_tensor: the source.
        arr: the destination, of the same shape and element type, on any device.
        cuda_stream: accepted but ignored: the copy runs on torch's current stream.
        non_blocking: do not wait for a copy from pinned memory to a device.

    Returns:
        ``arr``.

    Raises:
        TargetShapeError: the shapes differ.
        TargetTypeError: the element types differ.
    """
    dali_tensor = of_equal_shape(dali_tensor, arr)
    if arr.dtype != to_torch_type[dali_tensor.dtype]:
        raise TargetTypeError(
            f"the element types differ: {dali_tensor.dtype.text} cannot be copied into {arr.dtype}.",
            hint=f"Make the tensor with dtype={to_torch_type[dali_tensor.dtype]}.",
        )
    return arr.copy_(tensor_of(dali_tensor), non_blocking=non_blocking)
