"""Decoding by Pillow's plug-ins.

``Image.open`` compares an image with Pillow's limit, which belongs to the program. The plug-ins do not, and dalify has
limits of its own.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageFile, TiffImagePlugin

from dalify.base.errors import DecodeError

__all__ = ["open_by_pillow", "rows_of_pillow", "strips_of"]

_PLUGINS = {
    "AVIF": ("AvifImagePlugin", "AvifImageFile"),
    "BMP": ("BmpImagePlugin", "BmpImageFile"),
    "GIF": ("GifImagePlugin", "GifImageFile"),
    "JPEG": ("JpegImagePlugin", "JpegImageFile"),
    "JPEG 2000": ("Jpeg2KImagePlugin", "Jpeg2KImageFile"),
    "PNG": ("PngImagePlugin", "PngImageFile"),
}
_STRIP_BYTES = 1 << 20

Strip = tuple[int, np.ndarray[Any, Any]]


class _Tiff(TiffImagePlugin.TiffImageFile):
    """Pillow's plug-in, without its comparison with Pillow's limit."""

    def load_prepare(self) -> None:
        ImageFile.ImageFile.load_prepare(self)


@cache
def _plugin(kind: str) -> Any:
    if kind == "TIFF":
        return _Tiff
    module, name = _PLUGINS[kind]
    return getattr(importlib.import_module(f"PIL.{module}"), name)


def open_by_pillow(contents: bytes, kind: str) -> Any:
    """Return a ``PIL.Image.Image`` with its header read, whose size is not limited.

    Args:
        contents: encoded image.
        kind: the format.

    Raises:
        Exception: whatever the plug-in raises.
    """
    return _plugin(kind)(io.BytesIO(contents))


def strips_of(pixels: np.ndarray[Any, Any]) -> Iterator[Strip]:
    """Yield the first row and the pixels of parts of an image, as views.

    What is computed from an image part by part needs little memory, and it stays in the processor's cache.
    """
    rows = max(1, _STRIP_BYTES // max(1, pixels[:1].nbytes))
    for top in range(0, len(pixels), rows):
        yield top, pixels[top : top + rows]


def rows_of_pillow(image: Any, mode: str, height: int, width: int) -> Iterator[Strip]:
    """Decode an image and copy it out of Pillow some rows at a time: all at once takes twice its memory.

    Args:
        image: of ``open_by_pillow``; closed afterwards.
        mode: L, LA, RGB, RGBA or CMYK.
        height: that the image must have.
        width: that the image must have.

    Yields:
        The first row, and uint8 ``[rows, width, channels]``.

    Raises:
        DecodeError: the image has another size.
        Exception: whatever the plug-in raises.
    """
    with image:
        image.load()
        image.info.pop("transparency", None)  # alpha is dropped; of a palette Pillow would warn
        whole = image if image.mode == mode else image.convert(mode)
        if (whole.height, whole.width) != (height, width):
            raise DecodeError(
                f"the header says {width}x{height} pixels, the contents are {whole.width}x{whole.height}."
            )
        if whole is not image:
            image.close()
        rows = max(1, _STRIP_BYTES // (4 * width))
        for top in range(0, height, rows):
            count = min(rows, height - top)
            strip = whole
            if count < height:
                strip = Image.new(mode, (width, count))
                strip.paste(whole, (0, -top))
            yield top, np.asarray(strip).reshape(count, width, -1)
