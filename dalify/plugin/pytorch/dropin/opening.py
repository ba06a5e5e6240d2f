"""The functions with which the ``__getitem__`` of a user's dataset opens images."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
import simplejpeg
import torch
from PIL import Image

_FOLDERS = "torchvision.datasets.folder"
_TENSORS = "torchvision.io.image"


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
    for sampling in ("444", "422", "420", "440"):
        encoded = simplejpeg.encode_jpeg(pixels, colorsubsampling=sampling)
        try:
            found = decode(torch.frombuffer(bytearray(encoded), dtype=torch.uint8))
        except RuntimeError:  # it is built without the library
            return False
        if not np.array_equal(found.permute(1, 2, 0).numpy(), simplejpeg.decode_jpeg(encoded, "RGB")):
            return False
    return True
