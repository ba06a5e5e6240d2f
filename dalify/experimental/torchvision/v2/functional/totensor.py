"""The functions pil_to_tensor, to_tensor and to_pil_image."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.base.errors import ArgumentTypeError, ShapeError
from dalify.experimental.torchvision.v2.conversion import from_pixels

_TYPES = (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.float32)
_OF_MODES = {"I": np.int32, "I;16": np.int16, "F": np.float32}


def pil_to_tensor(inpt: Image.Image) -> torch.Tensor:
    """Return the pixels of a Pillow image as a tensor ``[C, H, W]``.

    Raises:
        ArgumentTypeError: not a Pillow image.
    """
    if not isinstance(inpt, Image.Image):
        raise ArgumentTypeError(f"pil_to_tensor takes Pillow images, not {type(inpt).__name__}.")
    pixels = np.array(inpt, _OF_MODES.get(inpt.mode, np.uint8))
    return _planes(pixels * np.uint8(255) if inpt.mode == "1" else pixels)


def to_tensor(inpt: Image.Image | np.ndarray[Any, Any]) -> torch.Tensor:
    """Return a tensor ``[C, H, W]``: uint8 values as floats in [0, 1], other values unchanged.

    Args:
        inpt: a Pillow image, or an array ``[H, W]`` or ``[H, W, C]``.

    Raises:
        ArgumentTypeError: another type.
        ShapeError: an array that does not have two or three dimensions.
    """
    if isinstance(inpt, np.ndarray):
        if inpt.ndim not in (2, 3):
            raise ShapeError(f"an image must have the shape [H, W] or [H, W, C]; got {inpt.shape}.")
        found = _planes(inpt)
    elif isinstance(inpt, Image.Image):
        found = pil_to_tensor(inpt)
    else:
        raise ArgumentTypeError(f"to_tensor takes Pillow images and arrays, not {type(inpt).__name__}.")
    return found.to(torch.float32).div(255.0) if found.dtype == torch.uint8 else found


def _planes(pixels: np.ndarray[Any, Any]) -> torch.Tensor:
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def to_pil_image(inpt: torch.Tensor, mode: str | None = None, input_layout: str = "CHW") -> Image.Image:
    """Return a tensor as a Pillow image; floats in [0, 1] become uint8.

    Args:
        inpt: ``[C, H, W]`` or ``[H, W, C]``, according to ``input_layout``.
        mode: Pillow mode; None: by number of channels and element type.
        input_layout: ``CHW`` or ``HWC``.

    Raises:
        ArgumentTypeError: not a tensor, or an element type that Pillow does not support.
        ArgumentValueError: Pillow has no mode for this number of channels.
        ShapeError: the tensor does not have three dimensions.
    """
    if not isinstance(inpt, torch.Tensor):
        raise ArgumentTypeError(f"to_pil_image takes tensors, not {type(inpt).__name__}.")
    if inpt.ndim != 3:
        raise ShapeError(f"an image must have three dimensions, {input_layout}; this tensor has {inpt.ndim}.")
    if inpt.dtype not in _TYPES:
        raise ArgumentTypeError(f"Pillow has no images of {inpt.dtype}.", hint="Convert to torch.uint8.")
    return from_pixels((inpt if input_layout == "HWC" else inpt.permute(1, 2, 0)).cpu().numpy(), mode)
