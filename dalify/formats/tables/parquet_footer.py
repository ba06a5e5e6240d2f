"""Parses row groups from the footer of a Parquet file.

pyarrow's parser ends the process if the metadata of a column is inconsistent. Source: parquet.thrift of the Parquet
format, and the compact protocol of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.formats.records.protobuf import varint

# Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, INT32, _INT64, _DOUBLE, _BINARY = 0, 1, 2, 3, 5, 6, 7, 8
_LIST, _SET, _MAP, STRUCT, _UUID = 9, 10, 11, 12, 13
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _ROWS, _FILE_PATH, _METADATA = 4, 1, 3, 1, 3
_VALUES, _UNCOMPRESSED_BYTES, _COMPRESSED_BYTES = 5, 6, 7
# Number of the last numeric field of ColumnMetaData, plus 1.
FIELDS = 12
_MAX_DEPTH = 64
_DAMAGED = -1


class RowGroups(NamedTuple):
    """Row groups of a file; each array is int64 ``[G]``.

    Attributes:
        rows: number of rows.
        values: maximum number of values over the requested columns.
        uncompressed_bytes: total over the requested columns.
        compressed_bytes: total over the requested columns.
        fields: numeric fields of the metadata of each requested column, int64 ``[columns, FIELDS, G]`` by field number;
            -1 if absent. Field 0 is 0 if the column is in another file.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.int64]
    uncompressed_bytes: NDArray[np.int64]
    compressed_bytes: NDArray[np.int64]
    fields: NDArray[np.int64]


def row_groups(footer: NDArray[np.uint8], count: int, wanted: Sequence[int]) -> RowGroups | None:
    """Return the row groups of a footer; None if it is damaged.

    Args:
        footer: the metadata of the file, uint8 ``[n]``.
        count: number of row groups.
        wanted: indices of the requested leaf columns.
    """
    slots = np.full(max(wanted, default=0) + 1, -1)
    slots[list(wanted)] = np.arange(len(wanted))
    found, fields = np.zeros((4, count), np.int64), np.full((len(wanted), FIELDS, count), -1)
    is_valid = _read_footer(footer, slots, found, fields) and bool((found >= 0).all())
    return RowGroups(found[0], found[1], found[2], found[3], fields) if is_valid else None


@njit(nogil=True, cache=True)
def field_at(data: Any, place: int, last: int) -> Any:
    """Return number and type of the field at an offset, and the offset of its value, -1 if there is none."""
    if place >= data.size:
        return 0, _STOP, _DAMAGED
    byte = data[place]
    kind, step = byte & 15, byte >> 4
    place += 1
    if kind == _STOP or step:
        return last + step, kind, place
    number, place = varint(data, place, data.size)
    return np.int64(number >> np.uint64(1)), kind, place  # negative numbers are not used


@njit(nogil=True, cache=True)
def _items(data: Any, place: Any) -> Any:
    """Return number and type of the items of the list at an offset, and their offset, -1 if there is none."""
    if place >= data.size:
        return 0, _STOP, _DAMAGED
    count, kind = int(data[place] >> 4), data[place] & 15
    place += 1
    if count == 15:
        large, place = varint(data, place, data.size)
        if place < 0 or large > np.uint64(data.size):
            return 0, _STOP, _DAMAGED
        count = np.int64(large)
    return count, kind, place


@njit(nogil=True, cache=True)
def _skip_plain(data: Any, place: int, kind: int) -> int:
    """Return the offset after a scalar value; -1 if it is damaged."""
    if kind == _BYTE:
        place += 1
    elif _BYTE < kind <= _INT64:
        _, place = varint(data, place, data.size)
    elif kind == _DOUBLE:
        place += 8
    elif kind == _UUID:
        place += 16
    elif kind == _BINARY:
        size, place = varint(data, place, data.size)
        if place < 0 or size > np.uint64(data.size):
            return _DAMAGED
        place += int(size)
    elif kind != _TRUE and kind != _FALSE:
        return _DAMAGED
    return place if place <= data.size else _DAMAGED


