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
_GROUP_BYTES = 1 << 18  # strips that are decompressed together


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
    data: Bytes, strips: TiffStrips, height: int, width: int, samples: int, first_row: int, end_row: int
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Decode an image.

    Args:
        data: the file, 1-D uint8.
        strips: the place of the pixels.
        height: rows.
        width: columns.
        samples: samples per pixel.
        first_row: first row that is needed; strips above it are not decoded.
        end_row: the row after the last one that is needed.

    Yields:
        index of the first row, and uint8 or uint16 ``[rows, width, samples]``.

    Raises:
        DecodeError: the data is truncated or damaged.
    """
    row_bytes = width * samples * strips.dtype.itemsize
    count = 1 if strips.compression == NONE else max(1, _GROUP_BYTES // (strips.rows * row_bytes))
    end_strip = -(-end_row // strips.rows)
    for first in range(first_row // strips.rows, end_strip, count):
        numbers = slice(first, min(first + count, end_strip))
        top, bottom = first * strips.rows, min(numbers.stop * strips.rows, height)
        values = _decompressed(data, strips, numbers, row_bytes, (bottom - top) * row_bytes).view(strips.dtype)
        native = strips.dtype.newbyteorder("=")
        pixels = values.astype(native, copy=not values.flags.aligned).reshape(bottom - top, width, samples)
        if strips.is_predicted:
            summed = np.empty(pixels.shape, pixels.dtype)
            _add_previous(pixels, summed)
            pixels = summed
        yield top, pixels


def _decompressed(
    data: Bytes, strips: TiffStrips, numbers: slice, row_bytes: int, size_bytes: int
) -> np.ndarray[Any, Any]:
    """Return the bytes of some strips, without the unneeded bytes of the last strip."""
    offsets, sizes = strips.offsets[numbers], strips.sizes[numbers]
    if strips.compression == NONE:
        return data[offsets[0] : offsets[0] + size_bytes]
    strip_bytes = strips.rows * row_bytes
    if strips.compression in DEFLATE:
        return _inflated(data, strips, numbers, strip_bytes, size_bytes)
    if strips.compression == LZW:
        values, number, found = inflate_lzw(data, offsets, sizes, strip_bytes, size_bytes)
    else:
        values = np.empty(size_bytes, np.uint8)
        number, found = _unpack_strips(data, np.array(offsets), np.array(sizes), strip_bytes, values)
    if number < len(offsets):
        top = (numbers.start + number) * strips.rows
        if found == DAMAGED:
            raise DecodeError(f"damaged TIFF: the strip at row {top} contains an undefined LZW code.")
        raise _truncated(top, found, min(strip_bytes, size_bytes - number * strip_bytes))
    return values


def _inflated(data: Bytes, strips: TiffStrips, numbers: slice, strip_bytes: int, size_bytes: int) -> Bytes:
    """Decompress strips with deflate; see ``_decompressed``."""
    parts: list[bytes] = []
    for number in range(numbers.start, numbers.stop):
        stored = data[strips.offsets[number] : strips.offsets[number] + strips.sizes[number]]
        needed = min(strip_bytes, size_bytes - len(parts) * strip_bytes)
        top = number * strips.rows
        try:
            contents = deflate.decompressobj().decompress(stored.data, needed)
        except deflate.DeflateError as error:
            raise DecodeError(f"damaged TIFF: the strip at row {top} cannot be read ({error}).") from None
        if len(contents) < needed:
            raise _truncated(top, len(contents), needed)
        parts.append(contents)
    return np.frombuffer(b"".join(parts), np.uint8)


def _truncated(top: int, found: int, needed: int) -> DecodeError:
    return DecodeError(f"truncated TIFF: the strip at row {top} has {found:,} of {needed:,} bytes.")


@njit(nogil=True, cache=True)
def _unpack_strips(data: Any, offsets: Any, sizes: Any, strip_bytes: int, values: Any) -> tuple[int, int]:
    """Decompress strips with PackBits; return the number of the first incomplete strip, and its number of bytes."""
    for number in range(offsets.size):
        stored = data[offsets[number] : offsets[number] + sizes[number]]
        strip = values[number * strip_bytes : (number + 1) * strip_bytes]
        found = _unpack_bits(stored, strip)
        if found < strip.size:
            return number, found
    return offsets.size, 0


@njit(nogil=True, cache=True)
def _unpack_bits(stored: Any, values: Any) -> Any:
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
