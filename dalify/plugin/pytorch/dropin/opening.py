"""The functions with which the ``__getitem__`` of a user's dataset opens images."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from types import BuiltinFunctionType
from typing import Any

import cv2
import numpy as np
import simplejpeg
import torch
from PIL import Image

_FOLDERS = "torchvision.datasets.folder"
_TENSORS = "torchvision.io.image"
IsDecoder = Callable[[Any], bool]  # tests a function
_SAMPLINGS = "444", "422", "420", "440"


@dataclass(frozen=True)
class Decoder:
    """A function of torchvision or OpenCV that decodes a file, and what the method does with its result.

    Attributes:
        decode: the function of a path. OpenCV's returns None if it cannot read the file.
        gives_tensors: True for torchvision's, which returns tensors; OpenCV's returns arrays.
        is_blue_first: whether the first channel of the result is blue.
        rotates: whether images are rotated as their EXIF orientation specifies.
        conversions: functions that are applied to an array, in order.
        gives_images: whether they return Pillow images.
    """

    decode: Callable[[Any], Any]
    gives_tensors: bool = False
    is_blue_first: bool = False
    rotates: bool = False
    conversions: tuple[Callable[[Any], Any], ...] = ()
    gives_images: bool = False

    def then(self, conversion: Callable[[Any], Any], **changes: Any) -> Decoder:
        """Return a decoder with another conversion, and other attributes."""
        return replace(self, conversions=(*self.conversions, conversion), **changes)

    def convert(self, value: Any) -> Any:
        """Apply the conversions."""
        for conversion in self.conversions:
            value = conversion(value)
        return value


def opens_image(function: Any) -> bool | None:
    """Return whether a function opens an image as RGB with Pillow; None if it opens no image."""
    if function is Image.open or function is Image.fromarray:
        return False
    folders = sys.modules.get(_FOLDERS)
    if folders is None:
        return None
    if function is folders.default_loader and sys.modules["torchvision"].get_image_backend() == "PIL":
        return True
    return True if function is folders.pil_loader else None


def decodes_tensor(function: Any) -> bool:
    """Return whether a function is torchvision's for decoding an image file to a tensor."""
    module = sys.modules.get(_TENSORS)
    return module is not None and any(function is each for each in (module.decode_image, module.read_image))


@lru_cache(maxsize=1)
def matches_torchvision() -> bool:
    """Return whether torchvision decodes JPEG files to the same pixels; it may be built with another library."""
    pixels = np.random.default_rng(0).integers(0, 256, (48, 40, 3), dtype=np.uint8)
    decode: Any = sys.modules[_TENSORS].decode_image
    for sampling in _SAMPLINGS:
        encoded = simplejpeg.encode_jpeg(pixels, colorsubsampling=sampling)
        try:
            found = decode(torch.frombuffer(bytearray(encoded), dtype=torch.uint8))
        except RuntimeError:  # it is built without the library
            return False
        if not np.array_equal(found.permute(1, 2, 0).numpy(), simplejpeg.decode_jpeg(encoded, "RGB")):
            return False
    return True


def decodes_array(function: Any) -> bool:
    """Return whether a function is OpenCV's for decoding an image file to an array, not one that replaces it."""
    return function is cv2.imread and isinstance(function, BuiltinFunctionType)


def decodes_file(function: Any) -> bool:
    """Return whether a function decodes an image file to a tensor or an array."""
    return decodes_tensor(function) or decodes_array(function)


@lru_cache(maxsize=1)
def matches_opencv() -> bool:
    """Return whether OpenCV decodes JPEG files to the same pixels; it may be built with another library."""
    pixels = np.random.default_rng(0).integers(0, 256, (48, 40, 3), dtype=np.uint8)
    for sampling in _SAMPLINGS:
        encoded = simplejpeg.encode_jpeg(pixels, colorsubsampling=sampling)
        found = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR)
        if found is None or not np.array_equal(found, simplejpeg.decode_jpeg(encoded, "BGR")):
            return False
    return True
