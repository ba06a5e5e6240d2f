"""Parses headers and decodes entropy-coded data of baseline JPEG files, for `dalify.codecs.jpeg_decoder`.

Source: ITU-T T.81. Damaged and unusual files are rejected.
"""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import byte_at
from dalify.base.compiling import njit
from dalify.codecs.jpeg_blocks import (
    load_big_endian,
    load_int32,
    store_int32,
    top_bits,
    without_top_bits,
)

# A lookup maps codes up to this length, with the value after them if it fits.
_LOOKUP_BITS = 11
_LOOKUP = 1 << _LOOKUP_BITS
BLOCK = 64
# Columns of a Huffman table: the lookup, the largest code of each length, aligned to 16 bits, the offset from a code to
# the index of its symbol, the symbols, the number of codes of each length, whether these and the following are filled,
# and the lookups of `decode_block` for two symbols and of `skip_block`.
_LIMITS = _LOOKUP
_OFFSETS = _LIMITS + 18
_SYMBOLS = _OFFSETS + 18
_COUNTS = _SYMBOLS + 256
_IS_FILLED = _COUNTS + 17
_HAS_PAIRS = _IS_FILLED + 1
_HAS_SKIPS = _HAS_PAIRS + 1
_PAIRS = _HAS_SKIPS + 1
_SKIPS = _PAIRS + _LOOKUP
TABLE = _SKIPS + _LOOKUP

ZIGZAG = np.array(
    [0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
     28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
     47, 55, 62, 63], np.uint8)  # fmt: skip

