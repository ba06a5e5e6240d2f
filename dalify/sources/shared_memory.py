"""Memory that worker processes fill and this process reads without a copy.

A slot is a file without a name: the kernel frees it when the last
process that has it ends, however it ends, so nothing can leak and nothing needs a tracker; nor does it count against
the size of ``/dev/shm``, which containers keep small. A slot is cut into regions so far apart that no writer meets
another and none must ask for room: only pages that are written cost memory.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections import deque
from multiprocessing import reduction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import WorkerError
from dalify.base.interrupts import CallAtEnd

__all__ = ["Lease", "Slot", "aligned", "array_in"]

# Address space is the only cost; 4 GiB for what one worker returns at once is beyond any batch.
REGION_BYTES = 1 << 32
_ALIGNMENT_BYTES = 64  # a cache line, and the widest vector registers


def aligned(size_bytes: int) -> int:
    """Return the size rounded up to whole cache lines."""
    return -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _nameless_file(size_bytes: int) -> int:
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("dalify", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, size_bytes)
    return file


class Slot:
    """Shared memory for one batch: a header, a region for uniform data, and one region per chunk of the batch.

    Can be given to a process when that is started, whatever the start method.

    Args:
        chunks: number of chunks that are written by themselves.
        file: descriptor of an existing slot; None makes a new one.
    """

    def __init__(self, chunks: int, file: int | None = None) -> None:
        self.chunks = chunks
        self._size_bytes = (chunks + 2) * REGION_BYTES
        self._file = _nameless_file(self._size_bytes) if file is None else file
        self._memory: NDArray[np.uint8] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a process that is being started."""
        return _received, (self.chunks, reduction.DupFd(self._file))

    @property
    def memory(self) -> NDArray[np.uint8]:
        """All bytes of the slot; mapped on first use."""
        if self._memory is None:
            try:
                mapped = mmap.mmap(self._file, self._size_bytes)
            except OSError as error:
                raise WorkerError(
                    f"the worker processes need {self._size_bytes >> 30} GiB of address space for a batch: {error}.",
                    hint="Lift the limit on address space (ulimit -v), or use no worker processes.",
                ) from None
            self._memory = np.frombuffer(mapped, np.uint8)
        return self._memory

    def write_header(self, content: bytes) -> None:
        """Leave a short message for those who will write."""
        self.memory[: len(content) + 8] = np.frombuffer(len(content).to_bytes(8, "little") + content, np.uint8)

    def read_header(self) -> bytes:
        """Return the message."""
        length = int.from_bytes(self.memory[:8].tobytes(), "little")
        return self.memory[8 : 8 + length].tobytes()

    @staticmethod
    def uniform_start() -> int:
        """Where the region for uniform data of all chunks begins."""
        return REGION_BYTES

    @staticmethod
    def chunk_start(chunk: int) -> int:
        """Where the region of one chunk begins."""
        return (chunk + 2) * REGION_BYTES

    def array(self, start: int, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a view of the slot.

        Args:
            start: first byte.
            dtype: numpy's code of the element type, as in ``dtype.str``.
            shape: extents.

        Raises:
            WorkerError: the view would leave the region that its start is in.
        """
        return array_in(self.memory, start, dtype, shape)

    @property
    def used_bytes(self) -> int:
        """How much memory the slot really takes."""
        return os.fstat(self._file).st_blocks * 512

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back as soon as nobody views it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._memory = None


def array_in(memory: NDArray[np.uint8], start: int, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a view of a slot's memory, see ``Slot.array``."""
    element = np.dtype(dtype)
    size_bytes = math.prod(shape) * element.itemsize
    if start % REGION_BYTES + size_bytes > REGION_BYTES:
        raise WorkerError(
            f"one result of a worker process may take {REGION_BYTES >> 30} GiB at most.", hint="Use smaller batches."
        )
    return memory[start : start + size_bytes].view(element).reshape(shape)


def _received(chunks: int, file: Any) -> Slot:
    return Slot(chunks, file.detach())


class Lease(CallAtEnd):
    """Keeps a slot from being written again while an array views it; its end gives the slot back."""

    __array_interface__: dict[str, Any]
    _memory: NDArray[np.uint8]

    def __new__(cls, free: deque[int], number: int, slot: Slot) -> Lease:
        """Lend a slot.

        Args:
            free: receives the number of the slot in the end, in whatever thread the consumer lets go.
            number: of the slot.
            slot: its memory.
        """
        self = super().__new__(cls, free.append, number)
        self._memory = slot.memory
        self.__array_interface__ = self._memory.__array_interface__
        return self

    def memory(self) -> NDArray[np.uint8]:
        """Return all bytes of the slot; arrays made of them keep this lease."""
        return np.asarray(self)
