"""Decodes images with OpenCV, without its log messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import LazyModule
from dalify.codecs.image_format import Bytes

if TYPE_CHECKING:
    import cv2
else:  # JPEG and PNG files do not need it
    cv2 = LazyModule("cv2", "decoding this image format", "opencv-python-headless")

_SILENT = 0
_lock = ForkLock()
_callers = 0
_level_before = 0


def decode_by_opencv(data: Bytes, kind: str) -> np.ndarray[Any, Any]:
    """Decode an image as stored.

    Args:
        data: encoded image, 1-D uint8, whose declared size was checked.
        kind: the format, for error messages.

    Returns:
        ``[height, width, channels]`` of uint8, uint16 or float32, channels in OpenCV's order.

    Raises:
        DecodeError: the data is damaged or not supported.
    """
    try:
        with _quiet():
            pixels = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise DecodeError(f"damaged {kind} ({data.size} bytes): {error}") from None
    if pixels is None:
        raise DecodeError(f"damaged or unsupported {kind} ({data.size} bytes).")
    if pixels.dtype not in (np.uint8, np.uint16, np.float32):
        raise DecodeError(f"{kind} images with {pixels.dtype} samples have no defined range and are not supported.")
    return pixels[..., None] if pixels.ndim == 2 else pixels


def reordered(pixels: np.ndarray[Any, Any], channels: int) -> np.ndarray[Any, Any]:
    """Reorder OpenCV's channels: gray, alpha; or red, green, blue, alpha.

    Args:
        pixels: ``[height, width, stored channels]``.
        channels: requested number of channels; gray and alpha may be stored as four channels, and colors with alpha.
    """
    stored = pixels.shape[2]
    if stored < 3:
        return pixels
    if channels == 2:
        return pixels[..., [0, 3]]
    codes = {(3, 3): cv2.COLOR_BGR2RGB, (4, 4): cv2.COLOR_BGRA2RGBA, (4, 3): cv2.COLOR_BGRA2RGB}
    code = codes.get((stored, channels))
    return pixels if code is None else cv2.cvtColor(pixels, code)


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable OpenCV's log, which belongs to the process, while there are callers, because problems raise errors."""
    global _callers, _level_before
    with _lock:
        if _callers == 0:
            _level_before = cv2.utils.logging.setLogLevel(_SILENT)
        _callers += 1
    try:
        yield
    finally:
        with _lock:
            _callers -= 1
            if _callers == 0:
                cv2.utils.logging.setLogLevel(_level_before)
