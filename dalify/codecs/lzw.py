"""Decompresses LZW as in TIFF: codes of 9 to 12 bits, the most significant bit first.

Source: TIFF 6.0, section 13. Every string of the table is a copy of earlier output, so the table contains only places
and lengths. All codes and lengths in the input are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def is_lzw(stored: memoryview) -> bool:
    """Return whether data starts with the clear code, as TIFF 6.0 requires; older files have another order of bits."""
    return len(stored) > 1 and stored[0] == _CLEAR >> 1 and stored[1] < 128


def inflate_lzw(
    data: Bytes, offsets: Sequence[int], sizes: Sequence[int], strip_bytes: int, size_bytes: int
) -> tuple[Bytes, int, int]:
    """Decompress strips.

    Args:
        data: the file.
        offsets: start of each strip.
        sizes: bytes of each strip; all are inside the file.
        strip_bytes: decompressed bytes of each strip but the last; further data is ignored.
        size_bytes: decompressed bytes of all strips, at most `MAX_BYTES`.

    Returns:
        uint8 ``[size_bytes]``; the number of the first incomplete strip, or the number of strips; and the number of
        bytes found in that strip, `DAMAGED` if it contains an undefined code.
    """
    out = np.empty(_LITERALS + size_bytes + _WIDE, np.uint8)
    number, found = _inflate_strips(data, np.array(offsets), np.array(sizes), strip_bytes, out)
    return out[_LITERALS : _LITERALS + size_bytes], number, found


@njit(nogil=True, cache=True)
def _inflate_strips(data: Any, offsets: Any, sizes: Any, strip_bytes: int, out: Any) -> tuple[int, int]:
    """Decompress strips; see ``inflate_lzw``.

    Args:
        data: the file.
        offsets: int64 [strips].
        sizes: int64 [strips].
        strip_bytes: decompressed bytes of each strip but the last.
        out: output: `_LITERALS` bytes for the strings of one byte, the decompressed data, and `_WIDE` more bytes.
    """
    starts, lengths = np.empty(1 << _MAX_BITS, np.int32), np.zeros(1 << _MAX_BITS, np.int16)
    for value in range(_LITERALS):
        out[value] = starts[value] = value
        lengths[value] = 1
    for number in range(offsets.size):
        start = _LITERALS + number * strip_bytes
        end = min(start + strip_bytes, out.size - _WIDE)
        stored = data[offsets[number] : offsets[number] + sizes[number]]
        found = _inflate(stored, starts, lengths, out, start, end)
        if found < end - start:
            return number, found
    return offsets.size, 0


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _code_at(stored: Any, position: int, width: int) -> Any:
    """Return the code at a position in bits, also at the end of the data."""
    first = position >> 3
    word = np.int64(0)
    for place in range(first, first + 3):
        word = word << 8 | (np.int64(stored[place]) if place < stored.size else 0)
    return word >> (24 - width - (position & 7)) & ((1 << width) - 1)


@njit(nogil=True, cache=True)
def _inflate(stored: Any, starts: Any, lengths: Any, out: Any, first: int, end: int) -> Any:
    """Decompress a strip; return the number of bytes, or `DAMAGED`.

    Args:
        stored: compressed data.
        starts: place of the string of each code in ``out``, int32 [4096]; defined for codes of one byte.
        lengths: length of the string of each code, int16 [4096]; 0 for the codes that are not strings.
        out: output.
        first: place of the decompressed data in ``out``, which has `_WIDE` more bytes after them.
        end: place after the decompressed data.
    """
    stored_at, out_at = stored.ctypes.data, out.ctypes.data
    written, position, last = first, 0, 8 * stored.size
    width, free = _MIN_BITS, _FIRST_CODE
    start = length = 0  # of the previous string; no length after a clear code
    while written < end and position + width <= last:
        if length > 0:
            # As many codes as cannot exceed the data, which are read in words, the output, or their width.
            count = min((last - 32 - position) // width, (end - written) // _WIDE, (1 << width) - 2 - free)
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
            if written == end:
                break
        code = _code_at(stored, position, width)
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
    return written - first
