"""Finds the values of many rows of Arrow columns in several blocks, in one compiled call for each column of a chunk.

Each column describes its memory by a row of integers; the caller keeps the columns, and so the memory, alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.array_at import array_at, byte_at, copy_bytes
from dalify.base.bisection import last_at_most
from dalify.base.compiling import njit

# Results of `find_strings`.
IN_MEMORY, IN_FILES = 1, 2
_NARROW, _WIDE = np.empty(0, np.int32), np.empty(0, np.int64)


# These functions keep the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def find_blocks(ends: Any, rows: Any, blocks: Any, members: Any, offsets: Any) -> int:
    """Find the block of each row; return the number of different blocks.

    Args:
        ends: row after the last one of each block, int64 ``[B]``, ascending.
        rows: rows, ``[N]``, less than the last end.
        blocks: output, the different blocks, int64 ``[N]``.
        members: output, index in `blocks` of the block of each row, int64 ``[N]``.
        offsets: output, index of each row in its block, int64 ``[N]``.
    """
    count = 0
    for n in range(rows.size):
        before = last_at_most(ends, rows[n])
        offsets[n] = rows[n] - (ends[before] if before >= 0 else 0)
        member = count - 1  # often the member of the previous row
        while member >= 0 and blocks[member] != before + 1:
            member -= 1
        if member < 0:
            member = count
            blocks[count] = before + 1
            count += 1
        members[n] = member
    return count


@njit(cache=True)
def find_strings(table: Any, members: Any, rows: Any, places: Any) -> int:
    """Find byte strings.

    Args:
        table: int64 ``[B, 8]``, for each column: address, item size and number of the offsets; address of the mask of
            values that are not null, or 0; identity of the files, or 0 for memory; index of the file; address or offset
            of the bytes; number of bytes.
        members: the column of each row, int64 ``[N]``.
        rows: row in the column, int64 ``[N]``.
        places: output, file, start and size of each string, int64 ``[3, N]``.

    Returns:
        `IN_MEMORY` or `IN_FILES`; 0 if a string is null or damaged, or not all are in the same files.
    """
    for n in range(rows.size):
        offsets, item_bytes, count, valid, files, file, begin, size_bytes = table[members[n]]
        row = rows[n]
        if files != table[0, 4] or not 0 <= row < count - 1 or (valid and not byte_at(valid + row)):
            return 0
        if item_bytes == 4:
            pair = array_at(offsets + 4 * row, (2,), _NARROW)
            start, stop = np.int64(pair[0]), np.int64(pair[1])
        else:
            bounds = array_at(offsets + 8 * row, (2,), _WIDE)
            start, stop = bounds[0], bounds[1]
        if not 0 <= start <= stop <= size_bytes:  # not trusted
            return 0
        places[0, n], places[1, n], places[2, n] = file, begin + start, stop - start
    return IN_FILES if table[0, 4] else IN_MEMORY


@njit(cache=True)
def gather_numbers(table: Any, members: Any, rows: Any, found: Any) -> bool:
    """Copy numbers; return False if a row does not exist.

    Args:
        table: address and count of the numbers of each column, int64 ``[B, 2]``.
        members: the column of each row, int64 ``[N]``.
        rows: row in the column, int64 ``[N]``.
        found: output, uint8 ``[N, item size]``.
    """
    for n in range(rows.size):
        address, count = table[members[n]]
        if not 0 <= rows[n] < count:
            return False
        copy_bytes(found.ctypes.data + n * found.shape[1], address + rows[n] * found.shape[1], found.shape[1])
    return True
