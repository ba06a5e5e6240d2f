"""Scratch memory of one worker thread for the values inside a chunk.

The values are short-lived. Reusing the same memory keeps it in the cache and avoids page faults of newly allocated
memory.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from dalify.data.pool import pageable

__all__ = ["Arena", "NewMemory", "arena_of_thread"]

_FIRST_BYTES = 1 << 20
_ALIGNMENT_BYTES = 64


class Arena:
    """Allocates memory in order; ``reset`` frees everything."""

    __slots__ = ("_block", "_full", "_offset")

    def __init__(self) -> None:
        self._block = pageable(_FIRST_BYTES)
        self._offset = 0
        self._full: list[np.ndarray[Any, Any]] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return an uninitialized array that is valid until ``reset``."""
        size_bytes = math.prod(shape) * dtype.itemsize
        start = self._offset
        end = start + size_bytes
        if end > self._block.nbytes:
            self._full.append(self._block)
            self._block = pageable(max(2 * self._block.nbytes, size_bytes))
            start, end = 0, size_bytes
        self._offset = end + (-end % _ALIGNMENT_BYTES)
        return np.ndarray(shape, dtype, self._block, start)

    def reset(self) -> None:
        """Free everything. Blocks that were too small are dropped; the last one, which is the largest, is reused."""
        self._offset = 0
        if self._full:
            self._full.clear()


class NewMemory:
    """Used instead of an arena for values that remain valid after the stage: all memory is new."""

    __slots__ = ()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return an uninitialized array."""
        return np.empty(shape, dtype)

    def reset(self) -> None:
        """Do nothing."""


_local = threading.local()


def arena_of_thread() -> Arena:
    """Return the arena of the current thread."""
    arena = getattr(_local, "arena", None)
    if arena is None:
        arena = _local.arena = Arena()
    return arena