# An entry of the lookup: bits to consume, size of the value after them, run of zeros, and the value. If the consumed
# bits contain the value, the size is 0. The entry is 0 if the code is longer than the lookup.
_SIZE_SHIFT, _RUN_SHIFT, _VALUE_SHIFT = 6, 10, 16
# An entry of the lookup for one or two symbols: bits to consume, run of zeros before the first value, number of
# coefficients, whether the block ends after them, the second value, or 0, and the first value. The entry is 0 if the
# first symbol has no value or does not fit.
_PAIR_RUN, _PAIR_AHEAD, _PAIR_END, _PAIR_SECOND, _PAIR_FIRST = 4, 8, 14, 15, 22
# An entry of the lookup of `skip_block`, for one or more symbols: bits to consume, including values, number of
# coefficients, and whether the block ends. The entry is 0 if the first code is longer than the lookup.
_AHEAD_SHIFT, _END_SHIFT = 6, 13


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def forget_tables(tables):
    """Mark tables, int32 ``[TABLES, TABLE]``, as not filled."""
    for number in range(tables.shape[0]):
        tables[number, _IS_FILLED] = 0


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _is_filled(counts, table):
    """Return whether a table already has these codes, because most files have the same codes."""
    if not table[_IS_FILLED]:
        return False
    total = 0
    for length in range(1, 17):
        count = byte_at(counts + length - 1)
        if table[_COUNTS + length] != count:
            return False
        total += count
    for symbol in range(total):  # noqa: SIM110 -- numba compiles a loop faster than a generator
        if table[_SYMBOLS + symbol] != byte_at(counts + 16 + symbol):
            return False
    return True


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _fill_table(counts, is_dc, table):
    """Fill a Huffman table from 16 counts and the symbols after them, at most 256; return False if it is invalid.

    Args:
        counts: address of the counts.
        is_dc: whether symbols are sizes of DC coefficients.
        table: output, int32 ``[TABLE]``.
    """
    if _is_filled(counts, table):
        return True
    table[_IS_FILLED] = table[_HAS_PAIRS] = table[_HAS_SKIPS] = 0
    symbols = counts + 16
    for place in range(_LIMITS):
        table[place] = 0
    code, symbol = 0, 0
    for length in range(1, 17):
        count = byte_at(counts + length - 1)
        table[_COUNTS + length] = count
        table[_OFFSETS + length] = symbol - code
        for _ in range(count):
            value = byte_at(symbols + symbol)
            if code >= 1 << length or (is_dc and value > 15):
                return False
            table[_SYMBOLS + symbol] = value
            if length <= _LOOKUP_BITS:
                size = value if is_dc else value & 15
                run = 0 if is_dc else value >> 4
                free = _LOOKUP_BITS - length
                first = code << free
                for rest in range(1 << free):
                    entry = run << _RUN_SHIFT | size << _SIZE_SHIFT | length
                    if 0 < size <= free:
                        bits = rest >> (free - size)
                        if bits < 1 << (size - 1):
                            bits -= (1 << size) - 1
                        entry = bits << _VALUE_SHIFT | run << _RUN_SHIFT | (length + size)
                    table[first + rest] = entry
            code += 1
            symbol += 1
        table[_LIMITS + length] = code << (16 - length)
        code <<= 1
    table[_LIMITS + 17] = 1 << 20
    table[_IS_FILLED] = 1
    return True


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def fill_pairs(table):
    """Fill the lookup for two symbols in a table of AC coefficients, int32 ``[TABLE]``."""
    if table[_HAS_PAIRS]:
        return
    for first in range(_LOOKUP):
        entry = table[first]
        value, run, used = entry >> _VALUE_SHIFT, (entry >> _RUN_SHIFT) & 15, entry & 63
        table[_PAIRS + first] = 0
        if value == 0 or abs(value) >= 1 << (31 - _PAIR_FIRST):
            continue
        ahead, other, is_end = run + 1, 0, 0
        following = table[(first << used) & (_LOOKUP - 1)]
        second = following >> _VALUE_SHIFT
        if second != 0 and (following & 63) <= _LOOKUP_BITS - used and abs(second) < 1 << 6:
            other = second
            used += following & 63
            ahead += ((following >> _RUN_SHIFT) & 15) + 1
            following = table[(first << used) & (_LOOKUP - 1)]
        if following != 0 and (following & 63) <= _LOOKUP_BITS - used and following >> _SIZE_SHIFT == 0:
            is_end = 1
            used += following & 63
        table[_PAIRS + first] = (
            value << _PAIR_FIRST
            | (other & 127) << _PAIR_SECOND
            | is_end << _PAIR_END
            | ahead << _PAIR_AHEAD
            | run << _PAIR_RUN
            | used
        )
    table[_HAS_PAIRS] = 1


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def fill_skips(table):
    """Fill the lookup of `skip_block` in a table of AC coefficients, int32 ``[TABLE]``."""
    if table[_HAS_SKIPS]:
        return
    for first in range(_LOOKUP):
        used, ahead, is_end = 0, 0, 0
        while ahead < BLOCK:
            entry = table[(first << used) & (_LOOKUP - 1)]
            value, size, run = entry >> _VALUE_SHIFT, (entry >> _SIZE_SHIFT) & 15, (entry >> _RUN_SHIFT) & 15
            length = entry & 63
            while abs(value) >> size:
                size += 1
                length -= 1
            if entry == 0 or length > _LOOKUP_BITS - used:
                break
            used += length + size
            if size == 0 and run != 15:
                is_end = 1
                break
            ahead += run + 1
        table[_SKIPS + first] = is_end << _END_SHIFT | ahead << _AHEAD_SHIFT | used
    table[_HAS_SKIPS] = 1


@njit(nogil=True, cache=True, no_cpython_wrapper=True, forceinline=True)
def _refilled(bits, count, place, end, missing):
    """Refill a bit buffer of fewer than 32 bits, the first as the highest, to at least 32 bits.

    After the end of the scan, it is padded with zeros, which are counted in `missing`.
    """
    if place + 4 <= end:
        word = load_big_endian(place)
        if (((word ^ 0xFFFFFFFF) - 0x01010101) & word & 0x80808080) == 0:  # no byte is 0xFF
            return bits | word << (32 - count), count + 32, place + 4, missing
    return _refilled_near_markers(bits, count, place, end, missing)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _refilled_near_markers(bits, count, place, end, missing):
    while count < 32:
        if place + 1 >= end:
            return bits, count + 32, place, missing + 32
        byte = byte_at(place)
        if byte == 0xFF:
            if byte_at(place + 1) != 0:  # a marker
                return bits, count + 32, place, missing + 32
            place += 1
        place += 1
        bits |= byte << (56 - count)
        count += 8
    return bits, count, place, missing


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _long_code(bits, table):
    """Return an entry for a Huffman code that is not in the lookup; 0 if there is no such code."""
    code = top_bits(bits, 16)
    length = _LOOKUP_BITS + 1
    while code >= load_int32(table + 4 * (_LIMITS + length)):
        length += 1
    if length > 16:
        return 0
    place = load_int32(table + 4 * (_OFFSETS + length)) + (code >> (16 - length))
    symbol = load_int32(table + 4 * (_SYMBOLS + place))
    return length | symbol << _SIZE_SHIFT


