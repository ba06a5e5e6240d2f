"""Memory of Arrow arrays, loaded from a file on demand.

If a memory-mapped file is truncated, the process ends (SIGBUS). So the layout of a record batch is created in reserved
memory. Data that is always needed, such as offsets, is read into it. Values are read from the file on access.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.data import Batch
from dalify.formats.files.memory import file_memory
from dalify.formats.files.open_files import OpenFiles
from dalify.formats.files.pieces import Pieces

# Smaller blocks are created by the allocator. Flags that the system does not have are 0.
_LARGE_BYTES = 1 << 25
_RESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def reserved(size_bytes: int) -> NDArray[np.uint8]:
    """Return zeros, uint8 ``[size_bytes]``, that use physical memory only where written.

    Raises:
        MemoryError, OSError: not enough address space.
    """
    if size_bytes < _LARGE_BYTES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(size_bytes, np.uint8)
    # More than the physical memory may be reserved, because only a few rows of the batch may be needed.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _RESERVED
    return np.frombuffer(mmap.mmap(-1, size_bytes, flags=flags), np.uint8)


class Values:
    """Contiguous values in memory.

    Args:
        array: the values, one-dimensional and contiguous.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._address = array.ctypes.data

    @property
    def place(self) -> tuple[int, int, int]:
        """Identity of the files, index of the file, and offset in it; 0, 0 and the address for values in memory."""
        return 0, 0, self._address

    def __len__(self) -> int:
        return len(self._array)

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return a range of values, possibly as a view; the range must be within the array."""
        return self._array[start:stop]

    def copy(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of a range of values."""
        copied = file_memory((stop - start) * self._array.itemsize).view(self._array.dtype)
        copied[...] = self._array[start:stop]
        return copied


class ValuesInFile(Values):
    """Contiguous values in a file."""

    def __init__(self, files: OpenFiles, number: int, offset: int, count: int, dtype: np.dtype[Any]) -> None:
        self._files = files
        self._number = number
        self._offset = offset
        self._count = count
        self._dtype = dtype

    @property
    def files(self) -> OpenFiles:
        """The open files."""
        return self._files

    @property
    def place(self) -> tuple[int, int, int]:
        """See ``Values.place``."""
        return id(self._files), self._number, self._offset

    def __len__(self) -> int:
        return self._count

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return a range of values; the range must be within the column.

        Raises:
            ReaderError: the file cannot be read, or was truncated.
            LimitError: more than ``max_sample_bytes``.
        """
        item_bytes = self._dtype.itemsize
        read = self._files.read(self._number, self._offset + start * item_bytes, (stop - start) * item_bytes)
        return read.view(self._dtype)

    def copy(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of a range of values; see ``part``."""
        return self.part(start, stop)


class Places(NamedTuple):
    """Ranges of bytes.

    Attributes:
        values: the bytes.
        starts: first byte of each range, int64 ``[N]``.
        stops: one past the last byte of each.
    """

    values: Values
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


def samples_at(places: Sequence[Places], members: NDArray[np.int64]) -> Batch | None:
    """Return copies of ranges of bytes, from one call; None if each must be copied separately.

    Args:
        places: the ranges in one or several parts.
        members: the part of each sample, ``[N]``; the ranges of a part are in the order of the samples.
    """
    owners = np.array([place.values.place for place in places], np.int64)
    if (owners[:, 0] != owners[0, 0]).any():
        return None
    values, starts, stops = places[0]
    if len(places) > 1:
        starts, stops = np.empty(len(members), np.int64), np.empty(len(members), np.int64)
        for part, place in enumerate(places):
            chosen = members == part
            starts[chosen], stops[chosen] = place.starts, place.stops
    begins, sizes = owners[:, 2][members] + starts, stops - starts
    if isinstance(values, ValuesInFile):
        return samples_in_files(values.files, owners[:, 1][members], begins, sizes)
    return samples_in_memory(begins, sizes)


def samples_in_memory(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> Batch | None:
    """Return copies of ranges of memory that the caller keeps alive; None if they are large."""
    pieces = Pieces.of(addresses, addresses, sizes)
    if pieces is None:
        return None
    found = pieces.large_samples()
    pieces.copy(addresses, sizes)
    return pieces.samples() if found is None else found


def samples_in_files(
    files: OpenFiles, numbers: NDArray[np.int64], offsets: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Batch | None:
    """Return ranges of files; None if each must be read separately."""
    pieces = Pieces.of(numbers, offsets, sizes, has_bytes=True)
    if pieces is None:
        return None
    found = pieces.large_samples()
    if not files.fill(pieces, numbers, offsets, sizes):
        return None
    return pieces.samples() if found is None else found


class FileMemory:
    """Reserved memory for a part of a file.

    Args:
        files: open files.
        number: index of the file.
        memory: uint8 ``[n]``, all zeros.
        offset: offset of the first byte in the file.
        mapped: memory map of the whole file, uint8, if values are views of the map; otherwise None.

    Attributes:
        held_bytes: number of bytes read from the file into the memory.
    """

    def __init__(
        self,
        files: OpenFiles,
        number: int,
        memory: NDArray[np.uint8],
        offset: int,
        mapped: NDArray[np.uint8] | None = None,
    ) -> None:
        self.held_bytes = 0
        self._files = files
        self._number = number
        self._memory = memory
        self._address = memory.ctypes.data
        self._offset = offset
        self._mapped = mapped

    def load(self, buffer: Any) -> None:
        """Read the contents of a pyarrow buffer from the file, if the buffer is in this memory.

        Raises:
            ReaderError: the file cannot be read, or was truncated.
        """
        if buffer is None or not buffer.size or not self._holds(buffer):
            return
        start = buffer.address - self._address
        self._files.read(self._number, self._offset + start, buffer.size, self._memory[start : start + buffer.size])
        self.held_bytes += buffer.size

    def values(self, buffer: Any, dtype: np.dtype[Any]) -> Values | None:
        """Return the values of a pyarrow buffer; None if the buffer is not in this memory."""
        if not buffer.size or not self._holds(buffer):
            return None
        offset = self._offset + buffer.address - self._address
        if self._mapped is not None:
            return Values(np.frombuffer(self._mapped, dtype, buffer.size // dtype.itemsize, offset))
        return ValuesInFile(self._files, self._number, offset, buffer.size // dtype.itemsize, dtype)

    def _holds(self, buffer: Any) -> bool:
        return self._address <= buffer.address < self._address + len(self._memory)
