"""The widest float type of a torch device, for results that must be more accurate than float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

# Apple's devices do not support float64: they compute in float32.
_WITHOUT_FLOAT64 = frozenset(["mps"])


def wide_dtype(device: Any) -> Any:
    """Return float64, or the widest type that a torch device supports."""
    return torch.float32 if torch.device(device).type in _WITHOUT_FLOAT64 else torch.float64


def widened(x: Tensor) -> Tensor:
    """Convert a tensor to `wide_dtype`."""
    return x.to(wide_dtype(x.device))
