"""torch's default collate function, with reused memory.

Newly allocated memory causes page faults, which take longer than the copy. In worker processes, torch collates into
shared memory, so this function is only used in the process of the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import collate as collating_of_torch

from dalify.data import BufferPool

image_pool = BufferPool()
# torch looks for base classes, too: an entry for `Sequence` or `object` applies to these.
_COLLATED = (dict, tuple, list, torch.Tensor)
_NUMPY = {dtype: torch.empty(0, dtype=dtype).numpy().dtype for dtype in (torch.float32, torch.uint8)}


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


def default_collate(samples: list[Any]) -> Any:
    """Return the result of ``torch.utils.data.default_collate``."""
    first = samples[0] if samples else None
    if type(first) is dict and all(type(each) is dict and each.keys() == first.keys() for each in samples):
        return {name: _stacked([sample[name] for sample in samples]) for name in first}
    images = [sample[0] for sample in samples if type(sample) is tuple and len(sample) == 2]
    if len(images) < len(samples) or not _are_alike(images):
        return torch.utils.data.default_collate(samples)
    return [_stacked(images), collate_labels([sample[1] for sample in samples])]


def _stacked(values: list[Any]) -> Any:
    if not _are_alike(values):
        return torch.utils.data.default_collate(values)
    batch = torch.from_numpy(image_pool.empty((len(values), *values[0].shape), _NUMPY[values[0].dtype]))
    return torch.stack(values, out=batch)


def collate_labels(labels: list[Any]) -> Any:
    """Collate labels like torch's function, but faster for Python integers."""
    if set(map(type, labels)) == {int} and (numbers := np.array(labels)).dtype == np.int64:
        return torch.from_numpy(numbers)
    samples: Any = tuple(labels)  # the type that torch passes to functions in its table
    return torch.utils.data.default_collate(samples)


def _are_alike(images: list[Any]) -> bool:
    """Return whether all are contiguous CPU tensors of the same shape and the same dtype, float32 or uint8."""
    first = images[0] if images else None
    return (
        type(first) is torch.Tensor
        and first.numel() > 0
        and all(
            type(image) is torch.Tensor
            and image.dtype is first.dtype
            and image.dtype in _NUMPY
            and image.shape == first.shape
            and image.device.type == "cpu"
            and image.is_contiguous()
            and not image.requires_grad
            for image in images
        )
    )
