"""Shared memory that worker processes fill and this process reads without a copy.

A slot is an unnamed file: the kernel frees it when the last process with a descriptor ends, even if it is killed. So no
tracker is needed, and the file does not count against the size of ``/dev/shm``, which is small in containers. A slot is
divided into regions so large that writers need no allocator; only pages that are written use memory.

A slot is reserved while the program has views of its batch, and used again when no process can read the batch: a
process that is forked meanwhile also has these views, and may read them as long as it runs.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import reduction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import WorkerError
from dalify.base.forked_processes import forked_processes
from dalify.base.interrupts import CallAtEnd, deferred_interrupts
from dalify.data.pool import BufferPool

# Number of batches that a consumer may hold without a copy, in addition to those in progress.
HELD_BATCHES = 4

# A region uses address space only. The result of one worker for one batch must not exceed it.
REGION_BYTES = 1 << 32
_ALIGNMENT_BYTES = 64  # of a cache line and the widest SIMD registers
# The memory of a slot is freed if a batch needs less than a fourth of it, unless it is small.
_MOST_FACTOR = 4
_SMALL_BYTES = 1 << 22


def aligned(size_bytes: int) -> int:
    """Return a size rounded up to a multiple of the cache line."""
    return -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _refusal(need: str, limit: str, error: OSError) -> WorkerError:
    limit = "open files (ulimit -n)" if error.errno in (errno.EMFILE, errno.ENFILE) else limit
    return WorkerError(
        f"the worker processes need {need}: {error}.",
        hint=f"Raise the limit on {limit}, or do not use worker processes.",
    )


def _unnamed_file(size_bytes: int) -> int:
    file = -1
    try:
        if hasattr(os, "memfd_create"):
            file = os.memfd_create("dalify", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as temporary:
                file = os.dup(temporary.fileno())
        os.ftruncate(file, size_bytes)
    except OSError as error:
        if file >= 0:
            os.close(file)
        need = f"an unnamed file of {size_bytes >> 30} GiB, most of it not written"
        raise _refusal(need, "file sizes (ulimit -f)", error) from None
    return file


class Slot:
    """Shared memory for one batch: a header, a region for uniform data, and one region per chunk of the batch.

    A slot can be passed to a new process with any start method.

    Args:
        chunks: number of chunks that are written independently; 0 if the first two regions suffice.
        file: descriptor of an existing slot; None creates a new one.
    """

    def __init__(self, chunks: int = 0, file: int | None = None) -> None:
        self._file = -1  # for `close`, if no file can be created
        self.chunks = chunks
        self._size_bytes = (chunks + 2) * REGION_BYTES
        self._file = _unnamed_file(self._size_bytes) if file is None else file
        self._mapped: mmap.mmap | None = None
        self._memory: NDArray[np.uint8] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the slot for a process that is being started."""
        return _received, (self.chunks, reduction.DupFd(self._file))

    @property
    def memory(self) -> NDArray[np.uint8]:
        """All bytes of the slot; mapped on first use."""
        if self._memory is None:
            try:
                self._mapped = mmap.mmap(self._file, self._size_bytes)
            except OSError as error:
                need = f"{self._size_bytes >> 30} GiB of address space for a batch"
                raise _refusal(need, "address space (ulimit -v)", error) from None
            self._memory = np.frombuffer(self._mapped, np.uint8)
        return self._memory

    def free_after(self, end: int) -> None:
        """Free the memory after a batch, if an earlier batch was much larger. Only Linux can do this.

        Args:
            end: end of the batch in the last region, an offset in bytes.
        """
        needed_bytes = end - (self._size_bytes - REGION_BYTES)
        if self.used_bytes > max(_MOST_FACTOR * needed_bytes, _SMALL_BYTES) and sys.platform == "linux":
            start = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
            assert self._mapped is not None, "dalify bug: a slot without a batch"
            self._mapped.madvise(mmap.MADV_REMOVE, start, self._size_bytes - start)

    def write_header(self, content: bytes) -> None:
        """Store a short message for the workers that write into the slot."""
        self.memory[: len(content) + 8] = np.frombuffer(len(content).to_bytes(8, "little") + content, np.uint8)

    def read_header(self) -> bytes:
        """Return the message in the header."""
        length = int.from_bytes(self.memory[:8].tobytes(), "little")
        return self.memory[8 : 8 + length].tobytes()

    @staticmethod
    def chunk_start(chunk: int) -> int:
        """Return the start of the region of one chunk."""
        return (chunk + 2) * REGION_BYTES

    def array(self, start: int, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a view of the slot.

        Args:
            start: offset in the slot.
            dtype: NumPy's dtype code, as in ``dtype.str``.
            shape: extents.

        Raises:
            WorkerError: the view would exceed its region.
        """
        return array_in(self.memory, start, dtype, shape)

    @property
    def used_bytes(self) -> int:
        """Memory in bytes of the pages that have been written."""
        return os.fstat(self._file).st_blocks * 512

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release the memory when its last view is deleted."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._memory = self._mapped = None


def array_in(memory: NDArray[np.uint8], start: int, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a view of the memory of a slot; see ``Slot.array``."""
    element = np.dtype(dtype)
    size_bytes = math.prod(shape) * element.itemsize
    if start % REGION_BYTES + size_bytes > REGION_BYTES:
        raise WorkerError(
            f"a result of a worker process must not exceed {REGION_BYTES >> 30} GiB.", hint="Use smaller batches."
        )
    return memory[start : start + size_bytes].view(element).reshape(shape)


def _received(chunks: int, file: Any) -> Slot:
    return Slot(chunks, file.detach())


class SlotMemory(BufferPool):
    """Allocates the memory of a slot in order; it is freed with the batch. Thread-safe.

    Args:
        memory: all bytes of a slot.
        start: start of the memory to use, an offset in bytes; by default of the second region.
        end: end of the memory to use, exclusive; by default of the second region.
    """

    def __init__(self, memory: NDArray[np.uint8], start: int = REGION_BYTES, end: int = 2 * REGION_BYTES) -> None:
        super().__init__()
        self._memory = memory
        self._address = memory.__array_interface__["data"][0]
        self._next = start
        self._end = end
        self._lock = threading.Lock()

    @property
    def end_bytes(self) -> int:
        """End of the allocated memory, an offset in bytes."""
        return self._next

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an uninitialized array in the slot.

        Raises:
            WorkerError: the slot is full.
        """
        size_bytes = math.prod(shape) * dtype.itemsize
        if not size_bytes:
            return np.empty(shape, dtype)
        with self._lock:
            start, self._next = self._next, self._next + aligned(size_bytes)
        if self._next > self._end:
            raise WorkerError(
                f"a batch is larger than {REGION_BYTES >> 30} GiB, the limit between processes.",
                hint="Use smaller batches.",
            )
        return self._memory[start : start + size_bytes].view(dtype).reshape(shape)

    def start_of(self, array: NDArray[Any]) -> int:
        """Return the offset of an array in the slot; it is copied to the slot if necessary to be contiguous in it."""
        if not array.size:
            return 0
        start = array.__array_interface__["data"][0] - self._address
        if array.flags.c_contiguous and 0 <= start < len(self._memory):
            return start
        copied = self.empty(array.shape, array.dtype)
        copied[...] = array
        return copied.__array_interface__["data"][0] - self._address


class SlotReference(CallAtEnd):
    """Reserves a slot while an array views it, and releases it when the last view is deleted."""

    __array_interface__: dict[str, Any]
    _memory: NDArray[np.uint8]

    def __new__(cls, slot: Slot, release: Callable[..., Any], *arguments: Any) -> SlotReference:
        """Reserve a slot.

        Args:
            slot: the slot.
            release: called on release, by any thread; a function in C (see `CallAtEnd`).
            arguments: its arguments.
        """
        self = super().__new__(cls, release, *arguments)
        self._memory = slot.memory
        self.__array_interface__ = self._memory.__array_interface__
        return self

    def memory(self) -> NDArray[np.uint8]:
        """Return all bytes of the slot; it stays reserved while an array views them."""
        return np.asarray(self)


class Release(NamedTuple):
    """A slot that the program does not view any more.

    Attributes:
        number: number of the slot.
        first_fork: the first fork since it was reserved.
        end_fork: the first fork after it was released.
    """

    number: int
    first_fork: int
    end_fork: int

    @property
    def may_be_read(self) -> bool:
        """Whether a forked process may read the slot."""
        return forked_processes.may_run(self.first_fork, self.end_fork)


class ReservedSlots:
    """Records which slots the program views. Thread-safe."""

    def __init__(self) -> None:
        forked_processes.observe(_note_all_releases)
        self._forks: dict[int, int] = {}  # the first fork since each slot was reserved
        # Releasing a slot is a single C call, because consumers release memory in any thread at any time.
        self._unseen: deque[int] = deque()
        self._releases: deque[Release] = deque()
        _all.add(self)

    def reserve(self, slot: Slot, number: int) -> NDArray[np.uint8]:
        """Return all bytes of a slot, which is reserved while an array views them.

        Args:
            slot: the slot.
            number: its number.
        """
        self._forks[number] = forked_processes.finished
        return SlotReference(slot, self._unseen.append, number).memory()

    @property
    def has_released(self) -> bool:
        """Whether `released` would yield a slot."""
        return bool(self._unseen or self._releases)

    def note_releases(self) -> None:
        """Record the current number of forks for the slots that have been released."""
        if not self._unseen:
            return
        with deferred_interrupts(), suppress(IndexError):  # another thread took the last one
            while self._unseen:
                number = self._unseen.popleft()
                self._releases.append(Release(number, self._forks[number], forked_processes.begun))

    def released(self) -> Iterator[Release]:
        """Yield each slot that has been released, once."""
        self.note_releases()
        with suppress(IndexError):
            while self._releases:
                yield self._releases.popleft()


class FreeSlots:
    """The numbers of the slots that are free. Thread-safe.

    Args:
        count: number of slots.
    """

    def __init__(self, count: int) -> None:
        self._free: deque[int] = deque(range(count))
        self._reserved = ReservedSlots()
        self._delayed: deque[Release] = deque()  # a forked process may read them

    def __len__(self) -> int:
        """Return the number of free slots."""
        self._add_released()
        return len(self._free)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers of the free slots."""
        self._add_released()
        return iter(tuple(self._free))

    def take(self) -> int:
        """Remove and return the number of a free slot.

        Raises:
            IndexError: no slot is free.
        """
        self._add_released()
        return self._free.pop()  # the most recently used one, because its pages are mapped

    def add(self, number: int) -> None:
        """Add a slot that no array views, and that no forked process has viewed."""
        self._free.append(number)

    def reserve(self, slot: Slot, number: int) -> NDArray[np.uint8]:
        """Return all bytes of a slot, which is added when no array of this process or of a forked one views them."""
        return self._reserved.reserve(slot, number)

    def _add_released(self) -> None:
        if not (self._reserved.has_released or self._delayed):
            return
        with deferred_interrupts():  # which would lose a slot
            releases = list(self._reserved.released())
            with suppress(IndexError):  # another thread took the last one
                for _ in range(len(self._delayed)):
                    releases.append(self._delayed.popleft())
            for release in releases:
                if release.may_be_read:
                    self._delayed.append(release)
                else:
                    self._free.append(release.number)


_all: weakref.WeakSet[ReservedSlots] = weakref.WeakSet()


def _note_all_releases() -> None:
    for slots in list(_all):
        slots.note_releases()
