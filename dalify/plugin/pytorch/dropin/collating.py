"""torch's default collate function, with reused memory.

Newly allocated memory causes page faults, which take longer than the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import collate as collating_of_torch

from dalify.data import BufferPool

image_pool = BufferPool()
# torch looks for base classes, too: an entry for `Sequence` or `object` applies to these.
_COLLATED = (dict, tuple, list, torch.Tensor)
_BYTES = np.dtype(np.uint8)
_SMALL_BYTES = 1 << 16  # of a batch whose memory need not be reused


def collates_as_torch(loader: Any) -> bool:
    """Return whether a loader has torch's default collate function, without entries of the user in its table."""
    table = collating_of_torch.default_collate_fn_map
    return (
        loader.collate_fn is torch.utils.data.default_collate
        and table.get(torch.Tensor) is collating_of_torch.collate_tensor_fn
        and table.get(int) is collating_of_torch.collate_int_fn
        and not any(
            issubclass(kind, _COLLATED) or any(issubclass(each, kind) for each in _COLLATED)
            for kind in table
            if isinstance(kind, type) and kind is not torch.Tensor
        )
    )


def default_collate(samples: Any, pool: BufferPool = image_pool) -> Any:
    """Return the result of ``torch.utils.data.default_collate``; its tensors are in memory of a pool."""
    table: dict[Any, Any] = dict(collating_of_torch.default_collate_fn_map)
    if table.get(torch.Tensor) is collating_of_torch.collate_tensor_fn:
        table[torch.Tensor] = partial(collate_tensors, pool=pool)
    if table.get(int) is collating_of_torch.collate_int_fn:
        table[int] = _collate_integers
    return collating_of_torch.collate(samples, collate_fn_map=table)


def collate_tensors(tensors: Any, *, collate_fn_map: Any = None, pool: BufferPool = image_pool) -> Any:
    """Stack tensors, like torch's function in the table of its default collate function."""
    is_worker = torch.utils.data.get_worker_info() is not None
    first = tensors[0]
    if (
        type(first) is not torch.Tensor
        or first.device.type != "cpu"
        or (first.numel() * first.element_size() * len(tensors) < _SMALL_BYTES and not is_worker)
        or not _are_alike(tensors, is_worker)
    ):
        return collating_of_torch.collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)
    memory = pool.empty((len(tensors) * first.numel() * first.element_size(),), _BYTES)
    batch = torch.from_numpy(memory).view(first.dtype).view(len(tensors), *first.shape)
    return torch.stack(tensors, out=batch)


def _collate_integers(labels: Any, *, collate_fn_map: Any = None) -> Any:
    del collate_fn_map
    return collate_labels(labels)


def collate_labels(labels: Sequence[Any]) -> Any:
    """Collate labels like torch's function, but faster for Python integers."""
    if set(map(type, labels)) == {int} and (numbers := np.array(labels)).dtype == np.int64:
        return torch.from_numpy(numbers)
    samples: Any = tuple(labels)  # the type that torch passes to functions in its table
    return torch.utils.data.default_collate(samples)


def _are_alike(tensors: Any, is_worker: bool) -> bool:
    """Return whether all are ordinary tensors of the same shape, dtype and device, and not empty.

    torch stacks tensors with another order of memory in that order, but not in a worker process.
    """
    return (
        set(map(type, tensors)) == {torch.Tensor}
        and not any(each.is_nested for each in tensors)
        and {(each.layout, each.dtype, each.device) for each in tensors}
        == {(torch.strided, tensors[0].dtype, tensors[0].device)}
        and len({each.shape for each in tensors}) == 1
        and tensors[0].numel() > 0
        and not any(each.requires_grad for each in tensors)
        and (is_worker or all(each.is_contiguous() for each in tensors))
    )
