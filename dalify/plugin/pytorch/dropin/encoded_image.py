"""JPEG files in memory, and images of Pillow that are decoded when their pixels are used."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import simplejpeg
import torch
from PIL import Image

from dalify.base import scratch
from dalify.base.errors import DecodeError
from dalify.codecs import JpegHeader, decode_first_rows, read_jpeg_header
from dalify.plugin.pytorch.dropin.lazy_image import pixels_of

_Array = np.ndarray[Any, Any]
_JPEG_START = b"\xff\xd8\xff"
_JPEG_END = b"\xff\xd9"
_SPARE_BYTES = 16
_COMMON_FRAMES = (0xC0, 0xC1, 0xC2)  # baseline, extended, progressive; all with Huffman codes


def contents_of(path: Any) -> bytes:
    """Return the bytes of a file; pathlib takes twice as long, which is 1 % of the time per photograph."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size_bytes = os.fstat(file).st_size
        data = os.read(file, size_bytes + 1)
        while len(data) < size_bytes and (more := os.read(file, size_bytes + 1 - len(data))):
            data += more
        return data
    except OSError as error:  # a folder, for instance
        error.filename = path
        raise
    finally:
        os.close(file)


def plain_jpeg_header(data: bytes) -> JpegHeader | None:
    """Return the header if Pillow decodes the same pixels, otherwise None."""
    if not data.startswith(_JPEG_START):
        return None
    try:
        header = read_jpeg_header(np.frombuffer(data, np.uint8))
    except DecodeError:
        return None
    limit = Image.MAX_IMAGE_PIXELS  # above, Pillow warns or raises an error; None for no limit
    is_large = limit is not None and header.height * header.width > limit
    is_plain = header.components in (1, 3) and header.bits == 8 and header.frame in _COMMON_FRAMES
    return header if is_plain and not is_large else None


def decode_rows(
    data: bytes, header: JpegHeader, rows: int, load: Callable[[], Image.Image | torch.Tensor | _Array]
) -> _Array:
    """Decode a JPEG to RGB.

    Args:
        data: the file.
        header: its header, see `plain_jpeg_header`.
        rows: number of rows that are needed, from the top.
        load: returns the same image as RGB by Pillow, torchvision or OpenCV, with their warnings and errors.

    Returns:
        At least these rows, valid until this thread decodes the next image.
    """
    buffer = scratch.borrow("decoded image", (header.height * header.width * 3 + _SPARE_BYTES,))
    with suppress(ValueError):  # Pillow may be able to decode it
        # Pillow reads to the end, so it raises an error for a truncated file.
        is_whole = data.rfind(_JPEG_END, header.frame_position) > 0
        encoded = np.frombuffer(data, np.uint8)
        found = decode_first_rows(encoded, header, "RGB", False, buffer, rows) if is_whole else None
        return simplejpeg.decode_jpeg(data, "RGB", buffer=buffer) if found is None else found
    return pixels_of(load())[:rows]


class EncodedImage(Image.Image):
    """A JPEG that becomes the image of Pillow which `load` returns when its pixels or other attributes are used.

    Args:
        mode: mode of that image, RGB or L.
        data: the file.
        header: its header, see `plain_jpeg_header`.
        info: ``Image.info`` of that image.
        load: returns that image.
        format: its format; None for the result of an operation.
    """

    def __init__(
        self,
        mode: str,
        data: bytes,
        header: JpegHeader,
        info: dict[Any, Any],
        load: Callable[[], Image.Image],
        format: str | None,
    ) -> None:
        super().__init__()
        self._mode, self._size, self.info, self.format = mode, (header.width, header.height), info, format
        self.data, self.header, self._load = data, header, load

    def decode(self, rows: int) -> _Array:
        """Return at least this number of rows of the RGB image; see `decode_rows`."""
        return decode_rows(self.data, self.header, rows, self._load)

    def load(self) -> Any:
        """Decode the image; errors are those of Pillow."""
        image: Any = self._load()
        self.__class__, self.__dict__ = type(image), vars(image)
        return self.load()

    def convert(self, mode: str | None = None, *arguments: Any, **options: Any) -> Image.Image:
        """Convert the image; to RGB without decoding it."""
        load = self._load
        if mode == "RGB" and not arguments and not options:
            return EncodedImage(mode, self.data, self.header, dict(self.info), lambda: load().convert(mode), None)
        self.load()
        return self.convert(mode, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_load" not in self.__dict__:
            raise AttributeError(name)
        self.load()
        return getattr(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.load()
        return self.__reduce_ex__(protocol)
