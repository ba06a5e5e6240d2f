"""pil_to_tensor, to_tensor and to_pil_image."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.base.errors import ArgumentTypeError, ShapeError
from dalify.experimental.torchvision.v2.pictures import from_pixels

__all__ = ["pil_to_tensor", "to_pil_image", "to_tensor"]

_TYPES = (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.float32)
_OF_MODES = {"I": np.int32, "I;16": np.int16, "F": np.float32}


def pil_to_tensor(inpt: Image.Image) -> torch.Tensor:
    """Return the pixels of a Pillow image as a tensor ``[C, H, W]``.

    Raises:
        ArgumentTypeError: no Pillow image.
    """
    if not isinstance(inpt, Image.Image):
        raise ArgumentTypeError(f"pil_to_tensor takes Pillow images, not {type(inpt).__name__}.")
    pixels = np.array(inpt, _OF_MODES.get(inpt.mode, np.uint8))
    return _planes(pixels * np.uint8(255) if inpt.mode == "1" else pixels)


def to_tensor(inpt: Image.Image | np.ndarray[Any, Any]) -> torch.Tensor:
    """Return a tensor ``[C, H, W]``: bytes as floats between 0 and 1, other values as they are.

    Args:
        inpt: a Pillow image, or an array ``[H, W]`` or ``[H, W, C]``.

    Raises:
        ArgumentTypeError: something else.
    """
    if isinstance(inpt, np.ndarray):
        if inpt.ndim not in (2, 3):
            raise ShapeError(f"an image has the shape [H, W] or [H, W, C], and this array {inpt.shape}.")
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
    """Return a tensor as a Pillow image; floats between 0 and 1 become bytes.

    Args:
        inpt: ``[C, H, W]``, or ``[H, W, C]`` as the layout says.
        mode: Pillow's; None: L, LA, RGB or RGBA by the number of channels.
        input_layout: ``CHW`` or ``HWC``.

    Raises:
        ArgumentTypeError: no tensor, or elements of another type.
        ArgumentValueError: a number of channels without a mode.
        ShapeError: not three dimensions.
    """
    if not isinstance(inpt, torch.Tensor):
        raise ArgumentTypeError(f"to_pil_image takes tensors, not {type(inpt).__name__}.")
    if inpt.ndim != 3:
        raise ShapeError(f"an image has three dimensions, {input_layout}, and this tensor {inpt.ndim}.")
    if inpt.dtype not in _TYPES:
        raise ArgumentTypeError(f"Pillow has no images of {inpt.dtype}.", hint="Convert to torch.uint8.")
    return from_pixels((inpt if input_layout == "HWC" else inpt.permute(1, 2, 0)).cpu().numpy(), mode)
