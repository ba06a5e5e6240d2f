"""Conversion between Pillow images, arrays of pixels, and torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.wording import counted
from dalify.data import TensorCPU, TensorGPU, memory_of, shared_tensor

_MODES = ("L", "RGB", "RGBA")
# Modes of Pillow for arrays of one channel.
_OF_ONE_CHANNEL = {"uint8": "L", "uint16": "I;16", "int16": "I;16", "int32": "I", "float32": "F"}
_BY_CHANNELS = {2: "LA", 3: "RGB", 4: "RGBA"}


def pixels_of(image: Image.Image) -> np.ndarray[Any, Any]:
    """Return the pixels of an image, ``[H, W, C]``.

    Raises:
        ArgumentValueError: an image with another mode than L, RGB and RGBA.
    """
    if image.mode not in _MODES:
        raise ArgumentValueError(
            f"Pillow images of mode {image.mode!r} are not supported; supported modes are L, RGB, and RGBA.",
            hint='Write image.convert("RGB").',
        )
    pixels = np.array(image)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def from_pixels(pixels: np.ndarray[Any, Any], mode: str | None = None) -> Image.Image:
    """Return a Pillow image.

    Args:
        pixels: ``[H, W, C]``, or ``[H, W]`` for one channel; floats in [0, 1] become uint8.
        mode: Pillow mode; None: by number of channels and element type.

    Raises:
        ArgumentTypeError: the element type is not supported by Pillow.
        ArgumentValueError: Pillow has no mode for this number of channels, or for this type with one channel.
    """
    if np.issubdtype(pixels.dtype, np.floating) and mode != "F":
        pixels = (pixels.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    pixels = pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    if mode is None:
        mode = _OF_ONE_CHANNEL.get(pixels.dtype.name) if pixels.ndim == 2 else _BY_CHANNELS.get(pixels.shape[2])
        if mode is None:
            given = pixels.dtype.name if pixels.ndim == 2 else counted(pixels.shape[2], "channel")
            raise ArgumentValueError(f"Pillow has no mode for images of {given}.", hint="Specify mode=.")
        if pixels.ndim == 3 and pixels.dtype != np.uint8:
            raise ArgumentTypeError(f"Pillow has no colors of type {pixels.dtype.name}.", hint="Convert to uint8.")
    return Image.frombytes(mode, (pixels.shape[1], pixels.shape[0]), np.ascontiguousarray(pixels).tobytes())


def tensor_of(value: TensorCPU | TensorGPU) -> torch.Tensor:
    """Return a torch tensor that shares the memory; a copy if it is read-only or has a negative stride."""
    return shared_tensor(memory_of(value))
