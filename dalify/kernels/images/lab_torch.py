"""Converts RGB to CIE Lab and back, in uint8 on tensors, with the same results as OpenCV.

OpenCV converts all 2**24 colors once; the device looks them up in a table of 64 MiB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

from dalify.base.optional import torch

if TYPE_CHECKING:
    from torch import Tensor

_COLORS = 1 << 24
_BYTE = 0xFF


@lru_cache(maxsize=4)
def _table(code: int, device: str) -> Tensor:
    """Return the converted colors by color, both packed in int32 with the first channel in the lowest byte."""
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
    """Convert R, G, B, uint8 [..., 3], to L, a, b, scaled to uint8 as in OpenCV."""
    return _converted(x, cv2.COLOR_RGB2LAB)


def lab_to_rgb(x: Tensor) -> Tensor:
    """Convert L, a, b of `rgb_to_lab` to R, G, B, uint8 [..., 3]."""
    return _converted(x, cv2.COLOR_LAB2RGB)
