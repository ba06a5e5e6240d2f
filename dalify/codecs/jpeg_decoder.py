"""Decodes the baseline JPEG files of a chunk in one compiled call, and only the needed part of each.

With many threads, waiting for the GIL after a library call for each file would take longer than decoding. The most
common files are supported: 8 bits, sequential, Huffman-coded, one scan, gray or YCbCr without subsampling, 4:2:2 or
4:2:0. Pixels are identical to those of libjpeg-turbo, which decodes all other files, and reports damaged ones.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.array_at import byte_at, copy_bytes
from dalify.base.compiling import is_saved, njit
from dalify.codecs.jpeg_blocks import (
    fill_block,
    inverse_dct,
    load_int32,
    rgb_of_pixels,
    store_byte,
    store_int32,
    upsampled_pairs,
)
from dalify.codecs.jpeg_entropy import (
    ACROSS,
    BLOCK,
    COMPONENTS,
    DOWN,
    FACTS,
    HEIGHT,
    RESTART,
    SCAN,
    TABLE,
    TABLE_OF,
    TABLES,
    WIDTH,
    ZIGZAG,
    decode_block,
    fill_pairs,
    fill_skips,
    forget_tables,
    read_header,
    skip_block,
    word_at,
)
from dalify.data.samples import Samples

# libjpeg-turbo decodes larger images, because it needs less memory, and the overhead of a call is small for them.
_MAX_SCRATCH_BYTES = 16 << 20
# Bytes that vector instructions may read or write beyond the end of a row.
_MARGIN = 64

# The part of an image that is decoded, as int64: range of MCUs; addresses of the first samples, and row strides, of
# luma and chroma.
_TOP, _BOTTOM, _LEFT, _RIGHT, _LUMA, _LUMA_STRIDE, _BLUE, _RED, _CHROMA_STRIDE = range(9)
_PLACES = 9


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _decode_scan(facts, end, quantizers, tables, zigzag, coefficients, places, has_chroma, is_whole):
    """Decode the entropy-coded data, and transform the blocks of a range of MCUs.

    Args:
        facts: values of the header.
        end: address after the last byte of the file.
        quantizers: int32 ``[4, 64]``.
        tables: int32 ``[TABLES, TABLE]``.
        zigzag: address of the natural indices of coefficients.
        coefficients: int32 ``[64]``, zeros.
        places: int64 ``[_PLACES]``: the MCUs that are transformed, and the addresses of their samples.
        has_chroma: whether chroma is also transformed.
        is_whole: whether the file must end after the last row; otherwise, the remaining rows are not decoded.

    Returns:
        Whether the data is valid.
    """
    across, down = facts[ACROSS], facts[DOWN]
    luma_blocks = across * down
    blocks = luma_blocks + (2 if facts[COMPONENTS] == 3 else 0)
    columns = -(-facts[WIDTH] // (8 * across))
    block_at = np.int64(coefficients.ctypes.data)
    last_dc = np.zeros(3, np.int64)
    bits, count, place, missing = np.int64(0), np.int64(0), facts[SCAN], np.int64(0)
    until_restart, restarts = facts[RESTART], 0
    excess = np.int64(0)
    for row in range(places[_BOTTOM]):
        is_row_used = row >= places[_TOP]
        for column in range(columns):
            if facts[RESTART] > 0:
                if until_restart == 0:
                    if (
                        missing > count
                        or count - missing >= 8
                        or place + 2 > end
                        or word_at(place) != 0xFFD0 + (restarts & 7)
                    ):
                        return False
                    place, bits, count, missing = place + 2, np.int64(0), np.int64(0), np.int64(0)
                    last_dc[0], last_dc[1], last_dc[2] = 0, 0, 0
                    until_restart = facts[RESTART]
                    restarts += 1
                until_restart -= 1
            is_used = is_row_used and places[_LEFT] <= column < places[_RIGHT]
            for block in range(blocks):
                component = max(0, block - luma_blocks + 1)
                is_kept = is_used and (component == 0 or has_chroma)
                quantizer = np.int64(quantizers.ctypes.data) + 4 * BLOCK * facts[TABLE_OF + 3 * component]
                base = np.int64(tables.ctypes.data)
                dc_table = base + 4 * TABLE * facts[TABLE_OF + 3 * component + 1]
                ac_table = base + 4 * TABLE * facts[TABLE_OF + 3 * component + 2]
                if is_kept:
                    bits, count, place, missing, dc, kind = decode_block(
                        bits, count, place, end, missing, dc_table, ac_table, quantizer, zigzag, block_at,
                        last_dc[component],
                    )  # fmt: skip
                else:
                    bits, count, place, missing, dc, kind = skip_block(
                        bits, count, place, end, missing, dc_table, ac_table, last_dc[component]
                    )
                if kind < 0:
                    return False
                last_dc[component] = dc
                if not is_kept:
                    continue
                if component == 0:
                    stride = places[_LUMA_STRIDE]
                    y = ((row - places[_TOP]) * down + block // across) * 8
                    x = ((column - places[_LEFT]) * across + block % across) * 8
                    out = places[_LUMA] + y * stride + x
                else:
                    stride = places[_CHROMA_STRIDE]
                    first = places[_BLUE] if component == 1 else places[_RED]
                    out = first + (row - places[_TOP]) * 8 * stride + (column - places[_LEFT]) * 8
                if kind > 0:
                    excess |= inverse_dct(block_at, out, stride)
                else:
                    value = load_int32(block_at)
                    store_int32(block_at, 0)
                    excess |= (value + (1 << 14)) & -(1 << 15)
                    fill_block(out, stride, min(max(((value + 4) >> 3) + 128, 0), 255))
        if missing > count:
            return False
    if excess:
        return False
    if is_whole:
        return count - missing < 8 and place + 2 <= end and word_at(place) == 0xFFD9
    return word_at(end - 2) == 0xFFD9  # truncated files are refused


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _extend_rows(address, stride, rows, first, last):
    """Replicate the first and the last sample of rows outside the image."""
    for row in range(rows):
        line = address + row * stride
        store_byte(line + first - 1, byte_at(line + first))
        store_byte(line + last, byte_at(line + last - 1))


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _write_pixels(facts, window, places, out, stride, is_bgr, line):
    """Convert the samples of a part of an image to RGB or BGR.

    Args:
        facts: values of the header.
        window: int64 ``[4]``: y, x, height, width.
        places: addresses of the samples; see `_decode_scan`.
        out: address of the first pixel.
        stride: row stride of the pixels in bytes.
        is_bgr: whether blue is first.
        line: address of scratch memory for two rows of chroma and a row of pixels.
    """
    across, down = facts[ACROSS], facts[DOWN]
    top, left, height, width = window[0], window[1], window[2], window[3]
    chroma_rows = -(-facts[HEIGHT] // down)
    chroma_stride = places[_CHROMA_STRIDE]
    first_chroma_row = places[_TOP] * 8
    shift = left & 1 if across == 2 else 0
    doubled = -(-(width + shift) // 32) * 32 + 32
    rest = line + 2 * doubled
    for y in range(top, top + height):
        luma = places[_LUMA] + (y - places[_TOP] * 8 * down) * places[_LUMA_STRIDE] + left - places[_LEFT] * 8 * across
        nearer, farther = y, y
        if down == 2:
            nearer = y >> 1
            farther = min(max(nearer + 1 if y & 1 else nearer - 1, 0), chroma_rows - 1)
        offset = (left // across) - places[_LEFT] * 8
        near_offset = (nearer - first_chroma_row) * chroma_stride + offset
        far_offset = (farther - first_chroma_row) * chroma_stride + offset
        blue, red = places[_BLUE] + near_offset, places[_RED] + near_offset
        if across == 2:
            even, odd = (8, 7) if down == 2 else (4, 8)
            for x in range(0, width + shift, 32):
                upsampled_pairs(blue + x // 2, places[_BLUE] + far_offset + x // 2, even, odd, line + x)
                upsampled_pairs(red + x // 2, places[_RED] + far_offset + x // 2, even, odd, line + doubled + x)
            blue, red = line + shift, line + doubled + shift
        target = out + (y - top) * stride
        full = width & ~15
        for x in range(0, full, 16):
            rgb_of_pixels(luma + x, blue + x, red + x, target + 3 * x, is_bgr)
        if full < width:
            rgb_of_pixels(luma + full, blue + full, red + full, rest, is_bgr)
            copy_bytes(target + 3 * full, rest, 3 * (width - full))


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _write_gray(facts, window, places, out, stride, channels):
    """Copy luma to one channel, or to three."""
    top, left, height, width = window[0], window[1], window[2], window[3]
    for y in range(height):
        source = (
            places[_LUMA]
            + (top + y - places[_TOP] * 8 * facts[DOWN]) * places[_LUMA_STRIDE]
            + left
            - places[_LEFT] * 8 * facts[ACROSS]
        )
        target = out + y * stride
        if channels == 1:
            copy_bytes(target, source, width)
        else:
            for x in range(width):
                value = byte_at(source + x)
                store_byte(target + 3 * x, value)
                store_byte(target + 3 * x + 1, value)
                store_byte(target + 3 * x + 2, value)


@njit(nogil=True, cache=True)
def _decode(addresses, sizes, windows, out_at, out_shapes, channels, is_bgr, is_placed, zigzag, status):
    """Decode parts of JPEG files; see `JpegDecoder.decode`.

    Args:
        addresses: int64 ``[N]``: addresses of the files.
        sizes: int64 ``[N, 1]``: sizes of the files in bytes.
        windows: int64 ``[N, 4]``.
        out_at: int64 ``[N]``: addresses of the images.
        out_shapes: int64 ``[N, 3]``: shapes of the images.
        channels: 3 or 1.
        is_bgr: whether blue is first.
        is_placed: whether each part has the same position in the result as in the image.
        zigzag: uint8 ``[64]``: natural indices of coefficients.
        status: bool ``[N]``: input: which files to decode; output: which were decoded.
    """
    facts = np.empty(FACTS, np.int64)
    places = np.empty(_PLACES, np.int64)
    quantizers = np.empty((4, BLOCK), np.int32)
    tables = np.empty((TABLES, TABLE), np.int32)
    coefficients = np.zeros(BLOCK, np.int32)
    forget_tables(tables)
    samples = np.empty(0, np.uint8)
    order = np.int64(zigzag.ctypes.data)
    for n in range(len(addresses)):
        if not status[n]:
            continue
        status[n] = False
        end = addresses[n] + sizes[n, 0]
        if not read_header(addresses[n], end, facts, quantizers, tables, order):
            continue
        height, width, across, down = facts[HEIGHT], facts[WIDTH], facts[ACROSS], facts[DOWN]
        window = windows[n]
        bottom, right = window[0] + window[2], window[1] + window[3]
        if window[0] < 0 or window[1] < 0 or bottom > height or right > width:
            continue
        has_chroma = channels == 3 and facts[COMPONENTS] == 3
        # The chroma filter reads one sample more on each side. For very narrow images, libjpeg uses another filter.
        context = 2 if has_chroma and across == 2 else 0
        if context and width <= 4:
            continue
        rows, columns = -(-height // (8 * down)), -(-width // (8 * across))
        places[_TOP] = max(window[0] - context, 0) // (8 * down)
        places[_BOTTOM] = min((bottom + context - 1) // (8 * down) + 1, rows)
        places[_LEFT] = max(window[1] - context, 0) // (8 * across)
        places[_RIGHT] = min((right + context - 1) // (8 * across) + 1, columns)
        units_down, units_across = places[_BOTTOM] - places[_TOP], places[_RIGHT] - places[_LEFT]
        luma_stride = units_across * 8 * across + 2 * _MARGIN
        chroma_stride = units_across * 8 + 2 * _MARGIN
        luma_bytes = units_down * 8 * down * luma_stride
        chroma_bytes = units_down * 8 * chroma_stride
        line_bytes = 2 * (window[3] + 4 * _MARGIN) + 4 * _MARGIN
        needed = luma_bytes + 2 * chroma_bytes + line_bytes + _MARGIN
        if needed > _MAX_SCRATCH_BYTES:
            continue
        if samples.size < needed:
            samples = np.empty(needed, np.uint8)
        base = np.int64(samples.ctypes.data) + _MARGIN
        places[_LUMA], places[_LUMA_STRIDE] = base, luma_stride
        places[_BLUE], places[_RED] = base + luma_bytes, base + luma_bytes + chroma_bytes
        places[_CHROMA_STRIDE] = chroma_stride
        is_whole = places[_BOTTOM] == rows
        is_partial = units_down < places[_BOTTOM] or units_across < columns or has_chroma != (facts[COMPONENTS] == 3)
        for component in range(facts[COMPONENTS]):
            table = tables[facts[TABLE_OF + 3 * component + 2]]
            fill_pairs(table)
            if is_partial:
                fill_skips(table)
        if not _decode_scan(facts, end, quantizers, tables, order, coefficients, places, has_chroma, is_whole):
            for k in range(BLOCK):
                coefficients[k] = 0
            continue
        stride, target = out_shapes[n, 1] * channels, out_at[n]
        if is_placed:
            target += window[0] * stride + window[1] * channels
        if has_chroma:
            if across == 2:
                last = -(-width // 2) - places[_LEFT] * 8
                if places[_RIGHT] < columns:
                    last = units_across * 8
                for first in (places[_BLUE], places[_RED]):
                    _extend_rows(first, chroma_stride, units_down * 8, 0, last)
            line = base + luma_bytes + 2 * chroma_bytes
            _write_pixels(facts, window, places, target, stride, is_bgr, line)
        else:
            _write_gray(facts, window, places, target, stride, channels)
        status[n] = True


class JpegDecoder:
    """Decodes the JPEG files of chunks, after a number of images for which this is worthwhile.

    Compiling the decoder takes seconds, and loading compiled code from a file 0.1 s, so neither is done for a few
    images. While one thread compiles, the library decodes the images of the other threads.

    Args:
        load_after: number of images after which compiled code is loaded, if there is a file.
        compile_after: number of images after which the decoder is compiled, if there is no file.
    """

    def __init__(self, load_after: int = 256, compile_after: int = 4096) -> None:
        self._load_after = load_after
        self._compile_after = compile_after
        self._seen = 0
        self._is_ready = False
        self._lock = threading.Lock()

    def decode(
        self,
        encoded: Samples,
        out: Samples,
        colors: str,
        wanted: NDArray[np.bool_],
        windows: NDArray[np.int64],
        *,
        is_placed: bool = False,
    ) -> NDArray[np.bool_]:
        """Decode the valid and supported files of a chunk.

        Args:
            encoded: files, uint8 ``[bytes]``.
            out: output: images ``[height, width, channels]``, uint8.
            colors: ``"RGB"``, ``"BGR"``, or ``"GRAY"``, which has one channel.
            wanted: bool ``[N]``: files to decode.
            windows: int64 ``[N, 4]``: y, x, height, width of the part of each image that is decoded.
            is_placed: whether this part has the same position in `out`; otherwise it is at its start.

        Returns:
            bool ``[N]``: which files were decoded. The results of the others are undefined.
        """
        self._seen += len(encoded)
        arguments = _arguments(encoded, out, colors, wanted, windows, is_placed)
        if not self._is_ready and not self._can_begin(arguments):
            return np.zeros(len(encoded), np.bool_)
        _decode(*arguments)
        return arguments[-1]

    def compile(self) -> None:
        """Compile the decoder, or load its compiled code."""
        empty = Samples(np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.dtype(np.uint8), None)
        _decode(*_arguments(empty, empty, "RGB", np.zeros(0, np.bool_), np.zeros((0, 4), np.int64), False))
        self._is_ready = True

    def compile_if_used(self) -> None:
        """Compile the decoder if images have been seen."""
        if self._seen:
            self.compile()

    def _can_begin(self, arguments: tuple[Any, ...]) -> bool:
        if self._seen < self._load_after or not self._lock.acquire(blocking=False):
            return False
        try:
            if self._seen < self._compile_after and not is_saved(_decode, arguments):
                self._load_after = self._compile_after
                return False
            self.compile()
            return True
        finally:
            self._lock.release()


def _arguments(
    encoded: Samples,
    out: Samples,
    colors: str,
    wanted: NDArray[np.bool_],
    windows: NDArray[np.int64],
    is_placed: bool,
) -> tuple[Any, ...]:
    """Return the arguments of the compiled function; the last one, a copy, is modified."""
    return (
        encoded.addresses,
        np.ascontiguousarray(encoded.shapes),
        np.ascontiguousarray(windows),
        out.addresses,
        np.ascontiguousarray(out.shapes),
        1 if colors == "GRAY" else 3,
        colors == "BGR",
        is_placed,
        ZIGZAG,
        wanted.copy(),
    )