@njit(nogil=True, cache=True, no_cpython_wrapper=True, forceinline=True)
def _extended(bits, size):
    """Return the value that the next `size` bits encode."""
    value = top_bits(bits, size)
    return value if bits < 0 else value - ((1 << size) - 1)


@njit(nogil=True, cache=True, no_cpython_wrapper=True, forceinline=True)
def _decode_dc(bits, count, place, end, missing, table):
    """Return the bit buffer, the difference of a DC coefficient, and 0; -1 instead of 0 if there is no such code."""
    if count < 32:
        bits, count, place, missing = _refilled(bits, count, place, end, missing)
    entry = load_int32(table + 4 * top_bits(bits, _LOOKUP_BITS))
    if entry == 0:
        entry = _long_code(bits, table)
    bits = without_top_bits(bits, entry)
    count -= entry & 63
    value, size = entry >> _VALUE_SHIFT, (entry >> _SIZE_SHIFT) & 15
    if size > 0:
        value = _extended(bits, size)
        bits = without_top_bits(bits, size)
        count -= size
    return bits, count, place, missing, value, -1 if entry == 0 else 0


@njit(nogil=True, cache=True, no_cpython_wrapper=True, forceinline=True)
def decode_block(bits, count, place, end, missing, dc_table, ac_table, quantizer, zigzag, coefficients, last_dc):
    """Decode and dequantize one block.

    Returns:
        the bit buffer, the DC coefficient before dequantization, and 1 if there are other coefficients, 0 if there are
        none, -1 if the block is damaged.
    """
    bits, count, place, missing, value, kind = _decode_dc(bits, count, place, end, missing, dc_table)
    last_dc += value
    store_int32(coefficients, last_dc * load_int32(quantizer))
    k = 1
    while k < BLOCK:
        if count < 32:
            bits, count, place, missing = _refilled(bits, count, place, end, missing)
        top = top_bits(bits, _LOOKUP_BITS)
        entry = load_int32(ac_table + 4 * (_PAIRS + top))
        ahead = k + ((entry >> _PAIR_AHEAD) & 63)
        if entry != 0 and ahead < BLOCK:
            bits = without_top_bits(bits, entry & 15)
            count -= entry & 15
            # If there is no second value, its position is that of the first value, which is stored afterwards.
            natural = byte_at(zigzag + ahead - 1)
            value = (entry << (64 - _PAIR_FIRST)) >> (64 - _PAIR_FIRST + _PAIR_SECOND)
            store_int32(coefficients + 4 * natural, value * load_int32(quantizer + 4 * natural))
            natural = byte_at(zigzag + k + ((entry >> _PAIR_RUN) & 15))
            value = entry >> _PAIR_FIRST
            store_int32(coefficients + 4 * natural, value * load_int32(quantizer + 4 * natural))
            kind |= 1
            k = ahead + ((entry >> _PAIR_END) & 1) * BLOCK
            continue
        # The first symbol has no value or is long, or the last one may belong to the next block.
        entry = load_int32(ac_table + 4 * top)
        value = entry >> _VALUE_SHIFT
        if value == 0:
            if entry == 0:
                entry = _long_code(bits, ac_table)
            size = (entry >> _SIZE_SHIFT) & 15
            if size == 0:
                bits = without_top_bits(bits, entry)
                count -= entry & 63
                if (entry >> _RUN_SHIFT) & 15 == 15:
                    k += 16
                    continue
                if entry == 0:
                    kind = -1
                break
            bits = without_top_bits(bits, entry)
            count -= entry & 63
            value = _extended(bits, size)
            bits = without_top_bits(bits, size)
            count -= size
        else:
            bits = without_top_bits(bits, entry)
            count -= entry & 63
        k += (entry >> _RUN_SHIFT) & 15
        if k >= BLOCK:
            kind = -1
            break
        natural = byte_at(zigzag + k)
        store_int32(coefficients + 4 * natural, value * load_int32(quantizer + 4 * natural))
        kind |= 1
        k += 1
    return bits, count, place, missing, last_dc, kind


