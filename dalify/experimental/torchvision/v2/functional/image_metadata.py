"""The functions get_size, get_image_size and get_dimensions."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image

from dalify.base.errors import ArgumentTypeError
from dalify.experimental.dynamic import Tensor


def get_dimensions(inpt: Any) -> list[int]:
    """Return ``[channels, height, width]``.

    Args:
        inpt: a Pillow image, or a tensor ``[H, W]`` or ``[..., C, H, W]``.

    Raises:
        ArgumentTypeError: another type, or fewer than two dimensions.
    """
    if isinstance(inpt, Image.Image):
        return [len(inpt.getbands()), inpt.height, inpt.width]
    if not isinstance(inpt, torch.Tensor | Tensor):
        raise ArgumentTypeError(f"an image must be a Pillow image or a tensor; got {type(inpt).__name__}.")
    if inpt.ndim < 2:
        raise ArgumentTypeError(f"an image must have at least two dimensions; this tensor has {inpt.ndim}.")
    height, width = inpt.shape[-2:]
    return [1 if inpt.ndim == 2 else int(inpt.shape[-3]), int(height), int(width)]


def get_size(inpt: Any) -> list[int]:
    """Return ``[height, width]``, see `get_dimensions`."""
    return get_dimensions(inpt)[1:]


def get_image_size(inpt: Any) -> list[int]:
    """Return ``[width, height]``, see `get_dimensions`."""
    return get_dimensions(inpt)[:0:-1]
