"""Decompresses LZW as in TIFF: codes of 9 to 12 bits, the most significant bit first.

Source: TIFF 6.0, section 13. Every string of the table is a copy of earlier output, so the table contains only places
and lengths. All codes and lengths in the input are checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import copy_wide
from dalify.base.compiling import njit
from dalify.codecs.image_format import Bytes
from dalify.codecs.jpeg_blocks import load_big_endian

DAMAGED = -1
MAX_BYTES = 1 << 30  # places are 32-bit integers
_CLEAR, _FIRST_CODE, _MIN_BITS, _MAX_BITS = 256, 258, 9, 12
_LITERALS = 256
_WIDE = 16  # bytes of a copy in one instruction, which may write beyond the end of a string
_READ_BYTES = 4


def is_lzw(stored: memoryview) -> bool:
    """Return whether data starts with the clear code, as TIFF 6.0 requires; older files have another order of bits."""
    return len(stored) > 1 and stored[0] == _CLEAR >> 1 and stored[1] < 128


def inflate_lzw(stored: Bytes, size_bytes: int) -> tuple[Bytes, int]:
    """Decompress data.

    Args:
        stored: compressed data.
        size_bytes: bytes to decompress, at most `MAX_BYTES`; further data is ignored.

    Returns:
        uint8 ``[size_bytes]``, and the number of bytes found: fewer if the data ends before, `DAMAGED` if it contains
        an undefined code.
    """
    padded = np.empty(stored.size + _READ_BYTES, np.uint8)
    padded[: stored.size] = stored
    out = np.empty(_LITERALS + size_bytes + _WIDE, np.uint8)
    found = _inflate(padded, stored.size, out, size_bytes)
    return out[_LITERALS : _LITERALS + size_bytes], found


@njit(nogil=True, cache=True)
def _inflate(stored: Any, stored_bytes: int, out: Any, size_bytes: int) -> int:
    """Decompress data; return the number of bytes, or `DAMAGED`.

    Args:
        stored: compressed data, and four more bytes.
        stored_bytes: size of the compressed data.
        out: output: `_LITERALS` bytes for the strings of one byte, the decompressed data, and `_WIDE` more bytes.
        size_bytes: bytes to decompress.
    """
    starts, lengths = np.empty(1 << _MAX_BITS, np.int32), np.zeros(1 << _MAX_BITS, np.int16)
    for value in range(_LITERALS):
        out[value] = starts[value] = value
        lengths[value] = 1
    stored_at, out_at = stored.ctypes.data, out.ctypes.data
    end, written = _LITERALS + size_bytes, _LITERALS
    position, last = 0, 8 * stored_bytes
    width, free = _MIN_BITS, _FIRST_CODE
    start = length = 0  # of the previous string; no length after a clear code
    while written < end and position + width <= last:
        if length > 0:
            # As many codes as cannot exceed the data, the output, or their width.
            count = min((last - position) // width, (end - written) // _WIDE, (1 << width) - 2 - free)
            down, mask = 32 - width, np.uintp((1 << width) - 1)
            for _ in range(count):
                word = load_big_endian(stored_at + (position >> 3))
                code = np.uintp(word >> (down - (position & 7))) & mask
                found = lengths[code]
                if code >= np.uintp(free) or found == 0 or found > _WIDE:
                    break
                starts[np.uintp(free)], lengths[np.uintp(free)] = start, length + 1
                copy_wide(out_at + written, out_at + starts[code])
                start, length = written, found
                written += found
                position += width
                free += 1
            if written == end or position + width > last:
                break
        word = load_big_endian(stored_at + (position >> 3))
        code = np.intp(word >> (32 - width - (position & 7)) & ((1 << width) - 1))
        position += width
        if code == _CLEAR:
            width, free, length = _MIN_BITS, _FIRST_CODE, 0
            continue
        if code == _CLEAR + 1:
            break
        if length > 0:
            # The new string is the previous one and the first byte of this one, which follows it.
            if code > free or free == 1 << _MAX_BITS:
                return DAMAGED
            starts[free], lengths[free] = start, length + 1
            free += 1
            if free == (1 << width) - 1 and width < _MAX_BITS:
                width += 1
        elif code >= _LITERALS:
            return DAMAGED
        start, length = written, np.intp(lengths[code])
        source, copied = starts[code], min(length, end - written)
        if source + length > written:  # the string overlaps its last byte
            for k in range(copied):
                out[written + k] = out[source + k]
        else:
            for k in range(0, copied, _WIDE):
                copy_wide(out_at + written + k, out_at + source + k)
        written += copied
    return written - _LITERALS