@njit(nogil=True, cache=True, no_cpython_wrapper=True, forceinline=True)
def skip_block(bits, count, place, end, missing, dc_table, ac_table, last_dc):
    """Decode the DC coefficient of a block, and skip the others, several in each step.

    Returns:
        the result of `decode_block`, with 0 instead of 1.
    """
    bits, count, place, missing, value, kind = _decode_dc(bits, count, place, end, missing, dc_table)
    last_dc += value
    k = 1
    while k < BLOCK:
        if count < 32:
            bits, count, place, missing = _refilled(bits, count, place, end, missing)
        top = top_bits(bits, _LOOKUP_BITS)
        entry = load_int32(ac_table + 4 * (_SKIPS + top))
        ahead = k + ((entry >> _AHEAD_SHIFT) & 127)
        if entry != 0 and ahead < BLOCK:
            bits = without_top_bits(bits, entry)
            count -= entry & 63
            k = ahead + (entry >> _END_SHIFT) * BLOCK
            continue
        # The code is long, or the last symbols may belong to the next block.
        entry = load_int32(ac_table + 4 * top)
        if entry == 0:
            entry = _long_code(bits, ac_table)
        size, run = (entry >> _SIZE_SHIFT) & 15, (entry >> _RUN_SHIFT) & 15
        bits = without_top_bits(without_top_bits(bits, entry), size)
        count -= (entry & 63) + size
        if size > 0 or entry >> _VALUE_SHIFT != 0:
            k += run
            if k >= BLOCK:
                kind = -1
                break
            k += 1
        elif run == 15:
            k += 16
        else:
            if entry == 0:
                kind = -1
            break
    return bits, count, place, missing, last_dc, kind


