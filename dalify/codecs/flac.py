"""Decodes FLAC (RFC 9639) to integers, in compiled code without the GIL, for all files of a chunk.

Files with wrong checksums, reserved bits or samples out of range are rejected here, and decoded by libsndfile.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from dalify.base.array_at import array_at, byte_at, pair_at
from dalify.base.compiling import intrinsic, njit
from dalify.base.llvm import load

PADDING_BYTES = 64  # zeros after the data, because bits are read ahead
SCRATCH_BEFORE = 32  # zeros before the samples of a frame: the maximum order of a predictor
_PEEKED_BITS = 57  # minimum number of valid bits in a word
_STREAM_INFO, _PADDING, _SEEK_TABLE, _COMMENTS, _PICTURE = 0, 1, 3, 4, 6  # types of metadata blocks
_STREAM_INFO_BYTES, _SEEK_POINT_BYTES = 34, 18
_NEAR_TAPS = 8
_MARK = int.from_bytes(b"fLaC", "little")
_INT32, _INT64 = np.empty(0, np.int32), np.empty(0, np.int64)

_BLOCK_SIZES = np.array([0, 192, 576, 1152, 2304, 4608, 0, 0, *(256 << n for n in range(8))], np.int64)
_RATES = np.array([0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000], np.int64)
_WIDTHS = np.array([0, 8, 12, 0, 16, 20, 24, 32], np.int64)
# x[t] is predicted from x[t - 1], x[t - 2], …
_FIXED_PREDICTORS = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [2, -1, 0, 0], [3, -3, 1, 0], [4, -6, 4, -1]], np.int64)


def _check_sums(polynomial: int, width: int, tables: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the CRCs of each byte, followed by 0, 1, 2, … zero bytes: int64 [tables, 256]."""
    found = np.zeros((tables, 256), np.int64)
    for byte in range(256):
        value = byte << (width - 8)
        for _ in range(8):
            value = (value << 1) ^ (polynomial if value >> (width - 1) else 0)
            value &= (1 << width) - 1
        found[0, byte] = value
    for table in range(1, tables):
        before = found[table - 1]
        found[table] = ((before << 8) & ((1 << width) - 1)) ^ found[0][before >> (width - 8)]
    return found


_CRC_8 = _check_sums(0x07, 8, 1)[0]
_CRC_16 = _check_sums(0x8005, 16, 8)


@intrinsic
def _peek(typing_context: Any, address: Any, position: Any) -> Any:
    """Return 64 bits from a position on, the first as the highest bit; the last seven may be zeros."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
        base, place = arguments
        word = ir.IntType(64)
        at = builder.add(base, builder.lshr(place, word(3)))
        value = load(builder, at, word)
        if sys.byteorder == "little":
            value = builder.bswap(value)
        return builder.shl(value, builder.and_(place, word(7)))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _zeros_on_top(typing_context: Any, word: Any) -> Any:
    """Return the number of leading zeros; 64 if all bits are zeros."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.int64), generate


