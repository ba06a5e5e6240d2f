"""Nested and sparse torch tensors of samples that differ in shape."""

from __future__ import annotations

from typing import Any

import torch

from dalify.base.errors import ShapeError
from dalify.data import TensorListCPU, TensorListGPU
from dalify.plugin.collate import arrays_of, empty_dense
from dalify.plugin.pytorch.tensors import as_tensor

__all__ = ["nested", "sparse"]

Output = TensorListCPU | TensorListGPU


def nested(name: str, output: Output, count: int) -> torch.Tensor:
    """Return a nested tensor of torch: jagged if only the first axis differs, otherwise strided."""
    tensors = _tensors(output, count)
    if not tensors:
        offsets = torch.zeros(1, dtype=torch.int64)
        return torch.nested.nested_tensor_from_jagged(
            as_tensor(empty_dense(output)), offsets, min_seqlen=0, max_seqlen=0
        )
    is_jagged = tensors[0].ndim > 0 and len({tensor.shape[1:] for tensor in tensors}) == 1
    return torch.nested.nested_tensor(tensors, layout=torch.jagged if is_jagged else torch.strided)


def sparse(name: str, output: Output, count: int) -> torch.Tensor:
    """Return a sparse tensor of shape ``[N, longest, ...]``, sparse in its first two dimensions.

    Raises:
        ShapeError: a sample has no axes.
    """
    tensors = _tensors(output, count)
    if not tensors:
        return as_tensor(empty_dense(output)).to_sparse()
    if any(tensor.ndim == 0 for tensor in tensors):
        raise ShapeError(f"the samples of the output {name!r} are single values, which SPARSE_COO_TAG cannot join.")
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    rows = torch.repeat_interleave(torch.arange(len(tensors)), lengths)
    columns = torch.cat([torch.arange(length) for length in lengths.tolist()])
    values = torch.cat(tensors)
    size = (len(tensors), int(lengths.max()), *values.shape[1:])
    return torch.sparse_coo_tensor(torch.stack([rows, columns]).to(values.device), values, size, check_invariants=False)


def _tensors(output: Output, count: int) -> list[Any]:
    return [as_tensor(array) for array in arrays_of(output, count)]