# Values of a header, as int64: extents, components, subsampling of chroma, MCUs between restarts, start of the scan.
HEIGHT, WIDTH, COMPONENTS, ACROSS, DOWN, RESTART, SCAN = range(7)
TABLE_OF = 7  # of the indices of the quantization, DC and AC tables of each component
FACTS = TABLE_OF + 9
TABLES = 8  # four for DC, then four for AC


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def word_at(address):
    """Return the two big-endian bytes at an address as an integer."""
    return (byte_at(address) << 8) | byte_at(address + 1)


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _read_quantizers(contents, end, quantizers, zigzag):
    """Parse the tables of a segment; return a bit mask of their indices, -1 if one is not supported."""
    known = 0
    while contents < end:
        number = byte_at(contents)
        if number > 3 or contents + 65 > end:
            return -1
        for k in range(BLOCK):
            quantizers[number, byte_at(zigzag + k)] = byte_at(contents + 1 + k)
        known |= 1 << number
        contents += 65
    return known


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _read_tables(contents, end, tables):
    """Parse the Huffman tables of a segment; return a bit mask of their indices, -1 if one is not supported."""
    known = 0
    while contents < end:
        number = byte_at(contents)
        kind, number = number >> 4, number & 15
        if kind > 1 or number > 3 or contents + 17 > end:
            return -1
        total = 0
        for k in range(1, 17):
            total += byte_at(contents + k)
        if total > 256 or contents + 17 + total > end:
            return -1
        number += 4 * kind
        if not _fill_table(contents + 1, kind == 0, tables[number]):
            return -1
        known |= 1 << number
        contents += 17 + total
    return known


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _read_frame(contents, length, facts):
    """Parse extents and components; return whether they are supported."""
    components = byte_at(contents + 5) if length >= 8 else 0
    if (components != 1 and components != 3) or length != 8 + 3 * components or byte_at(contents) != 8:
        return False
    facts[HEIGHT], facts[WIDTH] = word_at(contents + 1), word_at(contents + 3)
    facts[COMPONENTS], facts[ACROSS], facts[DOWN] = components, 1, 1
    for component in range(components):
        sampling = byte_at(contents + 7 + 3 * component)
        facts[TABLE_OF + 3 * component] = byte_at(contents + 8 + 3 * component)
        if components == 1:
            continue  # the blocks of a single component do not depend on subsampling
        if component == 0 and (sampling == 0x21 or sampling == 0x22):
            facts[ACROSS], facts[DOWN] = 2, sampling & 15
        elif sampling != 0x11:
            return False
    return facts[HEIGHT] != 0 and facts[WIDTH] != 0


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _read_scan(contents, length, frame, is_jfif, known_quantizers, known_tables, facts):
    """Parse the header of the scan, which follows a frame; return whether it is supported."""
    components = facts[COMPONENTS]
    if byte_at(contents) != components or length != 6 + 2 * components:
        return False
    are_counted = True
    for component in range(components):
        name = byte_at(contents + 1 + 2 * component)
        used = byte_at(contents + 2 + 2 * component)
        are_counted = are_counted and name == component + 1
        dc, ac, quantizer = used >> 4, 4 + (used & 15), facts[TABLE_OF + 3 * component]
        if name != byte_at(frame + 6 + 3 * component) or dc > 3 or ac > 7 or quantizer > 3:
            return False
        if not (known_tables >> dc) & (known_tables >> ac) & (known_quantizers >> quantizer) & 1:
            return False
        facts[TABLE_OF + 3 * component + 1], facts[TABLE_OF + 3 * component + 2] = dc, ac
    after = contents + 1 + 2 * components
    if byte_at(after) != 0 or byte_at(after + 1) != 63 or byte_at(after + 2) != 0:
        return False
    return components == 1 or is_jfif or are_counted


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def read_header(data, end, facts, quantizers, tables, zigzag):
    """Parse all segments up to the scan; return whether the file is supported.

    Args:
        data: address of the file.
        end: address after the last byte.
        facts: output, int64 ``[FACTS]``.
        quantizers: output, int32 ``[4, 64]``, in natural order.
        tables: output, int32 ``[TABLES, TABLE]``.
        zigzag: address of the natural indices of coefficients.
    """
    for fact in range(FACTS):
        facts[fact] = 0
    known_quantizers, known_tables, frame, is_jfif = 0, 0, np.int64(0), False
    if data + 4 > end or word_at(data) != 0xFFD8:
        return False
    place = data + 2
    while place + 4 <= end and byte_at(place) == 0xFF:
        marker, length, contents = byte_at(place + 1), word_at(place + 2), place + 4
        place += 2 + length
        if length < 2 or place > end:
            return False
        found = 0
        if marker == 0xDB:
            found = _read_quantizers(contents, place, quantizers, zigzag)
            known_quantizers |= found
        elif marker == 0xC4:
            found = _read_tables(contents, place, tables)
            known_tables |= found
        elif marker == 0xC0 or marker == 0xC1:
            if frame or not _read_frame(contents, length, facts):
                return False
            frame = contents
        elif marker == 0xDD:
            if length != 4:
                return False
            facts[RESTART] = word_at(contents)
        elif marker == 0xDA:
            facts[SCAN] = place
            return frame != 0 and _read_scan(contents, length, frame, is_jfif, known_quantizers, known_tables, facts)
        elif marker == 0xE0:
            # "JFIF" and a zero: the components are Y, Cb and Cr. The library warns about versions other than 1.
            if length >= 16 and load_big_endian(contents) == 0x4A464946 and byte_at(contents + 4) == 0:
                if byte_at(contents + 5) != 1:
                    return False
                is_jfif = True
        elif marker == 0xEE:  # Adobe's segment; the components may be RGB
            if length >= 14 and byte_at(contents + 11) != 1:
                return False
        elif not (0xE1 <= marker <= 0xEF or marker == 0xFE):
            return False
        if found < 0:
            return False
    return False
