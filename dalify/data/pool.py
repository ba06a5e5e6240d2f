"""A pool of memory for batches, which is reused when it is no longer referenced.

A new allocation of a batch costs page faults, which can take longer than filling it. A block returns to its pool when
the last array, tensor or DLPack capsule that views it is gone, so it is never reused while a consumer holds it.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.interrupts import CallAtEnd
from dalify.base.optional import torch

_ALIGNMENT_BYTES = 64  # a cache line, and the widest vector registers


def pageable(size_bytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return uninitialized ordinary memory as bytes, aligned to a cache line."""
    raw = np.empty(size_bytes + _ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT_BYTES
    return raw[start : start + size_bytes]


def pinned(size_bytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return page-locked memory for fast copies to a GPU; ordinary memory if there is no GPU."""
    if not torch.cuda.is_available():
        return pageable(size_bytes)
    return torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True).numpy()


# NumPy caches blocks up to this size itself, and allocates them in a twentieth of the time.
_SMALL_BYTES = 1024

# Blocks that no request needed between two checks are freed.
_REQUESTS_BETWEEN_CHECKS = 128

_Memory = tuple[np.ndarray[Any, np.dtype[np.uint8]], int]  # bytes and their address, cached because the lookup is slow


class _Block(CallAtEnd):
    """Owns memory; NumPy arrays keep it alive as their base, and its finalizer returns the memory to the pool."""

    __array_interface__: dict[str, Any]


class _FreeBlocks(deque[_Memory]):
    """Unused blocks of one size. Requests take the block that was returned last.

    ``pop`` and ``append`` are single C calls: no lock that a fork could copy while it is held.

    Attributes:
        last_use: time of the last request for this size; -1 if there was none.
        unneeded: minimum number of blocks since the last check.
    """

    __slots__ = ("last_use", "unneeded")

    def __init__(self, most: int) -> None:
        super().__init__(maxlen=most)
        self.last_use, self.unneeded = -1, 0

    def take(self, time: int) -> _Memory:
        """Remove and return a block; IndexError if there is none."""
        self.last_use = time
        memory = self.pop()
        # Threads change this number without a lock, because the effect of a lost change is small.
        self.unneeded = min(self.unneeded, len(self))
        return memory

    def free_unneeded(self) -> None:
        """Free the blocks that were not needed since the last call."""
        with suppress(IndexError):  # another thread took one
            for _ in range(self.unneeded):
                self.popleft()
        self.unneeded = len(self)


class BufferPool:
    """Keeps blocks of memory by size. Thread-safe and fork-safe.

    Blocks that were not needed for some time are freed: sizes of samples vary, and the length of chunks changes.

    Args:
        allocate: allocates a new block of the given number of bytes.
        capacity_bytes: maximum amount of unused memory.
    """

    def __init__(
        self,
        allocate: Callable[[int], np.ndarray[Any, np.dtype[np.uint8]]] = pageable,
        capacity_bytes: int = 1 << 30,
    ) -> None:
        self._allocate = allocate
        self._capacity_bytes = capacity_bytes
        self._free: dict[int, _FreeBlocks] = {}
        self._clock = itertools.count()  # counts requests
        self.allocations = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return an uninitialized array."""
        size_bytes = math.prod(shape) * dtype.itemsize
        if size_bytes == 0 or (size_bytes <= _SMALL_BYTES and self._allocate is pageable):
            return np.empty(shape, dtype)
        # Sizes are rounded up so that batches of nearly the same size share blocks.
        rounded = _round_up(size_bytes)
        free = self._free.get(rounded)
        if free is None:
            free = self._free.setdefault(rounded, _FreeBlocks(self._capacity_bytes // rounded))
        time = next(self._clock)
        if time % _REQUESTS_BETWEEN_CHECKS == 0:
            for each in list(self._free.values()):
                each.free_unneeded()
        try:
            memory = free.take(time)
        except IndexError:
            larger = self._take_larger(rounded, time)
            if larger is None:
                self._make_room()
                fresh = self._allocate(rounded)
                memory = fresh, fresh.ctypes.data
                self.allocations += 1
            else:
                free, memory = larger
        block = _Block(free.append, memory)
        block.__array_interface__ = {"version": 3, "data": (memory[1], False), "shape": shape, "typestr": dtype.str}
        array = np.asarray(block)
        return array if array.dtype == dtype else array.view(dtype)  # the array interface does not support bfloat16

    def _take_larger(self, rounded: int, time: int) -> tuple[_FreeBlocks, _Memory] | None:
        """Take the smallest unused block that is larger by at most half; return the blocks of its size, and it."""
        most = rounded + rounded // 2
        for size in sorted(size for size, free in list(self._free.items()) if free and rounded < size <= most):
            free = self._free[size]
            with suppress(IndexError):  # another thread took it
                return free, free.take(time)
        return None

    def _make_room(self) -> None:
        """Free unused memory above the capacity, of the sizes that have not been requested for the longest time."""
        excess = sum(size * len(free) for size, free in list(self._free.items())) - self._capacity_bytes
        if excess <= 0:
            return
        for size, free in sorted(self._free.items(), key=lambda item: item[1].last_use):
            with suppress(IndexError):  # none of this size is left
                while excess > 0:
                    free.popleft()
                    excess -= size


@lru_cache(256)
def _round_up(size_bytes: int) -> int:
    step = max(4096, 1 << max(0, size_bytes.bit_length() - 4))  # wastes at most an eighth
    return -(-size_bytes // step) * step
