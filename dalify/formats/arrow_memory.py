"""Memory of Arrow arrays: what is there, and what is still in a file.

Arrow files are meant to be mapped, but a mapped file that becomes shorter ends the process (SIGBUS). So a record batch
is laid out in memory that is only reserved: what has to be at hand, such as offsets, is read into it, and values of any
size are read from the file when they are wanted.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.formats.memory import file_memory
from dalify.formats.open_files import OpenFiles
from dalify.formats.pieces import copy_pieces

__all__ = ["FileMemory", "Values", "ValuesInFile", "reserved"]

# Smaller memory comes from the allocator. Flags that a system lacks are 0.
_LARGE_BYTES = 1 << 25
_RESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def reserved(size_bytes: int) -> NDArray[np.uint8]:
    """Return zeros, uint8 ``[size_bytes]``, that take memory as far as they are written to.

    Raises:
        MemoryError, OSError: there is not so much address space.
    """
    if size_bytes < _LARGE_BYTES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(size_bytes, np.uint8)
    # More than this machine has may be reserved, for a batch of which a few rows are wanted.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _RESERVED
    return np.frombuffer(mmap.mmap(-1, size_bytes, flags=flags), np.uint8)


class Values:
    """Values one after the other, in memory.

    Args:
        array: of them, one-dimensional and contiguous.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._address = array.ctypes.data

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._array)

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return some values, perhaps as a view; the place of each is within the array."""
        return self._array[start:stop]

    def copy(self, start: int, stop: int) -> NDArray[Any]:
        """Return some values in memory of their own."""
        copied = file_memory((stop - start) * self._array.itemsize).view(self._array.dtype)
        copied[...] = self._array[start:stop]
        return copied

    def samples(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> list[NDArray[np.uint8]] | None:
        """Return some runs of values, each in memory of its own; None where they are large. For bytes."""
        pieces = copy_pieces(self._address + starts, stops - starts)
        return None if pieces is None else pieces.samples()


class ValuesInFile(Values):
    """Values one after the other, in a file.

    Args:
        files: open files.
        number: of the file.
        offset: of the first value in the file.
        count: how many there are.
        dtype: of each.
    """

    def __init__(self, files: OpenFiles, number: int, offset: int, count: int, dtype: np.dtype[Any]) -> None:
        self._files = files
        self._number = number
        self._offset = offset
        self._count = count
        self._dtype = dtype

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return some values; the place of each is within those there are.

        Raises:
            ReaderError: the file cannot be read, or has become shorter.
            LimitError: more than ``max_sample_bytes``.
        """
        item_bytes = self._dtype.itemsize
        read = self._files.read(self._number, self._offset + start * item_bytes, (stop - start) * item_bytes)
        return read.view(self._dtype)

    def copy(self, start: int, stop: int) -> NDArray[Any]:
        """Return some values in memory of their own; see ``part``."""
        return self.part(start, stop)

    def samples(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> list[NDArray[np.uint8]] | None:
        """Return some runs of values, each in memory of its own; None where they are to be read one by one."""
        numbers = np.full(len(starts), self._number, np.int64)
        pieces = self._files.read_many(numbers, self._offset + starts, stops - starts)
        return None if pieces is None else pieces.samples()


class FileMemory:
    """Reserved memory for a part of a file.

    Args:
        files: open files.
        number: of the file.
        memory: uint8 ``[n]``, all zeros.
        offset: of the first byte in the file.
        mapped: the whole file, uint8, where its values are to be looked at in a memory map.

    Attributes:
        held_bytes: how much of the file was read into the memory.
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
        """Read what a pyarrow buffer is to hold, where it lies in this memory.

        Raises:
            ReaderError: the file cannot be read, or has become shorter.
        """
        if buffer is None or not buffer.size or not self._holds(buffer):
            return
        start = buffer.address - self._address
        self._files.read(self._number, self._offset + start, buffer.size, self._memory[start : start + buffer.size])
        self.held_bytes += buffer.size

    def values(self, buffer: Any, dtype: np.dtype[Any]) -> Values | None:
        """Return the values that a pyarrow buffer is to hold; None where it does not lie in this memory."""
        if not buffer.size or not self._holds(buffer):
            return None
        offset = self._offset + buffer.address - self._address
        if self._mapped is not None:
            return Values(np.frombuffer(self._mapped, dtype, buffer.size // dtype.itemsize, offset))
        return ValuesInFile(self._files, self._number, offset, buffer.size // dtype.itemsize, dtype)

    def _holds(self, buffer: Any) -> bool:
        return self._address <= buffer.address < self._address + len(self._memory)
