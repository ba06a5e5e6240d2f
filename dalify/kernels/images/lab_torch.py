"""Converts RGB to CIE Lab and back in bytes, on tensors, bit-exact with OpenCV.

OpenCV's fixed-point conversion is evaluated once for all 2**24 colors, and the device looks them up. A table has 64 MiB
on the accelerator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["lab_to_rgb", "rgb_to_lab"]

_COLORS = 1 << 24
_BYTE = 0xFF


@lru_cache(maxsize=4)
def _table(code: int, device: str) -> Tensor:
    """Return a table from packed colors to converted packed colors; int32 words, first channel lowest."""
    words = np.arange(_COLORS, dtype="<u4")
    colors = words.view(np.uint8).reshape(1 << 12, 1 << 12, 4)[..., :3]
    found = np.zeros((1 << 12, 1 << 12, 4), np.uint8)
    found[..., :3] = cv2.cvtColor(np.ascontiguousarray(colors), code)
    return torch.as_tensor(found.view("<i4").reshape(-1), device=device)


def _converted(x: Tensor, code: int) -> Tensor:
    words = x[..., 0].int() | x[..., 1].int() << 8 | x[..., 2].int() << 16
    found = _table(code, str(x.device))[words.long()]
    return torch.stack([found & _BYTE, found >> 8 & _BYTE, found >> 16 & _BYTE], dim=-1).to(torch.uint8)


def rgb_to_lab(x: Tensor) -> Tensor:
    """Convert R, G, B to uint8 [..., 3] of lightness L, a and b, scaled to bytes."""
    return _converted(x, cv2.COLOR_RGB2LAB)


def lab_to_rgb(x: Tensor) -> Tensor:
    """Convert L, a, b to uint8 [..., 3] of R, G, B."""
    return _converted(x, cv2.COLOR_LAB2RGB)