@intrinsic
def _without(typing_context: Any, word: Any, count: Any) -> Any:
    """Return a word without its highest `count` bits, fewer than 64, shifted left."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.shl(arguments[0], builder.and_(arguments[1], ir.IntType(64)(63)))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _top(typing_context: Any, word: Any, count: Any) -> Any:
    """Return the highest `count` bits, 0 to 63, as an unsigned integer."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, ...]) -> Any:
        size = ir.IntType(64)
        down = builder.and_(builder.sub(size(63), arguments[1]), size(63))
        return builder.lshr(builder.lshr(arguments[0], size(1)), down)

    return types.int64(types.int64, types.int64), generate


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _signed(value, width):
    """Return an integer of ``width`` bits, sign-extended."""
    half = np.int64(1) << (width - 1)
    return (value ^ half) - half


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _coded(at, position, stop, rice, samples_at, first, count, factors_at, order, shift):
    """Decode the Rice-coded residuals of a partition and add predictions: ``samples[first : first + count]``.

    Args:
        at: address of the data.
        position: first bit.
        stop: number of bits of the data.
        rice: Rice parameter: number of bits of each residual that are stored in binary.
        samples_at: address of the samples of a frame, int32.
        first: index of the first sample.
        count: number of samples.
        factors_at: address of the coefficients of the predictor, int64 [32]; zeros beyond its order.
        order: order of the predictor.
        shift: number of bits by which predictions are shifted right.

    Returns:
        the bit after the partition; -1 if the data ends before it.
    """
    samples, factors = array_at(samples_at, (first + count,), _INT32), array_at(factors_at, (32,), _INT64)
    c0, c1, c2, c3 = factors[0], factors[1], factors[2], factors[3]
    c4, c5, c6, c7 = factors[4], factors[5], factors[6], factors[7]
    h0, h1, h2 = np.int64(samples[first - 1]), np.int64(samples[first - 2]), np.int64(samples[first - 3])
    h3, h4, h5 = np.int64(samples[first - 4]), np.int64(samples[first - 5]), np.int64(samples[first - 6])
    h6, h7 = np.int64(samples[first - 7]), np.int64(samples[first - 8])
    i, end = first, first + count
    far0, far1, far2 = np.int64(0), np.int64(0), np.int64(0)
    while i < end:
        if position > stop:
            return np.int64(-1)
        word = _peek(at, position)
        zeros = _zeros_on_top(word)
        size = zeros + 1 + rice
        if order > _NEAR_TAPS:
            far0, far1, far2 = np.int64(0), np.int64(0), np.int64(0)
            for j in range(_NEAR_TAPS, order):
                c = factors[j]
                far0 += c * samples[i - 1 - j]
                far1 += c * samples[i - j]
                far2 += c * samples[i + 1 - j]
        if size <= _PEEKED_BITS:
            one = (zeros << rice) | _top(_without(word, zeros + 1), rice)
            # Three residuals from one word if they fit, so that fewer loads wait for the length of a code.
            second = _without(word, size)
            zeros = _zeros_on_top(second)
            second_size = zeros + 1 + rice
            two = (zeros << rice) | _top(_without(second, zeros + 1), rice)
            third = _without(second, second_size)
            zeros = _zeros_on_top(third)
            third_size = zeros + 1 + rice
            three = (zeros << rice) | _top(_without(third, zeros + 1), rice)
            if size + second_size + third_size <= _PEEKED_BITS and i + 3 <= end:
                position += size + second_size + third_size
                sum_ = c7 * h7 + c6 * h6 + c5 * h5 + c4 * h4 + c3 * h3 + c2 * h2 + c1 * h1 + far0
                s0 = ((one >> 1) ^ -(one & 1)) + ((sum_ + c0 * h0) >> shift)
                sum_ = c7 * h6 + c6 * h5 + c5 * h4 + c4 * h3 + c3 * h2 + c2 * h1 + c1 * h0 + far1
                s1 = ((two >> 1) ^ -(two & 1)) + ((sum_ + c0 * s0) >> shift)
                sum_ = c7 * h5 + c6 * h4 + c5 * h3 + c4 * h2 + c3 * h1 + c2 * h0 + far2
                s2 = ((three >> 1) ^ -(three & 1)) + ((sum_ + c1 * s0 + c0 * s1) >> shift)
                samples[i], samples[i + 1], samples[i + 2] = s0, s1, s2
                h7, h6, h5, h4, h3, h2, h1, h0 = h4, h3, h2, h1, h0, s0, s1, s2
                i += 3
                continue
            position += size
        else:
            run = np.int64(0)
            while zeros >= _PEEKED_BITS:
                run, position = run + _PEEKED_BITS, position + _PEEKED_BITS
                if position > stop:
                    return np.int64(-1)
                zeros = _zeros_on_top(_peek(at, position))
            position += zeros + 1
            one = ((run + zeros) << rice) | _top(_peek(at, position), rice)
            position += rice
        sum_ = c7 * h7 + c6 * h6 + c5 * h5 + c4 * h4 + c3 * h3 + c2 * h2 + c1 * h1 + c0 * h0 + far0
        s0 = ((one >> 1) ^ -(one & 1)) + (sum_ >> shift)
        samples[i] = s0
        h7, h6, h5, h4, h3, h2, h1, h0 = h6, h5, h4, h3, h2, h1, h0, s0
        i += 1
    return position


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _stored(at, position, stop, width, samples_at, first, count, factors_at, order, shift):
    """Decode residuals of a fixed width, which may be 0; see `_coded`."""
    samples, factors = array_at(samples_at, (first + count,), _INT32), array_at(factors_at, (32,), _INT64)
    if position + width * count > stop:
        return np.int64(-1)
    for i in range(first, first + count):
        value = _signed(_top(_peek(at, position), width), width) if width else np.int64(0)
        position += width
        total = np.int64(0)
        for j in range(order):
            total += factors[j] * samples[i - 1 - j]
        samples[i] = value + (total >> shift)
    return position


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _subframe(at, position, stop, width, samples_at, size, factors_at):
    """Decode one channel of a frame; return the bit after it, or -1 if it is not supported."""
    refused = np.int64(-1)
    samples, factors = array_at(samples_at, (SCRATCH_BEFORE + size,), _INT32), array_at(factors_at, (32,), _INT64)
    if position + 8 > stop:
        return refused
    kind = _top(_peek(at, position), 7)  # with the bit in front, which is 0
    has_waste = _top(_peek(at, position), 8) & 1
    position += 8
    waste = np.int64(0)
    if has_waste:
        waste = _zeros_on_top(_peek(at, position)) + 1
        position += waste
        width -= waste
        if width < 1:
            return refused
    first = np.int64(SCRATCH_BEFORE)
    if kind == 0:
        value = _signed(_top(_peek(at, position), width), width)
        position += width
        for i in range(first, first + size):
            samples[i] = value
    elif kind == 1:
        position = _stored(at, position, stop, width, samples_at, first, size, factors_at, np.int64(0), np.int64(0))
    else:
        is_fixed = 8 <= kind <= 12
        if not is_fixed and not 32 <= kind <= 63:
            return refused
        order = kind - 8 if is_fixed else kind - 31
        if order > size or position + order * width > stop:
            return refused
        for i in range(first, first + order):
            samples[i] = _signed(_top(_peek(at, position), width), width)
            position += width
        shift = np.int64(0)
        for j in range(32):
            factors[j] = _FIXED_PREDICTORS[order, j] if is_fixed and j < order else 0
        if not is_fixed:
            head = _peek(at, position)
            precision, shift = _top(head, 4) + 1, _signed(_top(_without(head, 4), 5), 5)
            position += 9
            if precision == 16 or shift < 0 or position + order * precision > stop:
                return refused
            for j in range(order):
                factors[j] = _signed(_top(_peek(at, position), precision), precision)
                position += precision
        position = _residuals(at, position, stop, samples_at, size, factors_at, order, shift)
    if waste:
        for i in range(first, first + size):
            samples[i] <<= waste
    return position


