"""Decodes uncompressed BMP: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits.

Pillow copies the file and the image, and decodes all rows even if only a few are needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DecodeError
from dalify.base.limits import check_image
from dalify.codecs.image_format import Bytes

_OS2_HEADER_BYTES = 12
_HEADER_BYTES = frozenset({_OS2_HEADER_BYTES, 40, 52, 56, 64, 108, 124})
_ALPHA_HEADER_BYTES = 56  # shorter headers have no mask of alpha
_FILE_HEADER_BYTES, _MASKS_AT = 14, 54
_NO_COMPRESSION, _MASKS = 0, 3
_COMPRESSIONS = frozenset({0, 1, 2, 3})  # also run lengths of 8 and 4 bits, which Pillow decodes
_BITS = frozenset({1, 4, 8, 16, 24, 32})
_MAX_COLORS = 1 << 16
_BLUE_GREEN_RED, _BLUE_GREEN_RED_ALPHA = (2, 1, 0), (2, 1, 0, 3)
_BYTE_OF_MASK = {0xFF << 8 * place: place for place in range(4)}
_MASKS_OF_24_BITS = (0xFF0000, 0xFF00, 0xFF)
_GREEN_BITS = {(0x7C00, 0x3E0, 0x1F): 5, (0xF800, 0x7E0, 0x1F): 6}
_NO_PALETTE = np.empty((0, 3), np.uint8)
_STRIP_BYTES = 1 << 18


class BmpFile(NamedTuple):
    """An uncompressed BMP file.

    Attributes:
        height: rows.
        width: columns.
        bits: bits of a pixel: 1, 4, 8, 16, 24 or 32.
        start: offset of the pixels in the file.
        is_top_first: whether the top row is stored first.
        channels: 1 for palettes without colors, 3, or 4 with alpha.
        places: with 24 and 32 bits: byte of each channel in a pixel.
        green_bits: with 16 bits: bits of green; red and blue have 5.
        palette: with at most 8 bits: uint8 [2 ** bits, channels].
    """

    height: int
    width: int
    bits: int
    start: int
    is_top_first: bool
    channels: int = 3
    places: tuple[int, ...] = ()
    green_bits: int = 5
    palette: np.ndarray[Any, np.dtype[np.uint8]] = _NO_PALETTE


def read_bmp(data: Bytes) -> BmpFile | None:
    """Read the header; return None for files that are compressed, unusual, or damaged in the header.

    Args:
        data: the file, 1-D uint8, at least 26 bytes.

    Raises:
        LimitError: the image is too large.
    """
    view = data.data
    start, header_bytes = struct.unpack_from("<II", view, 10)
    header_end = _FILE_HEADER_BYTES + header_bytes
    if header_bytes not in _HEADER_BYTES or data.size < header_end:
        return None
    compression = colors = 0
    if header_bytes == _OS2_HEADER_BYTES:
        width, height, _, bits = struct.unpack_from("<HHHH", view, 18)
    else:
        width, height, _, bits, compression, _, _, _, colors = struct.unpack_from("<iiHHIIiiI", view, 18)
    if width <= 0 or height == 0 or compression not in (_NO_COMPRESSION, _MASKS):
        return None
    check_image(abs(height), width, "the BMP")
    bmp = BmpFile(abs(height), width, bits, start, height < 0)
    if bits in (1, 4, 8) and compression == _NO_COMPRESSION:
        entry_bytes = 3 if header_bytes == _OS2_HEADER_BYTES else 4
        return _with_palette(bmp, data, header_end, colors or 1 << bits, entry_bytes)
    masks_end = header_end
    if compression == _MASKS:
        masks_end = max(header_end, _MASKS_AT + 12)
        if data.size < masks_end:
            return None
        alpha = struct.unpack_from("<I", view, _MASKS_AT + 12)[0] if header_bytes >= _ALPHA_HEADER_BYTES else 0
        bmp = _with_masks(bmp, struct.unpack_from("<III", view, _MASKS_AT), alpha)
    elif bits in (24, 32):
        bmp = bmp._replace(places=_BLUE_GREEN_RED)
    elif bits != 16:
        return None
    return bmp if bmp is not None and start >= masks_end else None


def bmp_damage(data: Bytes) -> str:
    """Return what is wrong with the header of a file that no decoder accepts, as a verb phrase; "" if unknown.

    Args:
        data: the file, 1-D uint8, at least 26 bytes.
    """
    view = data.data
    (header_bytes,) = struct.unpack_from("<I", view, _FILE_HEADER_BYTES)
    if header_bytes not in _HEADER_BYTES:
        return f"declares a length of {header_bytes} bytes; BMP headers have {_listed(_HEADER_BYTES)} bytes"
    if data.size < _FILE_HEADER_BYTES + header_bytes:
        return f"is truncated: it has {header_bytes} bytes, from byte {_FILE_HEADER_BYTES} on"
    compression = colors = 0
    if header_bytes == _OS2_HEADER_BYTES:
        (bits,) = struct.unpack_from("<H", view, 24)
    else:
        bits, compression, colors = struct.unpack_from("<HI12xI", view, 28)
    if bits not in _BITS:
        return f"declares {bits} bits per pixel; BMP images have {_listed(_BITS)} bits"
    if compression not in _COMPRESSIONS:
        return f"declares compression type {compression}; supported are {_listed(_COMPRESSIONS)}"
    if compression == _MASKS:
        return "declares masks of channels that are not supported"
    if bits <= 8:
        colors = colors or 1 << bits
        end = _FILE_HEADER_BYTES + header_bytes + colors * (3 if header_bytes == _OS2_HEADER_BYTES else 4)
        if colors > _MAX_COLORS or end > data.size:
            return f"declares a palette of {colors:,} colors, which needs {end:,} bytes"
    return ""


def _listed(numbers: frozenset[int]) -> str:
    *others, last = sorted(numbers)
    return f"{', '.join(map(str, others))} or {last}"


def _with_palette(bmp: BmpFile, data: Bytes, palette_at: int, colors: int, entry_bytes: int) -> BmpFile | None:
    """Add a palette; return None if it is too large, or not before the pixels."""
    end = palette_at + colors * entry_bytes
    if colors > 1 << bmp.bits or not end <= min(bmp.start, data.size):
        return None
    palette = np.zeros((1 << bmp.bits, 3), np.uint8)  # colors that the file does not define are black
    palette[:colors] = data[palette_at:end].reshape(colors, entry_bytes)[:, 2::-1]
    if (palette == palette[:, :1]).all():
        palette = np.ascontiguousarray(palette[:, :1])
    return bmp._replace(channels=palette.shape[1], palette=palette)


def _with_masks(bmp: BmpFile, masks: tuple[int, int, int], alpha: int) -> BmpFile | None:
    """Add the places of channels; return None if they are unusual."""
    if bmp.bits == 16 and masks in _GREEN_BITS:
        return bmp._replace(green_bits=_GREEN_BITS[masks])
    if bmp.bits == 24 and masks == _MASKS_OF_24_BITS:
        return bmp._replace(places=_BLUE_GREEN_RED)
    if bmp.bits != 32:
        return None
    channels = (*masks, alpha) if alpha else masks
    places = tuple(_BYTE_OF_MASK[mask] for mask in channels if mask in _BYTE_OF_MASK)
    if not any(channels):
        places = _BLUE_GREEN_RED_ALPHA
    elif len(set(places)) < len(channels):
        return None
    return bmp._replace(channels=len(places), places=places)


def decode_bmp(data: Bytes, bmp: BmpFile, first_row: int, end_row: int) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Decode an image.

    Args:
        data: the file, 1-D uint8.
        bmp: header of the same file.
        first_row: first row to decode.
        end_row: the row after the last one to decode.

    Yields:
        index of the first row, and uint8 ``[rows, width, channels]``.

    Raises:
        DecodeError: the data is truncated.
    """
    height, width, channels = bmp.height, bmp.width, bmp.channels
    stride = (width * bmp.bits + 31) // 32 * 4
    # Some programs omit the padding of the last row.
    if data.size - bmp.start < stride * (height - 1) + (width * bmp.bits + 7) // 8:
        raise DecodeError(f"truncated BMP: {data.size} bytes are too few for {width}x{height} pixels.")
    count = max(1, _STRIP_BYTES // (width * channels))
    for top in range(first_row, end_row, count):
        rows = min(count, end_row - top)
        pixels = np.empty((rows, width, channels), np.uint8)
        place = bmp.start + (top if bmp.is_top_first else height - top - rows) * stride
        if bmp.bits <= 8:
            _look_up(data, place, stride, bmp.is_top_first, bmp.bits, bmp.palette, pixels)
        elif bmp.bits == 16:
            _scale_fields(data, place, stride, bmp.is_top_first, bmp.green_bits, pixels)
        else:
            _reorder(data, place, stride, bmp.is_top_first, bmp.bits // 8, np.array(bmp.places), pixels)
        yield top, pixels


@njit(nogil=True, cache=True)
def _look_up(data: Any, start: int, stride: int, is_top_first: bool, bits: int, palette: Any, pixels: Any) -> None:
    """Replace indices of 1, 4 or 8 bits by colors.

    Args:
        data: the file.
        start: offset of the row that is stored first.
        stride: bytes from a row to the next one.
        is_top_first: whether the top row is stored first.
        bits: bits of an index.
        palette: uint8 [2 ** bits, channels].
        pixels: uint8 [rows, width, channels], output.
    """
    height, width, channels = pixels.shape
    unpacked = np.empty(width, np.uint8)
    for number in range(height):  # reading backward would take twice the time
        place = start + number * stride
        y = number if is_top_first else height - 1 - number
        indices = data[place : place + width]
        if bits < 8:
            _unpack(data[place : place + (width * bits + 7) // 8], bits, unpacked)
            indices = unpacked
        if channels == 1:
            for x in range(width):
                pixels[y, x, 0] = palette[indices[x], 0]
        else:
            for x in range(width):
                index = indices[x]
                pixels[y, x, 0] = palette[index, 0]
                pixels[y, x, 1] = palette[index, 1]
                pixels[y, x, 2] = palette[index, 2]


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _unpack(packed: Any, bits: int, indices: Any) -> None:
    """Unpack indices of 1 or 4 bits, the most significant bits first."""
    whole_bytes = indices.size * bits // 8
    for place in range(whole_bytes):
        byte = np.uint8(packed[place])
        if bits == 4:
            indices[2 * place] = byte >> np.uint8(4)
            indices[2 * place + 1] = byte & np.uint8(15)
        else:
            for k in range(8):
                indices[8 * place + k] = byte >> np.uint8(7 - k) & np.uint8(1)
    for x in range(whole_bytes * 8 // bits, indices.size):
        indices[x] = packed[whole_bytes] << (x * bits % 8) >> (8 - bits) & ((1 << bits) - 1)


@njit(nogil=True, cache=True)
def _scale_fields(data: Any, start: int, stride: int, is_top_first: bool, green_bits: int, pixels: Any) -> None:
    """Scale red, green and blue from 5 or 6 bits to 8; see ``_look_up``."""
    height, width = pixels.shape[:2]
    max_green = np.uint32((1 << green_bits) - 1)
    scaled, scaled_green = np.empty(32, np.uint8), np.empty(64, np.uint8)
    for value in range(64):
        scaled[value & 31] = (value & 31) * 255 // 31
        scaled_green[value] = (value & max_green) * 255 // max_green
    for number in range(height):
        place = start + number * stride
        row = data[place : place + 2 * width]
        y = number if is_top_first else height - 1 - number
        for x in range(width):
            word = np.uint32(row[2 * x]) | np.uint32(row[2 * x + 1]) << np.uint32(8)
            pixels[y, x, 0] = scaled[word >> np.uint32(5 + green_bits) & np.uint32(31)]
            pixels[y, x, 1] = scaled_green[word >> np.uint32(5) & max_green]
            pixels[y, x, 2] = scaled[word & np.uint32(31)]


@njit(nogil=True, cache=True)
def _reorder(
    data: Any, start: int, stride: int, is_top_first: bool, pixel_bytes: int, places: Any, pixels: Any
) -> None:
    """Copy the bytes of channels.

    Args:
        data: the file.
        start: offset of the row that is stored first.
        stride: bytes from a row to the next one.
        is_top_first: whether the top row is stored first.
        pixel_bytes: bytes of a stored pixel.
        places: byte of each channel in a stored pixel, [channels].
        pixels: uint8 [rows, width, channels], output.
    """
    height, width, channels = pixels.shape
    is_usual = channels == 3 and places[0] == 2 and places[1] == 1 and places[2] == 0
    for number in range(height):
        place = start + number * stride
        row = data[place : place + width * pixel_bytes]
        y = number if is_top_first else height - 1 - number
        # With constant steps, the compiler uses vector instructions.
        if is_usual and pixel_bytes == 3:
            for x in range(width):
                pixels[y, x, 0] = row[3 * x + 2]
                pixels[y, x, 1] = row[3 * x + 1]
                pixels[y, x, 2] = row[3 * x]
        elif is_usual:
            for x in range(width):
                pixels[y, x, 0] = row[4 * x + 2]
                pixels[y, x, 1] = row[4 * x + 1]
                pixels[y, x, 2] = row[4 * x]
        else:
            for k in range(channels):
                channel = row[places[k] :]
                for x in range(width):
                    pixels[y, x, k] = channel[4 * x]
