"""Decodes the strips of common TIFF files: gray or RGB, uncompressed or compressed with LZW, deflate or PackBits.

Pillow and OpenCV copy the file and the image, and decompress with zlib and libtiff, which take longer
(`dalify.base.deflate`, `dalify.codecs.lzw`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dalify.base import deflate
from dalify.base.array_at import copy_wide
from dalify.base.compiling import njit
from dalify.base.errors import DecodeError
from dalify.codecs.image_format import Bytes
from dalify.codecs.lzw import DAMAGED, inflate_lzw

NONE, LZW, DEFLATE, PACK_BITS = 1, 5, (8, 32946), 32773
_LONGEST = 128  # bytes of a run or of literals of PackBits


class TiffStrips(NamedTuple):
    """Where the pixels of an image are, in strips of whole rows.

    Attributes:
        offsets: start of each strip in the file.
        sizes: bytes of each strip in the file.
        rows: rows of a strip; the last one may have fewer.
        compression: `NONE`, `LZW`, one of `DEFLATE`, or `PACK_BITS`.
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
    data: Bytes, strips: TiffStrips, height: int, width: int, samples: int, first_row: int = 0
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Decode an image.

    Args:
        data: the file, 1-D uint8.
        strips: the place of the pixels.
        height: rows.
        width: columns.
        samples: samples per pixel.
        first_row: first row that is needed; strips above it are not decoded.

    Yields:
        index of the first row, and uint8 or uint16 ``[rows, width, samples]``.

    Raises:
        DecodeError: the data is truncated or damaged.
    """
    row_values = width * samples
    for top in range(first_row // strips.rows * strips.rows, height, strips.rows):
        offset, size = strips.offsets[top // strips.rows], strips.sizes[top // strips.rows]
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
    if strips.compression in DEFLATE:
        try:
            contents = deflate.decompressobj().decompress(stored.data, size_bytes)
        except deflate.DeflateError as error:
            raise DecodeError(f"damaged TIFF: the strip at row {top} cannot be read ({error}).") from None
        found, values = len(contents), np.frombuffer(contents, np.uint8)
    elif strips.compression == LZW:
        values, found = inflate_lzw(stored, size_bytes)
        if found == DAMAGED:
            raise DecodeError(f"damaged TIFF: the strip at row {top} contains an undefined LZW code.")
    else:
        values = np.empty(size_bytes, np.uint8)
        found = int(_unpack_bits(stored, values))
    if found < size_bytes:
        raise DecodeError(f"truncated TIFF: the strip at row {top} has {found:,} of {size_bytes:,} bytes.")
    return values


@njit(nogil=True, cache=True)
def _unpack_bits(stored: Any, values: Any) -> int:
    """Decompress runs and literals (TIFF 6.0, section 9); return the number of bytes found."""
    place = written = 0
    stored_at, values_at = stored.ctypes.data, values.ctypes.data
    while place + 1 < stored.size and written < values.size:
        count = np.intp(stored[place])
        place += 1
        is_wide = values.size - written >= _LONGEST and stored.size - place >= _LONGEST
        if count < 128:
            count = min(count + 1, stored.size - place, values.size - written)
            if is_wide:
                for k in range(0, count, 16):
                    copy_wide(values_at + written + k, stored_at + place + k)
            else:
                for k in range(count):
                    values[written + k] = stored[place + k]
            place += count
            written += count
        elif count > 128:
            count = min(257 - count, values.size - written)
            for k in range(count):
                values[written + k] = stored[place]
            place += 1
            written += count
    return written


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
