"""torch's default way to make a batch of samples, into memory that is used again.

Fresh memory for a batch costs page faults, which take longer than the copying. In worker processes torch collates into
shared memory, so this is for batches of the caller's own process.
"""

from __future__ import annotations

from typing import Any

import torch

from dalify.data.pool import BufferPool

__all__ = ["default_collate"]

_pool = BufferPool()
_NUMPY = {dtype: torch.empty(0, dtype=dtype).numpy().dtype for dtype in (torch.float32, torch.uint8)}


def default_collate(samples: list[Any]) -> Any:
    """Do what ``torch.utils.data.default_collate`` does.

    Args:
        samples: of a batch.
    """
    images = [sample[0] for sample in samples if type(sample) is tuple and len(sample) == 2]
    if len(images) < len(samples) or not _are_alike(images):
        return torch.utils.data.default_collate(samples)
    batch = torch.from_numpy(_pool.empty((len(images), *images[0].shape), _NUMPY[images[0].dtype]))
    torch.stack(images, out=batch)
    labels: Any = tuple(sample[1] for sample in samples)
    return [batch, torch.utils.data.default_collate(labels)]


def _are_alike(images: list[Any]) -> bool:
    """All are plain tensors in this process's memory, of one shape and of a type that images have."""
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
