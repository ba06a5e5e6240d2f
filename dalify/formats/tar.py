"""Where the regular files of a tar archive lie: one compiled pass over the headers.

Alone because archives of millions of small files have to be indexed in seconds, which Python's tarfile does in minutes.
Understands ustar, GNU (long names, large sizes) and pax (paths and sizes). Source: POSIX.1-2001, pax Interchange
Format, and the GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.base.errors import ReaderError
from dalify.formats.storage import local_copy

__all__ = ["Member", "member_rows", "members"]

_BLOCK = 512
_ROWS = 4096
_GOES_ON, _AT_END, _DAMAGED, _CUT_OFF = 0, 1, -1, -2
# Columns of a row.
_NAME, _NAME_END, _PREFIX, _PREFIX_END, _OFFSET, _SIZE = range(6)


class Member(NamedTuple):
    """One regular file: its name, and where its contents lie in the archive."""

    name: bytes
    offset: int
    size: int


def members(path: str) -> Iterator[Member]:
    """Yield the regular files of an archive in their order.

    Raises:
        ReaderError: the archive is absent, empty, damaged or cut off.
    """
    for data, rows in member_rows(path):
        for name, name_end, prefix, prefix_end, offset, size in rows.tolist():
            text = data[name:name_end].tobytes()
            if prefix_end > prefix:
                text = data[prefix:prefix_end].tobytes() + b"/" + text
            yield Member(text, offset, size)


def member_rows(path: str) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Yield the archive and some thousand of its regular files at a time: where their names and contents lie.

    A row is begin and end of the name, begin and end of what stands in front of it with a slash (nothing where they are
    equal), and offset and size of the contents: int64 ``[N, 6]``, good until the next. Nobody may keep the archive.

    Raises:
        ReaderError: the archive is absent, empty, damaged or cut off.
    """
    try:
        with Path(local_copy(path)).open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ReaderError(f"cannot read the archive {path!r}: {error.strerror}.") from None
    except ValueError:
        raise ReaderError(f"the archive {path!r} is empty.") from None
    data = np.frombuffer(mapped, np.uint8)  # the map is closed with the last reference
    rows = np.empty((_ROWS, 6), np.int64)
    state = np.zeros(4, np.int64)
    status = _GOES_ON
    while status == _GOES_ON:
        count, status = _scan(data, state, rows)
        yield data, rows[:count]
    if status == _DAMAGED:
        raise ReaderError(f"{path!r} is no tar archive, or it is damaged at byte {state[0]}.")
    if status == _CUT_OFF:
        raise ReaderError(f"the archive {path!r} was cut off: the member at byte {state[0]} has no end.")


@njit(nogil=True, cache=True)
def _octal(data: Any, start: int, size: int) -> Any:
    """Return a number of a header: octal digits between blanks, or GNU's binary form; -1 where it is neither."""
    if data[start] & 128:
        value = np.int64(data[start] & 63)
        for place in range(start + 1, start + size):
            if value >= 1 << 54:
                return -1
            value = value << 8 | np.int64(data[place])
        return value
    value = np.int64(0)
    seen = False
    for place in range(start, start + size):
        byte = data[place]
        if 48 <= byte < 56:
            value = value << 3 | np.int64(byte - 48)
            seen = True
        elif byte == 32 or byte == 0:
            if seen:
                break
        else:
            return -1
    return value


@njit(nogil=True, cache=True)
def _is_header(data: Any, place: int) -> bool:
    """Compare the check sum: the sum of all bytes, its own taken as blanks."""
    total = 8 * 32
    for index in range(place, place + 148):
        total += data[index]
    for index in range(place + 156, place + 512):
        total += data[index]
    return _octal(data, place + 148, 8) == total


@njit(nogil=True, cache=True)
def _end_of_text(data: Any, start: int, stop: int) -> int:
    while start < stop and data[start] != 0:
        start += 1
    return start


@njit(nogil=True, cache=True)
def _pax(data: Any, place: int, stop: int, state: Any) -> bool:
    """Note path and size of a pax header: records "length key=value"; False where it is damaged."""
    while place < stop and data[place] != 0:
        start = place
        length: Any = np.int64(0)
        while place < stop and 48 <= data[place] < 58:
            length = length * 10 + np.int64(data[place] - 48)
            if length > stop - start:
                return False
            place += 1
        end = start + length
        if length == 0 or place >= end or data[place] != 32:
            return False
        key = place + 1
        if end - key >= 5 and data[key + 4] == 61:
            value = key + 5
            # path=
            if data[key] == 112 and data[key + 1] == 97 and data[key + 2] == 116 and data[key + 3] == 104:
                state[1], state[2] = value, max(end - 1, value)
            # size=
            if data[key] == 115 and data[key + 1] == 105 and data[key + 2] == 122 and data[key + 3] == 101:
                size = np.int64(0)
                for index in range(value, end - 1):
                    if not 48 <= data[index] < 58 or size >= 1 << 58:
                        return False
                    size = size * 10 + np.int64(data[index] - 48)
                state[3] = size + 1
        place = end
    return True


@njit(nogil=True, cache=True)
def _scan(data: Any, state: Any, rows: Any) -> Any:
    """Fill rows; return their number and how it goes on.

    ``state`` is the place of the next header, begin and end of a long name and a size plus one (0: none) that belong to
    the member behind it.
    """
    count = 0
    while count < len(rows):
        place = state[0]
        if place + 512 > data.size:
            return count, (_AT_END if place >= data.size else _CUT_OFF)
        if data[place] == 0 and _octal(data, place + 148, 8) == 0:
            return count, _AT_END  # blocks of zeros
        if not _is_header(data, place):
            return count, _DAMAGED
        kind = data[place + 156]
        size = _octal(data, place + 124, 12)
        if 49 <= kind <= 54:
            size = 0  # links, folders, devices: whatever the field says, nothing follows
        elif state[3] and kind != 120 and kind != 103 and kind != 76 and kind != 75:
            size = state[3] - 1
        contents = place + 512
        if size < 0:
            return count, _DAMAGED
        if size > data.size - contents:
            return count, _CUT_OFF
        state[0] = contents + (size + 511) // 512 * 512
        if kind == 76:  # L: a long name
            state[1], state[2] = contents, _end_of_text(data, contents, contents + size)
            continue
        if kind == 120:  # x: pax
            if not _pax(data, contents, contents + size, state):
                state[0] = place
                return count, _DAMAGED
            continue
        if kind == 103 or kind == 75:  # g: for the whole archive; K: a long link
            continue
        if kind == 48 or kind == 0 or kind == 55:
            row = rows[count]
            row[_PREFIX] = row[_PREFIX_END] = 0
            if state[2] > state[1]:
                row[_NAME], row[_NAME_END] = state[1], state[2]
            else:
                row[_NAME], row[_NAME_END] = place, _end_of_text(data, place, place + 100)
                # "ustar" with a zero behind it; GNU has other fields there
                if data[place + 257] == 117 and data[place + 262] == 0:
                    row[_PREFIX] = place + 345
                    row[_PREFIX_END] = _end_of_text(data, place + 345, place + 500)
            row[_OFFSET], row[_SIZE] = contents, size
            count += 1
        state[1] = state[2] = state[3] = 0
    return count, _GOES_ON