@njit(nogil=True, inline="always")
def _residuals(at, position, stop, samples_at, size, factors_at, order, shift):
    refused = np.int64(-1)
    head = _peek(at, position)
    method, partitions = _top(head, 2), np.int64(1) << _top(_without(head, 2), 4)
    position += 6
    if method > 1 or size % partitions or size // partitions < order:
        return refused
    bits = 4 + method
    i, end = SCRATCH_BEFORE + order, SCRATCH_BEFORE
    for _ in range(partitions):
        if position > stop:
            return refused
        end += size // partitions
        rice = _top(_peek(at, position), bits)
        position += bits
        if rice == (1 << bits) - 1:
            width = _top(_peek(at, position), 5)
            position = _stored(at, position + 5, stop, width, samples_at, i, end - i, factors_at, order, shift)
        else:
            position = _coded(at, position, stop, rice, samples_at, i, end - i, factors_at, order, shift)
        if position < 0:
            return refused
        i = end
    return position


@njit(nogil=True, inline="always")
def _check_sum(at, size):
    """Return the CRC-16 of a frame."""
    found, stop = np.int64(0), at + size
    while at + 8 <= stop:
        a, b = byte_at(at) ^ (found >> 8), byte_at(at + 1) ^ (found & 255)
        found = _CRC_16[7, a] ^ _CRC_16[6, b] ^ _CRC_16[5, byte_at(at + 2)] ^ _CRC_16[4, byte_at(at + 3)]
        found ^= _CRC_16[3, byte_at(at + 4)] ^ _CRC_16[2, byte_at(at + 5)] ^ _CRC_16[1, byte_at(at + 6)]
        found ^= _CRC_16[0, byte_at(at + 7)]
        at += 8
    while at < stop:
        found = ((found << 8) & 0xFFFF) ^ _CRC_16[0, (found >> 8) ^ byte_at(at)]
        at += 1
    return found


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _coded_number(at):
    """Return the number of a frame, encoded like UTF-8, and the address after it; -1 if it is not valid."""
    invalid = np.int64(-1), at
    lead, more = byte_at(at), np.int64(0)
    while more < 8 and lead & (0x80 >> more):
        more += 1
    if more == 1 or more > 7:
        return invalid
    found = lead & (0x7F >> more)
    for place in range(at + 1, at + more):
        if byte_at(place) & 0xC0 != 0x80:
            return invalid
        found = (found << 6) | (byte_at(place) & 0x3F)
    return found, at + max(more, np.int64(1))


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _block_size(at, code):
    """Return the number of samples per channel, and the address after the bytes that contain it."""
    if code == 6:
        return byte_at(at) + 1, at + 1
    if code == 7:
        return pair_at(at) + 1, at + 2
    return np.int64(_BLOCK_SIZES[code]), at


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _sampling_rate(at, code, rate):
    """Return the sampling rate in Hz, and the address after its bytes; `rate` is the rate in the stream header."""
    if code == 0 or code == 15:  # 15 is invalid
        return rate if code == 0 else np.int64(-1), at
    if code < 12:
        return np.int64(_RATES[code]), at
    if code == 12:
        return byte_at(at) * 1000, at + 1
    return pair_at(at) * (10 if code == 14 else 1), at + 2


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _frame_header(start, number, block_size, rate, channels, width):
    """Read and check the header of a frame at the address ``start``; see `decode_frame`.

    Returns:
        number of samples per channel, channel assignment and bytes of the header; zeros if it is not supported.
    """
    refused = np.int64(0), np.int64(0), np.int64(0)
    second, sizes, fourth = byte_at(start + 1), byte_at(start + 2), byte_at(start + 3)
    if byte_at(start) != 0xFF or second & 0xFE != 0xF8 or fourth & 1:
        return refused
    found, at = _coded_number(start + 4)
    if found < 0:
        return refused
    count, at = _block_size(at, sizes >> 4)
    own_rate, at = _sampling_rate(at, sizes & 15, rate)
    check = np.int64(0)
    for place in range(start, at):
        check = _CRC_8[check ^ byte_at(place)]
    assignment, width_code = fourth >> 4, (fourth >> 1) & 7
    if check != byte_at(at) or own_rate != rate or width_code == 3 or (width_code and _WIDTHS[width_code] != width):
        return refused
    has_varying_size = second & 1
    if found != number if has_varying_size else found * block_size != number:
        return refused
    if assignment > 10 or channels != (assignment + 1 if assignment < 8 else 2):
        return refused
    return count, assignment, at + 1 - start


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _exceeds(samples_at, count, width):
    """Return whether a sample does not fit ``width`` bits."""
    outside, values = np.int32(0), array_at(samples_at, (count,), _INT32)
    for i in range(count):
        outside |= (values[i] >> (width - 1)) + np.int32(1) & ~np.int32(1)
    return outside != 0


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def decode_frame(base, size, start, number, block_size, rate, samples_at, stride, channels, width, factors_at):
    """Decode one frame.

    Args:
        base: address of the data, which is followed by `PADDING_BYTES` zeros.
        size: size of the data in bytes.
        start: first byte of the frame.
        number: number of the frame, or of its first sample if the length of frames varies.
        block_size: number of samples of the previous frames; 0 for the first frame.
        rate: sampling rate that the header of the stream declares, in Hz.
        samples_at: address of the output, int32 [channels, stride]; the first 32 of each channel are zeros.
        stride: 32 plus the maximum number of samples of a frame.
        channels: number of channels.
        width: bits per sample.
        factors_at: address of scratch memory, int64 [32].

    Returns:
        number of samples per channel and the byte after the frame; 0 and 0 if the frame is not supported.
    """
    refused = np.int64(0), np.int64(0)
    if start + 6 > size:
        return refused
    count, assignment, position = _frame_header(base + start, number, block_size, rate, channels, width)
    if count == 0 or count > stride - SCRATCH_BEFORE:
        return refused
    stop, position = size * 8, (start + position) * 8
    for channel in range(channels):
        is_difference = (assignment == 8 and channel == 1) or (assignment == 9 and channel == 0)
        is_difference |= assignment == 10 and channel == 1
        own_width = width + 1 if is_difference else width
        position = _subframe(base, position, stop, own_width, samples_at + 4 * stride * channel, count, factors_at)
        if position < 0:
            return refused
    end = (position + 7) >> 3
    if _top(_peek(base, position), 8 * end - position):  # the padding of the last byte is 0
        return refused
    if end + 2 > size or _check_sum(base + start, end - start) != pair_at(base + end):
        return refused
    if assignment >= 8:
        _join_channels(samples_at + 4 * SCRATCH_BEFORE, stride, count, assignment)
    for channel in range(channels):
        if _exceeds(samples_at + 4 * (stride * channel + SCRATCH_BEFORE), count, width):
            return refused
    return count, end + 2


