"""uint16, uint32 and uint64 tensors: torch stores and converts these types, but hardly computes with them.

On CUDA, still fewer functions support them than on torch's CPU device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

_SIGNED = {"torch.uint16": "int16", "torch.uint32": "int32", "torch.uint64": "int64"}


def movable_torch(x: Tensor) -> Tensor:
    """Return a view that torch can index, flip, mask and join.

    Args:
        x: any tensor. For dtypes that torch cannot index, the view has signed integers with the same bits, so it may
            only be used to move elements or set them to 0.
    """
    signed = _SIGNED.get(str(x.dtype))
    return x if signed is None else x.view(getattr(torch, signed))


def joined_torch(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """``torch.cat`` for tensors of one dtype, which may be any."""
    return torch.cat(_all_movable(tensors), axis).view(tensors[0].dtype)


def stacked_torch(tensors: Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """``torch.stack`` for tensors of one dtype, which may be any."""
    if out is None:
        return torch.stack(_all_movable(tensors)).view(tensors[0].dtype)
    torch.stack(_all_movable(tensors), out=movable_torch(out))
    return out


def _all_movable(tensors: Sequence[Tensor]) -> list[Tensor]:
    is_wide = str(tensors[0].dtype) in _SIGNED
    return [movable_torch(tensor) for tensor in tensors] if is_wide else list(tensors)
