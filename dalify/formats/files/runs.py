"""Reads byte ranges that are arranged in a file like the rows of a window in an array, in one compiled call."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.formats.files.compiled_files import close_file, file_size, open_file, read_part
from dalify.formats.files.memory import file_memory
from dalify.formats.files.paths import Paths

# Reading gaps up to this size is faster than another call; as many rows as fit into the buffer are read together.
_MAX_GAP_BYTES = 1 << 12
_BUFFER_BYTES = 1 << 17


class Runs(NamedTuple):
    """Positions of the rows of a window.

    Attributes:
        first: offset of the first row.
        size_bytes: size of each row.
        counts: number of rows along each of the outer axes, int64 ``[axes]``, each at least 1.
        strides: distance in bytes between rows along each axis, int64 ``[axes]``.
    """

    first: int
    size_bytes: int
    counts: NDArray[np.int64]
    strides: NDArray[np.int64]

    @property
    def total_bytes(self) -> int:
        """Total size of all rows."""
        return self.size_bytes * math.prod(self.counts.tolist())

    @property
    def span_bytes(self) -> int:
        """Distance from the start of the first row to the end of the last."""
        return self.size_bytes + int((self.counts - 1) @ self.strides)

    def of(self, span: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the concatenated rows from the data between the first and the last row."""
        shape, strides = (*self.counts.tolist(), self.size_bytes), (*self.strides.tolist(), 1)
        return np.ndarray(shape, np.uint8, span.data, strides=strides).reshape(-1)


@njit(nogil=True, cache=True)
def _read(descriptor: int, first: int, size: int, counts: Any, strides: Any, scratch: Any, address: int) -> bool:
    """Read the concatenated rows to an address; return False at an error or early end of file."""
    rows, stride = 1, 0
    if counts.size:
        rows, stride = counts[-1], strides[-1]
    are_near = rows > 1 and stride - size <= _MAX_GAP_BYTES and size < scratch.size
    together = (scratch.size - size) // stride + 1 if are_near else 1
    blocks = 1
    for count in counts[:-1]:
        blocks *= count
    for block in range(blocks):
        offset, left = first, block
        for axis in range(counts.size - 2, -1, -1):
            offset += left % counts[axis] * strides[axis]
            left //= counts[axis]
        row = 0
        while row < rows:
            count = min(together, rows - row)
            if count == 1:
                if not read_part(descriptor, offset, size, address):
                    return False
            else:
                if not read_part(descriptor, offset, (count - 1) * stride + size, scratch.ctypes.data):
                    return False
                for each in range(count):
                    source = scratch.ctypes.data + each * stride
                    copy_bytes(address + each * size, source, size)
            address += count * size
            offset += count * stride
            row += count
    return True


def read_runs(descriptor: int, runs: Runs) -> NDArray[np.uint8] | None:
    """Read the rows of a window of an open file. The GIL is released during the read.

    Returns:
        the concatenated rows, uint8 ``[n]``; None if the file is too short or cannot be read.
    """
    out, scratch = file_memory(runs.total_bytes), file_memory(_BUFFER_BYTES)
    return out if _read(descriptor, *runs, scratch, out.ctypes.data) else None


@njit(nogil=True, cache=True)
def _read_all(
    text: Any,
    paths: Any,
    flags: int,
    start: Any,
    size: int,
    first: int,
    run: int,
    counts: Any,
    strides: Any,
    scratch: Any,
    out: Any,
) -> bool:
    """Read the same rows of files with equal start and size; return False at the first file that differs."""
    for file in range(out.shape[0]):
        descriptor = open_file(np.uintp(text.ctypes.data + paths[file]), flags)
        if descriptor < 0:
            return False
        is_alike = file_size(descriptor) == size and read_part(descriptor, 0, start.size, scratch.ctypes.data)
        for place in range(start.size):
            is_alike = is_alike and scratch[place] == start[place]
        is_read = is_alike and _read(descriptor, first, run, counts, strides, scratch, out[file].ctypes.data)
        close_file(descriptor)
        if not is_read:
            return False
    return True


def read_runs_of_files(
    paths: Paths, flags: int, start: NDArray[np.uint8], size_bytes: int, runs: Runs
) -> NDArray[np.uint8] | None:
    """Read the same rows of files with equal start and size. The GIL is released during the read.

    Args:
        paths: paths of N files.
        flags: flags for ``open`` of the C library.
        start: expected start of each file, uint8 ``[n]``, at most 64 KiB.
        size_bytes: expected size of each file.
        runs: rows to read.

    Returns:
        uint8 ``[N, bytes]``; None if a file differs or cannot be read.
    """
    out = file_memory(len(paths) * runs.total_bytes).reshape(len(paths), -1)
    scratch = file_memory(_BUFFER_BYTES)
    return out if _read_all(paths.text, paths.starts, flags, start, size_bytes, *runs, scratch, out) else None