@njit(nogil=True, inline="always")
def _join_channels(samples_at, stride, count, assignment):
    """Compute the two channels of a frame that stores a difference, at an address."""
    one, other = array_at(samples_at, (count,), _INT32), array_at(samples_at + 4 * stride, (count,), _INT32)
    if assignment == 8:  # left and difference
        for i in range(count):
            other[i] = one[i] - other[i]
    elif assignment == 9:  # difference and right
        for i in range(count):
            one[i] += other[i]
    else:  # mean, rounded down, and difference
        for i in range(count):
            side = other[i]
            total = 2 * one[i] + (side & 1)
            one[i], other[i] = (total + side) >> 1, (total - side) >> 1


@njit(nogil=True, inline="always")
def little_word(at):
    """Return four little-endian bytes at an address."""
    return byte_at(at) | byte_at(at + 1) << 8 | byte_at(at + 2) << 16 | byte_at(at + 3) << 24


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _is_sound_block(at, kind, size, is_first):
    """Return whether the structure of a metadata block is valid, as far as libsndfile checks it."""
    if kind == _STREAM_INFO:
        return is_first and size == _STREAM_INFO_BYTES
    if kind == _PADDING:
        return True
    if kind == _SEEK_TABLE:
        return size % _SEEK_POINT_BYTES == 0
    stop, place = at + size, at
    if kind == _COMMENTS:
        texts = np.int64(-1)  # the encoder name is first, then the number of comments
        while texts != 0:
            if place + 4 > stop:
                return False
            place += 4 + little_word(place)
            if texts < 0:
                if place + 4 > stop:
                    return False
                texts = little_word(place) + 1
                place += 4
            texts -= 1
        return place == stop
    if kind != _PICTURE:
        return False
    place += 4
    for part in range(3):  # two strings; dimensions and colors, and the image data
        skipped = 16 if part == 2 else 0
        if place + skipped + 4 > stop:
            return False
        place += skipped
        place += 4 + (pair_at(place) << 16 | pair_at(place + 2))
    return place == stop


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def read_flac_header(base, total, header_at):
    """Parse the stream header and the metadata blocks.

    Args:
        base: address of the data.
        total: number of bytes.
        header_at: address of the output, int64 [6]: samples per channel, channels, rate in Hz, bits per sample, first
            byte of the frames, and maximum number of samples in a frame.

    Returns:
        whether `decode_frame` may support the stream.
    """
    if total < 4 + 4 + _STREAM_INFO_BYTES or little_word(base) != _MARK or byte_at(base + 4) & 0x7F != _STREAM_INFO:
        return False
    at, is_last = np.int64(4), False
    while not is_last:
        if at + 4 > total:
            return False
        lead = byte_at(base + at)
        is_last, kind = lead >> 7 == 1, lead & 0x7F
        size = byte_at(base + at + 1) << 16 | pair_at(base + at + 2)
        if at + 4 + size > total or not _is_sound_block(base + at + 4, kind, size, at == 4):
            return False
        at += 4 + size
    head, header = _peek(base, np.int64(18 * 8)), array_at(header_at, (6,), _INT64)
    header[5] = pair_at(base + 10)
    header[2] = _top(head, 20)
    header[1] = (_top(head, 23) & 7) + 1
    header[3] = (_top(head, 28) & 31) + 1
    header[0] = head & ((np.int64(1) << 36) - 1)
    header[4] = at
    is_known_width = header[3] == 8 or header[3] == 16 or header[3] == 24
    return header[0] > 0 and header[2] > 0 and is_known_width and header[5] >= 16 and at < total
