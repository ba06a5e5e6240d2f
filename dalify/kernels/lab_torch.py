"""RGB to CIE Lab and back in bytes, on tensors, to the bit as OpenCV does it.

Alone because of how it is done: OpenCV's fixed-point arithmetic is asked once for all 2**24 colours, and the device
looks them up. A table has 64 MiB, which accelerators have to spare.
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

_COLOURS = 1 << 24
_BYTE = 0xFF


@lru_cache(maxsize=4)
def _table(code: int, device: str) -> Tensor:
    """Return the results of a conversion as int32 words, first channel lowest, by the colour as such a word."""
    words = np.arange(_COLOURS, dtype="<u4")
    colours = words.view(np.uint8).reshape(1 << 12, 1 << 12, 4)[..., :3]
    found = np.zeros((1 << 12, 1 << 12, 4), np.uint8)
    found[..., :3] = cv2.cvtColor(np.ascontiguousarray(colours), code)
    return torch.as_tensor(found.view("<i4").reshape(-1), device=device)


def _converted(x: Tensor, code: int) -> Tensor:
    words = x[..., 0].int() | x[..., 1].int() << 8 | x[..., 2].int() << 16
    found = _table(code, str(x.device))[words.long()]
    return torch.stack([found & _BYTE, found >> 8 & _BYTE, found >> 16 & _BYTE], dim=-1).to(torch.uint8)


def rgb_to_lab(x: Tensor) -> Tensor:
    """Return uint8 [..., 3] of the lightness L and of a and b, scaled to bytes, for R, G, B."""
    return _converted(x, cv2.COLOR_RGB2LAB)


def lab_to_rgb(x: Tensor) -> Tensor:
    """Return uint8 [..., 3] of R, G, B for L, a, b."""
    return _converted(x, cv2.COLOR_LAB2RGB)
