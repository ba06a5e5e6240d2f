"""Reads byte strings from the pages of a Parquet file: images and audio.

pyarrow also copies each byte string from the page to a dictionary and to its array, which takes as long as
decompressing photographs. Only the default format of writers is read here: pages of version 1 without nulls,
uncompressed or compressed by Snappy, plain or with a dictionary. pyarrow reads all other data, including damaged data,
and short strings, which are stored in Arrow's views. Source: parquet.thrift and Encodings.md of the Parquet format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.optional import LazyModule
from dalify.formats.files.memory import file_memory
from dalify.formats.records.protobuf import varint
from dalify.formats.tables.parquet_footer import INT32, STRUCT, field_at, integer_at, skip_value

pyarrow = LazyModule("pyarrow", "reading Arrow and Parquet", "dalify[arrow]")

_BYTE_ARRAY = 6
_UNCOMPRESSED, _SNAPPY = 0, 1
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# Fields of PageHeader, DataPageHeader and DictionaryPageHeader.
_KIND, _UNCOMPRESSED_BYTES, _STORED_BYTES, _CHECKSUM, _DATA_HEADER, _DICTIONARY_HEADER = 1, 2, 3, 4, 5, 7
_COUNT, _ENCODING, _LEVEL_ENCODING = 1, 2, 3
_HEADER_NUMBERS = 7  # kind, uncompressed and stored bytes, count, encodings of values and levels, end of the header
_MAX_PAGE_BYTES = 1 << 31
_VIEW_BYTES, _INLINE_BYTES = 16, 12  # of Arrow's views; shorter strings are in the views
_DAMAGED = -1


class Chunk(NamedTuple):
    """The pages of a column of a row group.

    Attributes:
        offset: first byte in the file.
        stored_bytes: size in the file.
        size_bytes: size of all pages without compression.
        value_count: number of values.
        codec: compression.
        max_level: definition level of values that are not null.
    """

    offset: int
    stored_bytes: int
    size_bytes: int
    value_count: int
    codec: int
    max_level: int


def chunks_of(fields: NDArray[np.int64], max_level: int) -> list[Chunk]:
    """Return the chunks of a column, one for each row group.

    Args:
        fields: numeric fields of its metadata, int64 ``[FIELDS, G]``; see `RowGroups`.
        max_level: definition level of values that are not null.
    """
    first = np.where(fields[11] > 0, np.minimum(fields[11], fields[9]), fields[9])  # a dictionary precedes the data
    is_here = (fields[0] < 0) & (fields[1] == _BYTE_ARRAY) & (fields[[4, 5, 6, 7, 9]] >= 0).all(0)
    codecs = np.where(is_here, fields[4], _DAMAGED)
    rows = zip(first.tolist(), fields[7].tolist(), fields[6].tolist(), fields[5].tolist(), codecs.tolist(), strict=True)
    return [Chunk(*row, max_level) for row in rows]


def byte_strings(chunk: Chunk, read: Callable[[int, int], NDArray[np.uint8]]) -> Any:
    """Return the values of a chunk as a pyarrow array of bytes without nulls; None if pyarrow must read it.

    Args:
        chunk: the pages.
        read: function of offset and size, which returns bytes of the file.
    """
    if chunk.codec not in (_UNCOMPRESSED, _SNAPPY) or not 0 < chunk.size_bytes < _MAX_PAGE_BYTES:
        return None
    data = read(chunk.offset, chunk.stored_bytes)
    pages = _pages_of(data, chunk)
    if pages is None:
        return None
    starts, sizes = np.empty(chunk.value_count, np.int64), np.empty(chunk.value_count, np.int64)
    dictionary: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    parts: list[NDArray[np.uint8]] = []
    begin = filled = 0
    for number, (page, header) in enumerate(pages):
        count, encoding = int(header[3]), int(header[4])
        # Numbers of values are not trusted, and checked before memory is allocated.
        if header[0] == _DICTIONARY_PAGE:
            if count > len(page) // 4:
                return None
            known = np.empty(count, np.int64), np.empty(count, np.int64)
            if number or encoding not in (_PLAIN, _PLAIN_DICTIONARY) or not _plain(page, 0, begin, *known):
                return None
            dictionary = known
        else:
            own = starts[filled : filled + count], sizes[filled : filled + count]
            place = _after_levels(page, count, chunk.max_level, int(header[5])) if len(own[0]) == count else _DAMAGED
            if place < 0:
                return None
            if encoding == _PLAIN:
                is_read = _plain(page, place, begin, *own)
            elif encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY) and dictionary is not None:
                is_read = _chosen(page, place, *dictionary, *own)
                page = page[:0]  # it contains no values
            else:
                return None
            if not is_read:
                return None
            filled += count
        parts.append(page)
        begin += len(page)
    if filled < chunk.value_count or not filled or sizes.min() <= _INLINE_BYTES:
        return None
    whole = parts[0] if len(parts) == 1 or not any(map(len, parts[1:])) else _joined(parts, begin)
    views = np.empty((chunk.value_count, _VIEW_BYTES), np.uint8)
    _fill_views(whole, starts, sizes, views, views.view(np.int32))
    buffers = [None, pyarrow.py_buffer(views), pyarrow.py_buffer(whole)]
    return pyarrow.Array.from_buffers(pyarrow.binary_view(), chunk.value_count, buffers, null_count=0)


def _joined(parts: list[NDArray[np.uint8]], size_bytes: int) -> NDArray[np.uint8]:
    whole = file_memory(size_bytes)
    np.concatenate(parts, out=whole)
    return whole


def _pages_of(data: NDArray[np.uint8], chunk: Chunk) -> list[tuple[NDArray[np.uint8], list[int]]] | None:
    """Return the contents and the headers of all pages, decompressed; None for unusual pages."""
    pages: list[tuple[NDArray[np.uint8], list[int]]] = []
    place, left = 0, chunk.size_bytes
    codec = pyarrow.Codec("snappy") if chunk.codec == _SNAPPY else None
    header = np.empty(_HEADER_NUMBERS, np.int64)
    while place < len(data):
        if not _read_header(data, place, header):
            return None
        found = header.tolist()
        size, stored, end = found[1], found[2], found[6]
        left -= size + end - place
        place = end + stored
        if left < 0 or place > len(data):
            return None
        page = data[end:place]
        if codec is None:
            if size != stored:
                return None
        else:
            if not _has_size(page, size):  # the codec does not check it
                return None
            page = np.frombuffer(codec.decompress(pyarrow.py_buffer(page), size), np.uint8)
        pages.append((page, found))
    return pages


@njit(nogil=True, cache=True)
def _has_size(page: Any, size: int) -> bool:
    """Return whether data compressed by Snappy declares a size."""
    found, place = varint(page, 0, page.size)
    return place >= 0 and found == np.uint64(size)


@njit(nogil=True, cache=True)
def _read_header(data: Any, place: Any, header: Any) -> bool:
    """Read the header of a page; return False if it is unusual or damaged."""
    header[:] = _DAMAGED
    depth = number = outer = 0
    while True:
        number, kind, place = field_at(data, place, number)
        if place < 0:
            return False
        if kind == 0:
            if depth == 0:
                break
            depth, number = 0, outer
        elif depth == 0 and number in (_DATA_HEADER, _DICTIONARY_HEADER) and kind == STRUCT:
            depth, outer, number = 1, number, 0
        elif depth == 0 and number == _CHECKSUM:
            return False  # pyarrow checks it
        elif 0 < number <= _STORED_BYTES and kind == INT32:
            value, place = integer_at(data, place)
            if place < 0 or value < 0 or value >= _MAX_PAGE_BYTES:
                return False
            header[number - 1 + 3 * depth] = value
        else:
            place = skip_value(data, place, kind)
            if place < 0:
                return False
    header[6] = place
    is_data, is_dictionary = header[0] == _DATA_PAGE, header[0] == _DICTIONARY_PAGE
    is_known = (is_data and outer == _DATA_HEADER) or (is_dictionary and outer == _DICTIONARY_HEADER)
    return is_known and header[1] >= 0 and header[2] >= 0 and header[3] >= 0 and header[4] >= 0


def _after_levels(page: NDArray[np.uint8], count: int, max_level: int, encoding: int) -> int:
    """Return the offset after the definition levels of a page; -1 if a value is null."""
    if not max_level:
        return 0
    if encoding != _RLE or len(page) < 4:
        return _DAMAGED
    stop = 4 + int(page[:4].view("<u4")[0])
    levels = np.empty(count, np.int64)
    if stop > len(page) or not _hybrid(page, 4, stop, max_level.bit_length(), levels):
        return _DAMAGED
    return stop if (levels == max_level).all() else _DAMAGED


def _chosen(
    page: NDArray[np.uint8],
    place: int,
    known_starts: NDArray[np.int64],
    known_sizes: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> bool:
    """Fill the places of values that are indices of a dictionary; return False if they are damaged."""
    numbers = np.empty(len(starts), np.int64)
    if place >= len(page) or page[place] > 32 or not _hybrid(page, place + 1, len(page), int(page[place]), numbers):
        return False
    if len(numbers) and (numbers.max() >= len(known_starts)):
        return False
    starts[:], sizes[:] = known_starts[numbers], known_sizes[numbers]
    return True


@njit(nogil=True, cache=True)
def _hybrid(data: Any, place: Any, stop: int, width: int, out: Any) -> bool:
    """Decode numbers of a given bit width, in runs of equal or packed numbers; return False if the data are damaged."""
    filled = 0
    while filled < out.size:
        head, place = varint(data, place, stop)
        if place < 0 or head > np.uint64(1 << 32):
            return False
        count = np.int64(head) >> 1
        if count == 0:
            return False
        if head & np.uint64(1):
            size = count * width
            if place + size > stop:
                return False
            for item in range(min(count * 8, out.size - filled)):
                value = 0
                for bit in range(item * width, item * width + width):
                    value |= ((data[place + (bit >> 3)] >> (bit & 7)) & 1) << (bit - item * width)
                out[filled + item] = value
            filled += count * 8
        else:
            size = (width + 7) // 8
            if place + size > stop:
                return False
            value = 0
            for byte in range(size):
                value |= np.int64(data[place + byte]) << (8 * byte)
            for item in range(min(count, out.size - filled)):
                out[filled + item] = value
            filled += count
        place += size
    return True


@njit(nogil=True, cache=True)
def _plain(data: Any, place: Any, begin: int, starts: Any, sizes: Any) -> bool:
    """Find byte strings that are stored after their sizes; return False if they do not end at the end of the page."""
    for item in range(starts.size):
        if place + 4 > data.size:
            return False
        size = np.int64(0)
        for byte in range(4):
            size |= np.int64(data[place + byte]) << (8 * byte)
        place += 4
        if size > data.size - place:
            return False
        starts[item], sizes[item] = begin + place, size
        place += size
    return place == data.size


@njit(nogil=True, cache=True)
def _fill_views(data: Any, starts: Any, sizes: Any, views: Any, numbers: Any) -> None:
    """Write the views of Arrow's layout: size, first four bytes, buffer and offset in it."""
    for item in range(starts.size):
        size = sizes[item]
        numbers[item] = 0
        numbers[item, 0] = size
        for byte in range(4):
            views[item, 4 + byte] = data[starts[item] + byte]
        numbers[item, 3] = starts[item]
