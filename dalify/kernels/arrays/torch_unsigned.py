"""Views of uint16, uint32 and uint64 tensors: torch stores these types, but does not index them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

_SIGNED = {"torch.uint16": "int16", "torch.uint32": "int32", "torch.uint64": "int64"}


def movable_torch(x: Tensor) -> Tensor:
    """Return a view that torch can index, flip and mask.

    Args:
        x: any tensor. For dtypes that torch cannot index, the view has signed integers with the same bits, so it may
            only be used to move elements or set them to 0.
    """
    signed = _SIGNED.get(str(x.dtype))
    return x if signed is None else x.view(getattr(torch, signed))
