"""Decodes PNM: portable bitmaps, graymaps and pixmaps, plain (ASCII) and raw.

Libraries are slow for plain files and for maximum values other than 255, and none returns 16 bits.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DecodeError
from dalify.base.limits import check_image
from dalify.codecs.image_format import Bytes

# White space and comments, then a number.
_NUMBER = re.compile(rb"(?:[ \t\r\n\v\f]|#[^\r\n]*[\r\n])*(\d{1,10})(?=[ \t\r\n\v\f#])")
_MAX_VALUE = 65535


class PnmHeader(NamedTuple):
    """The header of a PNM file.

    Attributes:
        height: rows.
        width: columns.
        channels: 1 or 3.
        max_value: maximum value of samples; 1 for bitmaps.
        is_plain: whether samples are decimal numbers.
        start: offset of the samples.
    """

    height: int
    width: int
    channels: int
    max_value: int
    is_plain: bool
    start: int


def read_pnm_header(data: Bytes) -> PnmHeader:
    """Read the header.

    Args:
        data: a file of type P1 to P6, 1-D uint8.

    Raises:
        DecodeError: the header is damaged.
        LimitError: the image is too large.
    """
    kind = int(data[1]) - ord("0")
    numbers: list[int] = []
    position = 2
    for _ in range(2 if kind in (1, 4) else 3):
        found = _NUMBER.match(data.data, position)
        if found is None:
            raise DecodeError(f"damaged PNM: the header of the {data.size} bytes cannot be read.")
        numbers.append(int(found[1]))
        position = found.end()
    width, height, max_value = numbers if len(numbers) == 3 else (*numbers, 1)
    if not width or not height or not 0 < max_value <= _MAX_VALUE:
        raise DecodeError(f"damaged PNM: the header declares {width}x{height} pixels with values up to {max_value}.")
    check_image(height, width, "the PNM")
    return PnmHeader(height, width, 3 if kind in (3, 6) else 1, max_value, kind < 4, position + 1)


def decode_pnm(data: Bytes, header: PnmHeader) -> np.ndarray[Any, Any]:
    """Decode an image.

    Args:
        data: the file, 1-D uint8.
        header: header of the same file.

    Returns:
        ``[height, width, channels]``: uint8, scaled so that the maximum value is 255, or uint16 as stored if the
        maximum value is above 255. A view of the file if no arithmetic is needed.

    Raises:
        DecodeError: the data is truncated, or a sample is larger than the maximum value.
    """
    shape = (header.height, header.width, header.channels)
    count = header.height * header.width * header.channels
    is_bitmap = data[1] in b"14"
    if header.is_plain:
        min_bytes = count if is_bitmap else 2 * count - 1
        if data.size - header.start < min_bytes:
            raise _truncated(data, header)
        samples = np.empty(count, np.uint8 if header.max_value < 256 else np.uint16)
        outcome = _parse(data, header.start - 1, header.max_value, is_bitmap, samples)
        if outcome != count:
            if outcome >= 0:
                raise _truncated(data, header)
            raise DecodeError(f"damaged PNM: expected a number in [0, {header.max_value}] at byte {-outcome}.")
        samples = samples.reshape(shape)
    elif is_bitmap:
        row_bytes = (header.width + 7) // 8
        packed = _stored(data, header, header.height * row_bytes).reshape(header.height, row_bytes)
        samples = np.unpackbits(packed, axis=1, count=header.width)[..., None]
    elif header.max_value < 256:
        samples = _stored(data, header, count).reshape(shape)
    else:
        samples = _stored(data, header, 2 * count).view(">u2").reshape(shape)
    if is_bitmap:
        return np.where(samples, np.uint8(0), np.uint8(255))
    if header.max_value in (255, _MAX_VALUE) or header.max_value > 255:
        return samples.astype(np.uint16, copy=False) if samples.dtype.itemsize == 2 else samples
    scaled = [min(255, round(value / header.max_value * 255)) for value in range(256)]
    return np.array(scaled, np.uint8)[samples]


def _stored(data: Bytes, header: PnmHeader, size_bytes: int) -> Bytes:
    if data.size - header.start < size_bytes:
        raise _truncated(data, header)
    return data[header.start : header.start + size_bytes]


def _truncated(data: Bytes, header: PnmHeader) -> DecodeError:
    return DecodeError(f"truncated PNM: {data.size} bytes are too few for {header.width}x{header.height} pixels.")


@njit(nogil=True, cache=True)
def _parse(data: Any, position: int, max_value: int, is_bitmap: bool, samples: Any) -> int:
    """Parse decimal numbers; return their count, or minus the position of the first invalid byte."""
    found = 0
    value = -1
    is_comment = False
    for place in range(position, data.size):
        byte = data[place]
        if is_comment:
            is_comment = byte != 10 and byte != 13
        elif byte == 35:
            is_comment = True
        elif 48 <= byte <= 57:
            value = byte - 48 if value < 0 or is_bitmap else 10 * value + byte - 48
            if value > max_value:
                return -place
            if is_bitmap:
                samples[found] = value
                found += 1
                value = -1
        elif byte == 32 or 9 <= byte <= 13:
            if value >= 0:
                samples[found] = value
                found += 1
                value = -1
        else:
            return -place
        if found == samples.size:
            return found
    if value >= 0:
        samples[found] = value
        found += 1
    return found
