"""Decodes the wire format of protocol buffers, without schemas: fields, integers and floats, with bounds checks.

Source: the encoding pages of protobuf.dev.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import ReaderError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


@njit(nogil=True, cache=True, inline="always")
def varint(data: Any, place: int, stop: int) -> Any:
    """Return the integer at an offset as uint64, and the offset after it, -1 if there is none."""
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(_MAX_VARINT_BYTES):
        if place >= stop:
            return value, -1
        byte = np.uint64(data[place])
        place += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            return value, place
        shift += np.uint64(7)
    return value, -1


@njit(nogil=True, cache=True)
def next_field(data: Any, place: int, stop: int) -> Any:
    """Return number, wire type, start and end of the field at an offset; end is -1 if the message is damaged."""
    tag, place = varint(data, place, stop)
    if place < 0:
        return 0, 0, 0, -1
    wire = int(tag & np.uint64(7))
    number = int(tag >> np.uint64(3))
    begin = place
    if wire == VARINT:
        _, place = varint(data, place, stop)
        return number, wire, begin, place
    if wire == FIXED64:
        place += 8
    elif wire == FIXED32:
        place += 4
    elif wire == BYTES:
        size, place = varint(data, place, stop)
        if place < 0 or size > np.uint64(stop - place):
            return 0, 0, 0, -1
        begin = place
        place += int(size)
    else:
        return 0, 0, 0, -1
    return (number, wire, begin, place) if place <= stop else (0, 0, 0, -1)


@njit(nogil=True, cache=True)
def _count_integers(data: Any, start: int, stop: int, field: int) -> int:
    """Return the number of integers in a field, packed or not; -1 if the message is damaged."""
    count = 0
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            return -1
        if number == field and wire == VARINT:
            count += 1
        elif number == field and wire == BYTES:
            for inner in range(begin, place):
                count += data[inner] < 128
    return count


@njit(nogil=True, cache=True)
def _fill_integers(data: Any, start: int, stop: int, field: int, out: Any) -> bool:
    """Decode integers into ``out``; return False if the message is damaged."""
    filled = 0
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            return False
        if number != field or (wire != VARINT and wire != BYTES):
            continue
        while begin < place:
            value, begin = varint(data, begin, place)
            if begin < 0 or filled >= out.size:
                return False
            out[filled] = np.int64(value)
            filled += 1
    return filled == out.size


def integers(data: NDArray[np.uint8], start: int, stop: int, field: int) -> NDArray[np.int64]:
    """Return the integers of a repeated field, packed or not, int64 ``[n]``.

    Args:
        data: uint8, contiguous.
        start: offset of the message.
        stop: end of the message, inside ``data``.
        field: number of the field.

    Raises:
        ReaderError: the message is damaged.
    """
    count = _count_integers(data, start, stop, field)
    out = np.empty(max(count, 0), np.int64)
    if count < 0 or not _fill_integers(data, start, stop, field, out):
        raise ReaderError("the message is damaged: a list of integers is truncated.")
    return out


def floats(data: NDArray[np.uint8], start: int, stop: int, field: int) -> NDArray[np.float32]:
    """Return the floats of a repeated field, packed or not, float32 ``[n]``; see ``integers``.

    Raises:
        ReaderError: the message is damaged.
    """
    parts: list[NDArray[np.uint8]] = []
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0 or (number == field and wire == BYTES and (place - begin) % 4):
            raise ReaderError("the message is damaged: a list of floats is truncated.")
        if number == field and wire in (BYTES, FIXED32):
            parts.append(data[begin:place])
    # A copy, because unaligned data is slow.
    return np.concatenate(parts).view("<f4") if parts else np.empty(0, np.float32)


@njit(nogil=True, cache=True)
def fill_integers(data: Any, places: Any, out: Any) -> bool:
    """Decode a list of integers, field 1, from each of several messages.

    Args:
        data: uint8, contiguous.
        places: int64 ``[N, 3]``: an unused value, start and end of each message.
        out: int64 ``[N, count]``.

    Returns:
        False if a message is damaged or has another number of integers.
    """
    for sample in range(len(places)):
        if not _fill_integers(data, places[sample, 1], places[sample, 2], 1, out[sample]):
            return False
    return True


@njit(nogil=True, cache=True)
def fill_floats(data: Any, places: Any, out: Any) -> bool:
    """Decode a list of floats, field 1, from each of several messages; see ``fill_integers``.

    Args:
        data: uint8, contiguous.
        places: int64 ``[N, 3]``: an unused value, start and end of each message.
        out: float32 ``[N, count]``, contiguous.
    """
    for sample in range(len(places)):
        values = out[sample].view(np.uint8)
        filled = 0
        place = places[sample, 1]
        while place < places[sample, 2]:
            number, wire, begin, place = next_field(data, place, places[sample, 2])
            if place < 0:
                return False
            if number != 1 or (wire != BYTES and wire != FIXED32):
                continue
            if (place - begin) % 4 or filled + place - begin > values.size:
                return False
            for index in range(begin, place):
                values[filled] = data[index]
                filled += 1
        if filled != values.size:
            return False
    return True


class Field(NamedTuple):
    """One field of a message.

    Attributes:
        number: number of the field.
        wire: wire type.
        start: offset of the value.
        stop: end of the value.
        value: the integer of a ``VARINT``, signed; 0 otherwise.
    """

    number: int
    wire: int
    start: int
    stop: int
    value: int


def fields(data: NDArray[np.uint8], start: int = 0, stop: int | None = None) -> Iterator[Field]:
    """Yield the fields of a message.

    Args:
        data: uint8, contiguous.
        start: offset of the message.
        stop: its end; None for the end of the data.

    Raises:
        ReaderError: the message is damaged.
    """
    stop = len(data) if stop is None else stop
    place = start
    while place < stop:
        number, wire, begin, place = next_field(data, place, stop)
        if place < 0:
            raise ReaderError("the message is damaged: a field is truncated or has an unknown type.")
        value = _signed(data, begin, place) if wire == VARINT else 0
        yield Field(number, wire, begin, place, value)


@njit(nogil=True, cache=True)
def _signed(data: Any, place: int, stop: int) -> Any:
    value, _ = varint(data, place, stop)
    return np.int64(value)
