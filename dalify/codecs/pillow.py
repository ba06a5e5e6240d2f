"""Decodes images with Pillow's plug-ins.

``Image.open`` checks images against Pillow's global limit, which belongs to the program. The plug-ins do not; dalify
has its own limits.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import DecodeError
from dalify.base.free_memory import return_free_memory
from dalify.base.optional import LazyModule

if TYPE_CHECKING:
    from PIL import Image, ImageFile, TiffImagePlugin
else:  # only for few images
    Image = LazyModule("PIL.Image", "decoding this image", "pillow")
    ImageFile = LazyModule("PIL.ImageFile", "decoding this image", "pillow")
    TiffImagePlugin = LazyModule("PIL.TiffImagePlugin", "decoding this image", "pillow")

_PLUGINS = {
    "AVIF": ("AvifImagePlugin", "AvifImageFile"),
    "BMP": ("BmpImagePlugin", "BmpImageFile"),
    "GIF": ("GifImagePlugin", "GifImageFile"),
    "JPEG": ("JpegImagePlugin", "JpegImageFile"),
    "JPEG 2000": ("Jpeg2KImagePlugin", "Jpeg2KImageFile"),
    "PNG": ("PngImagePlugin", "PngImageFile"),
}
_STRIP_BYTES = 1 << 20
_PIXEL_BYTES = 4  # of Pillow's images in color
# Pillow allocates larger images in blocks of 16 MiB, which the C library keeps when they are freed.
_LARGE_BYTES = 128 << 20
# Errors of Pillow that do not say what is wrong with the data.
WITHOUT_REASON = re.compile(
    r"(broken|unrecognized) data stream|image file is truncated|truncated file read|decoder error|unknown filter|"
    r"cannot identify|not enough image data|truncated image",
    re.IGNORECASE,
)

Strip = tuple[int, np.ndarray[Any, Any]]


@cache
def _plugin(kind: str) -> Any:
    if kind == "TIFF":

        class Tiff(TiffImagePlugin.TiffImageFile):
            """Pillow's plug-in, without the check of Pillow's limit."""

            def load_prepare(self) -> None:
                ImageFile.ImageFile.load_prepare(self)

        return Tiff
    module, name = _PLUGINS[kind]
    return getattr(importlib.import_module(f"PIL.{module}"), name)


def open_by_pillow(contents: bytes, kind: str) -> Any:
    """Return a ``PIL.Image.Image`` with its header read, without a check of its size.

    Raises:
        Exception: any exception of the plug-in.
    """
    return _plugin(kind)(io.BytesIO(contents))


def strips_of(pixels: np.ndarray[Any, Any]) -> Iterator[Strip]:
    """Yield strips of an image: index of the first row, and the pixels as a view.

    Processing strips needs little memory, which stays in the CPU cache.
    """
    rows = max(1, _STRIP_BYTES // max(1, pixels[:1].nbytes))
    for top in range(0, len(pixels), rows):
        yield top, pixels[top : top + rows]


def rows_of_pillow(image: Any, mode: str, height: int, width: int) -> Iterator[Strip]:
    """Decode an image and copy it from Pillow in strips, because copying it at once would need twice the memory.

    Args:
        image: from ``open_by_pillow``; closed afterwards.
        mode: L, LA, RGB, RGBA or CMYK.
        height: expected height.
        width: expected width.

    Yields:
        index of the first row, and uint8 ``[rows, width, channels]``.

    Raises:
        DecodeError: the image has another size.
        Exception: any exception of the plug-in.
    """
    converted = image
    try:
        image.load()
        image.info.pop("transparency", None)  # alpha is dropped; Pillow would warn for palettes
        if image.mode != mode:
            converted = image.convert(mode)
        if (converted.height, converted.width) != (height, width):
            raise DecodeError(
                f"the header declares {width}x{height} pixels, but the image has {converted.width}x{converted.height}."
            )
        if converted is not image:
            image.close()
        rows = max(1, _STRIP_BYTES // (_PIXEL_BYTES * width))
        for top in range(0, height, rows):
            count = min(rows, height - top)
            strip = converted
            if count < height:
                strip = Image.new(mode, (width, count))
                strip.paste(converted, (0, -top))
            yield top, np.asarray(strip).reshape(count, width, -1)
    finally:  # the caller may stop after the rows that it needs
        converted.close()
        image.close()
        if _PIXEL_BYTES * height * width > _LARGE_BYTES:
            return_free_memory()