@njit(nogil=True, cache=True)
def skip_value(data: Any, place: int, kind: Any) -> Any:
    """Return the offset after a value; -1 if it is damaged."""
    # Stack of open containers: remaining items (-1 for structs) and the types of their values.
    left, kinds = np.zeros(_MAX_DEPTH, np.int64), np.zeros((_MAX_DEPTH, 2), np.int64)
    depth = 0
    while True:
        if _LIST <= kind <= STRUCT:
            if depth == _MAX_DEPTH:
                return _DAMAGED
            if kind == STRUCT:
                left[depth] = -1
            elif kind == _MAP:
                count, place = varint(data, place, data.size)
                if place < 0 or place >= data.size or count > np.uint64(data.size):
                    return _DAMAGED
                left[depth] = 2 * np.int64(count)
                if count:
                    kinds[depth, 0], kinds[depth, 1] = data[place] & 15, data[place] >> 4
                    place += 1
            else:
                left[depth], kinds[depth, 0], place = _items(data, place)
                kinds[depth, 1] = kinds[depth, 0]
            depth += 1
        else:
            place = _skip_plain(data, place, kind)
        if place < 0:
            return _DAMAGED
        while depth:
            if left[depth - 1] < 0:
                _, kind, place = field_at(data, place, 0)
                if place < 0:
                    return _DAMAGED
                if kind != _STOP:
                    break
            elif left[depth - 1]:
                left[depth - 1] -= 1
                kind = kinds[depth - 1, left[depth - 1] & 1]
                if _TRUE <= kind <= _FALSE:  # in lists, booleans take a byte
                    kind = _BYTE
                break
            depth -= 1
        if not depth:
            return place


@njit(nogil=True, cache=True)
def integer_at(data: Any, place: int) -> Any:
    """Return a signed integer and the offset after it, -1 if there is none."""
    value, place = varint(data, place, data.size)
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), place


@njit(nogil=True, cache=True)
def _read_column(data: Any, place: int, slot: int, found: Any, fields: Any, group: int) -> int:
    """Add the metadata of a column to ``found`` and ``fields``, unless its slot is -1.

    Return the offset after its entry, -1 if it is damaged.
    """
    depth = number = 0
    outer = 0
    while True:
        number, kind, place = field_at(data, place, number)
        if place < 0:
            return _DAMAGED
        if kind == _STOP:
            if depth == 0:
                return place
            depth, number = 0, outer
        elif depth == 0 and number == _METADATA and kind == STRUCT:
            depth, outer, number = 1, number, 0
        elif depth == 1 and _VALUES <= number <= _COMPRESSED_BYTES and kind == _INT64:
            value, place = integer_at(data, place)
            if place < 0 or value < 0 or value >= 1 << 56:
                return _DAMAGED
            if slot >= 0 and number == _VALUES:
                found[1, group] = max(found[1, group], value)
            elif slot >= 0:
                found[number - _VALUES + 1, group] += value
            if slot >= 0:
                fields[slot, number, group] = value
        elif depth == 1 and 0 < number < FIELDS and kind in (INT32, _INT64):
            value, place = integer_at(data, place)
            if place < 0:
                return _DAMAGED
            if slot >= 0:
                fields[slot, number, group] = value
        elif depth == 0 and number == _FILE_PATH and slot >= 0:
            fields[slot, 0, group] = 0
            place = skip_value(data, place, kind)
            if place < 0:
                return _DAMAGED
        else:
            place = skip_value(data, place, kind)
            if place < 0:
                return _DAMAGED


@njit(nogil=True, cache=True)
def _read_group(data: Any, place: int, slots: Any, found: Any, fields: Any, group: int) -> int:
    """Parse a row group; return the offset after it, -1 if it is damaged."""
    number = 0
    while True:
        number, kind, place = field_at(data, place, number)
        if place < 0 or kind == _STOP:
            return place
        if number == _COLUMNS and kind == _LIST:
            count, kind, place = _items(data, place)
            if place < 0 or (count and kind != STRUCT):
                return _DAMAGED
            for column in range(count):
                slot = slots[column] if column < slots.size else -1
                place = _read_column(data, place, slot, found, fields, group)
                if place < 0:
                    return _DAMAGED
        elif number == _ROWS and kind == _INT64:
            found[0, group], place = integer_at(data, place)
        else:
            place = skip_value(data, place, kind)
        if place < 0:
            return _DAMAGED


@njit(nogil=True, cache=True)
def _read_footer(data: Any, slots: Any, found: Any, fields: Any) -> bool:
    """Fill rows, values and sizes of the groups, ``[4, G]``, and the fields of columns.

    Return False if the footer is damaged.
    """
    number = place = 0
    while True:
        number, kind, place = field_at(data, place, number)
        if place < 0:
            return False
        if kind == _STOP:
            return True
        if number == _ROW_GROUPS and kind == _LIST:
            count, kind, place = _items(data, place)
            if place < 0 or count != found.shape[1] or (count and kind != STRUCT):
                return False
            for group in range(count):
                place = _read_group(data, place, slots, found, fields, group)
                if place < 0:
                    return False
        else:
            place = skip_value(data, place, kind)
            if place < 0:
                return False
