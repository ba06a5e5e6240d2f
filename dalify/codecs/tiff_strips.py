"""Decodes the strips of common TIFF files: gray or RGB, uncompressed or compressed with deflate.

Pillow and OpenCV copy the file and the image, and decompress with zlib, which takes longer (`dalify.base.deflate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dalify.base import deflate
from dalify.base.compiling import njit
from dalify.base.errors import DecodeError
from dalify.codecs.image_format import Bytes

NONE, DEFLATE = 1, (8, 32946)


class TiffStrips(NamedTuple):
    """Where the pixels of an image are, in strips of whole rows.

    Attributes:
        offsets: start of each strip in the file.
        sizes: bytes of each strip in the file.
        rows: rows of a strip; the last one may have fewer.
        compression: `NONE` or one of `DEFLATE`.
        is_predicted: each sample is stored as its difference from the sample of the previous pixel.
        dtype: element type as stored, with byte order.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: int
    compression: int
    is_predicted: bool
    dtype: np.dtype[Any]


def decode_strips(
    data: Bytes, strips: TiffStrips, height: int, width: int, samples: int
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Decode an image.

    Args:
        data: the file, 1-D uint8.
        strips: the place of the pixels.
        height: rows.
        width: columns.
        samples: samples per pixel.

    Yields:
        index of the first row, and uint8 or uint16 ``[rows, width, samples]``.

    Raises:
        DecodeError: the data is truncated or damaged.
    """
    row_values = width * samples
    for number, (offset, size) in enumerate(zip(strips.offsets, strips.sizes, strict=True)):
        top = number * strips.rows
        rows = min(strips.rows, height - top)
        stored = data[offset : offset + size]
        values = _decompressed(stored, strips, rows * row_values * strips.dtype.itemsize, top).view(strips.dtype)
        native = strips.dtype.newbyteorder("=")
        pixels = values.astype(native, copy=not values.flags.aligned).reshape(rows, width, samples)
        if strips.is_predicted:
            summed = np.empty(pixels.shape, pixels.dtype)
            _add_previous(pixels, summed)
            pixels = summed
        yield top, pixels


def _decompressed(stored: Bytes, strips: TiffStrips, size_bytes: int, top: int) -> np.ndarray[Any, Any]:
    """Return the bytes of a strip."""
    if strips.compression == NONE:
        return stored[:size_bytes]
    try:
        contents = deflate.decompressobj().decompress(stored.data, size_bytes)
    except deflate.DeflateError as error:
        raise DecodeError(f"damaged TIFF: the strip at row {top} cannot be read ({error}).") from None
    if len(contents) < size_bytes:
        raise DecodeError(f"truncated TIFF: the strip at row {top} has {len(contents):,} of {size_bytes:,} bytes.")
    return np.frombuffer(contents, np.uint8)


@njit(nogil=True, cache=True)
def _add_previous(stored: Any, pixels: Any) -> None:
    """Undo horizontal differencing; sums of uint8 and uint16 wrap around."""
    rows, width, samples = stored.shape
    for y in range(rows):
        for k in range(samples):
            value = stored[y, 0, k]
            pixels[y, 0, k] = value
            for x in range(1, width):
                value = type(value)(value + stored[y, x, k])
                pixels[y, x, k] = value
