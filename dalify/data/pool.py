"""Memory for batches, used again when nobody looks at it any more.

A fresh allocation of a batch costs page faults, which can take longer than filling it. A block goes back to its pool
when the last array, tensor or DLPack capsule that views it is gone: never under a consumer, whatever he keeps.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.optional import torch

__all__ = ["BufferPool", "pageable", "pinned"]

_ALIGNMENT_BYTES = 64  # a cache line, and the widest vector registers


def pageable(size_bytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return uninitialised ordinary memory as bytes, aligned to a cache line."""
    raw = np.empty(size_bytes + _ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT_BYTES
    return raw[start : start + size_bytes]


def pinned(size_bytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return page-locked memory, from which a GPU copies without a detour; ordinary memory where there is no GPU."""
    if not torch.cuda.is_available():
        return pageable(size_bytes)
    return torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True).numpy()


# numpy keeps blocks of this size itself, and hands them out in a twentieth of the time.
_SMALL_BYTES = 1024

_Memory = tuple[np.ndarray[Any, np.dtype[np.uint8]], int]  # bytes, and their address: asking for it takes long


class _Block:
    """Lends memory; numpy arrays keep it alive as their base, and its end gives the memory back."""

    __slots__ = ("__array_interface__", "_memory", "_pool")

    def __init__(self, pool: BufferPool, memory: _Memory, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._pool = pool
        self._memory = memory
        self.__array_interface__ = {"version": 3, "data": (memory[1], False), "shape": shape, "typestr": dtype.str}

    def __del__(self) -> None:
        self._pool._take_back(self._memory)


class BufferPool:
    """Keeps blocks of memory by size. Safe to use from several threads.

    Args:
        allocate: makes a new block of so many bytes.
        capacity_bytes: how much unused memory is kept at most.
    """

    def __init__(
        self,
        allocate: Callable[[int], np.ndarray[Any, np.dtype[np.uint8]]] = pageable,
        capacity_bytes: int = 1 << 30,
    ) -> None:
        self._allocate = allocate
        self._capacity_bytes = capacity_bytes
        self._free: dict[int, list[_Memory]] = {}
        self._free_bytes = 0
        self._lock = threading.RLock()  # a block may end, by garbage collection, while this very thread holds the lock
        self.allocations = 0
        _pools.add(self)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return an uninitialised array.

        Args:
            shape: extents.
            dtype: type of the elements.
        """
        size_bytes = math.prod(shape) * dtype.itemsize
        if size_bytes == 0 or (size_bytes <= _SMALL_BYTES and self._allocate is pageable):
            return np.empty(shape, dtype)
        # Sizes are rounded up so that batches of nearly the same size share blocks.
        rounded = _round_up(size_bytes)
        with self._lock:
            blocks = self._free.get(rounded)
            memory = blocks.pop() if blocks else None
            if memory is not None:
                self._free_bytes -= rounded
        if memory is None:
            fresh = self._allocate(rounded)
            memory = fresh, fresh.ctypes.data
            self.allocations += 1
        made = np.asarray(_Block(self, memory, shape, dtype))
        return made if made.dtype == dtype else made.view(dtype)  # bfloat16 has no name in the array interface

    def _take_back(self, memory: _Memory) -> None:
        size_bytes = memory[0].nbytes
        with self._lock:
            if self._free_bytes + size_bytes > self._capacity_bytes:
                self.clear()  # sizes that nobody asks for any more would keep out those that are asked for
            if size_bytes <= self._capacity_bytes:
                self._free.setdefault(size_bytes, []).append(memory)
                self._free_bytes += size_bytes

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    def clear(self) -> None:
        """Give all unused memory back to the system."""
        with self._lock:
            self._free.clear()
            self._free_bytes = 0


_pools: weakref.WeakSet[BufferPool] = weakref.WeakSet()


def _renew_locks() -> None:
    # A thread that held a lock when the process forked does not exist in the child and will never release it.
    for pool in list(_pools):
        pool._renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _round_up(size_bytes: int) -> int:
    step = max(4096, 1 << max(0, size_bytes.bit_length() - 4))  # at most an eighth is wasted
    return -(-size_bytes // step) * step
