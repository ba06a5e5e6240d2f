"""Tensors and lists of tensors, under DALI's import path."""

from dalify.data.formatting import format_batch, format_tensor
from dalify.data.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU", "format_batch", "format_tensor"]
