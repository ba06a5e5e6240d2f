"""Decodes lossless JPEG (process 14, Huffman): 2 to 16 bits per sample, used by medical scanners and cameras.

The libraries that decode other JPEGs do not support it. Each sample is predicted from its neighbors; the file stores
the differences. Three components are always RGB.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DecodeError
from dalify.codecs.image_format import Bytes

_LENGTH = struct.Struct(">H")
_BARE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
_MAX_CODE_LENGTH = 16
_TRUNCATED, _BAD_CODE, _NO_MARKER = 1, 2, 3  # error codes of `_decode`


class _Scan(NamedTuple):
    """Parameters of the only scan.

    Attributes:
        start: offset of its data.
        codes: table per component, indexed by the next 16 bits: code length and bits of the difference, ``[C, 65536]``.
        predictor: 1 to 7.
        shift: number of least significant bits that were dropped.
        restart: samples of a component between restarts; 0 for no restarts.
    """

    start: int
    codes: np.ndarray[Any, np.dtype[np.uint16]]
    predictor: int
    shift: int
    restart: int


def decode_lossless_jpeg(
    data: Bytes, height: int, width: int, components: int, bits: int
) -> np.ndarray[Any, np.dtype[np.uint8]] | np.ndarray[Any, np.dtype[np.uint16]]:
    """Decode the image as stored, without applying the orientation.

    Args:
        data: a JPEG with frame type 0xC3, 1-D uint8.
        height: rows; this and the following arguments are from its header.
        width: columns.
        components: channels.
        bits: bits per sample.

    Returns:
        ``[height, width, components]``, uint8 for up to 8 bits, else uint16; scaled to the full range of the dtype.

    Raises:
        DecodeError: the data is damaged, truncated or not supported.
    """
    if not 2 <= bits <= 16:
        raise DecodeError(f"damaged lossless JPEG: {bits} bits per sample.")
    if components not in (1, 3):
        raise DecodeError(f"lossless JPEG with {components} components is not supported.")
    scan = _headers(data, components)
    if scan.restart % width:
        raise DecodeError("damaged lossless JPEG: restarts within a row.")
    samples = np.empty((height, width, components), np.uint16)
    state = _decode(data, scan.start, scan.codes, scan.predictor, bits - scan.shift, scan.restart // width, samples)
    if state == _TRUNCATED:
        raise DecodeError(f"truncated JPEG: the data ends after {data.size} bytes, before row {height}.")
    if state:
        what = "an undefined Huffman code" if state == _BAD_CODE else "a missing restart marker"
        raise DecodeError(f"damaged lossless JPEG ({width}x{height}): {what}.")
    maximum = (1 << bits) - 1
    samples = np.minimum(samples << scan.shift, maximum) if scan.shift else samples
    if bits == 16:
        return samples
    full = 255 if bits <= 8 else 65535
    if maximum != full:
        samples = ((np.minimum(samples, maximum).astype(np.uint32) * full + maximum // 2) // maximum).astype(np.uint16)
    return samples.astype(np.uint8) if bits <= 8 else samples


def _headers(data: Bytes, components: int) -> _Scan:
    view, position = data.tobytes(), 2
    tables: dict[int, np.ndarray[Any, np.dtype[np.uint16]]] = {}
    restart = 0
    while position + 4 <= len(view):
        if view[position] != 0xFF or view[position + 1] in (0xFF, *_BARE):
            position += 1 if view[position + 1] == 0xFF else 2
            continue
        marker, (length,) = view[position + 1], _LENGTH.unpack_from(view, position + 2)
        segment = view[position + 4 : position + 2 + length]
        position += 2 + length
        if marker == 0xC4:
            _read_tables(segment, tables)
        elif marker == 0xDD and len(segment) >= 2:
            (restart,) = _LENGTH.unpack_from(segment)
        elif marker == 0xC3:
            sampling = segment[7 : 6 + 3 * components : 3]
            if components > 1 and any(each != 0x11 for each in sampling):
                raise DecodeError("lossless JPEG with components of different sizes is not supported.")
        elif marker == 0xDA:
            if len(segment) < 4 + 2 * components or segment[0] != components:
                raise DecodeError("lossless JPEG with one scan per component is not supported.")
            chosen = [segment[2 + 2 * index] >> 4 for index in range(components)]
            predictor, shift = segment[1 + 2 * components], segment[3 + 2 * components] & 15
            if not 1 <= predictor <= 7 or any(number not in tables for number in chosen):
                raise DecodeError("damaged lossless JPEG: no predictor or Huffman table.")
            return _Scan(position, np.stack([tables[number] for number in chosen]), predictor, shift, restart)
    raise DecodeError(f"truncated JPEG: the data ends after {len(view)} bytes, within the headers.")


def _read_tables(segment: bytes, tables: dict[int, np.ndarray[Any, np.dtype[np.uint16]]]) -> None:
    """Add the tables of a segment: for any 16 bits, 256 * (length of the code at their start) + its symbol."""
    while len(segment) >= 17:
        counts = segment[1:17]
        symbols = segment[17 : 17 + sum(counts)]
        if len(symbols) < sum(counts) or any(symbol > 16 for symbol in symbols):
            raise DecodeError("damaged lossless JPEG: an invalid Huffman table.")
        table = np.zeros(1 << _MAX_CODE_LENGTH, np.uint16)
        code = used = 0
        for length in range(1, _MAX_CODE_LENGTH + 1):
            span = 1 << (_MAX_CODE_LENGTH - length)
            for symbol in symbols[used : used + counts[length - 1]]:
                table[code : code + span] = length << 8 | symbol
                code += span
            used += counts[length - 1]
        if code > len(table):
            raise DecodeError("damaged lossless JPEG: too many Huffman codes.")
        tables[segment[0] & 15] = table
        segment = segment[17 + used :]


@njit(nogil=True, cache=True)
def _prediction(predictor, left, above, corner):
    """Predict a sample from its neighbors (ISO/IEC 10918-1, table H.1)."""
    if predictor == 1:
        return left
    if predictor == 2:
        return above
    if predictor == 3:
        return corner
    if predictor == 4:
        return left + above - corner
    if predictor == 5:
        return left + ((above - corner) >> 1)
    if predictor == 6:
        return above + ((left - corner) >> 1)
    return (left + above) >> 1


@njit(nogil=True, cache=True)
def _after_marker(data, position):
    """Return the position after the next restart marker; a negative error code if there is another marker, or none."""
    while position + 1 < data.size and not (data[position] == 0xFF and 0xD0 <= data[position + 1] <= 0xD7):
        if data[position] == 0xFF and data[position + 1] != 0:
            return -_NO_MARKER
        position += 1
    return position + 2 if position + 1 < data.size else -_TRUNCATED


@njit(nogil=True, cache=True)
def _decode(data, position, codes, predictor, bits, restart_rows, out):
    """Fill the samples; return 0 or an error code."""
    height, width, components = out.shape
    first = 1 << (bits - 1) if bits > 0 else 0
    window = np.uint64(0)  # bits that were read but not used, the last as the lowest
    held = 0
    spent = 0  # bytes that were read beyond the end
    since = height + 1
    for row in range(height):
        since += 1
        if row == 0 or (restart_rows and since >= restart_rows):
            if row:
                position = _after_marker(data, position)
                if position < 0:
                    return -position
            window, held, since, spent = np.uint64(0), 0, 0, 0
        is_first_row = since == 0
        for column in range(width):
            for component in range(components):
                while held <= 32:
                    byte = 0
                    if position < data.size:
                        byte = data[position]
                        if byte == 0xFF:
                            if position + 1 < data.size and data[position + 1] == 0:
                                position += 2
                            else:  # a marker: the data ends
                                byte = 0
                                spent += 1
                        else:
                            position += 1
                    else:
                        spent += 1
                    window = (window << np.uint64(8)) | np.uint64(byte)
                    held += 8
                if spent > 8:
                    return _TRUNCATED
                entry = codes[component, (window >> np.uint64(held - 16)) & np.uint64(0xFFFF)]
                length, size = entry >> 8, entry & 255
                if length == 0:
                    return _BAD_CODE
                held -= length
                difference = 0
                if size == 16:
                    difference = 32768
                elif size:
                    held -= size
                    value = np.int64((window >> np.uint64(held)) & np.uint64((1 << size) - 1))
                    difference = value if value >> (size - 1) else value - (1 << size) + 1
                if is_first_row:
                    guess = first if column == 0 else np.int64(out[row, column - 1, component])
                elif column == 0:
                    guess = np.int64(out[row - 1, 0, component])
                else:
                    guess = _prediction(
                        predictor,
                        np.int64(out[row, column - 1, component]),
                        np.int64(out[row - 1, column, component]),
                        np.int64(out[row - 1, column - 1, component]),
                    )
                out[row, column, component] = (guess + difference) & 0xFFFF
    return 0
