"""Scratch memory for the values in a chunk.

Reusing the same memory keeps it in the CPU cache and avoids page faults of newly allocated memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dalify.data.pool import pageable

_FIRST_BYTES = 1 << 20
_ALIGNMENT_BYTES = 64
_LOANS_BETWEEN_CHECKS = 256


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

    @property
    def size_bytes(self) -> int:
        """Size of the block that is kept: at most twice what was needed when it was allocated."""
        return self._block.nbytes

    def reset(self) -> int:
        """Free everything except the last block, which is the largest. Return how many bytes were used, at most."""
        used_bytes = self._offset
        self._offset = 0
        if self._full:
            used_bytes += sum(block.nbytes for block in self._full)
            self._full.clear()
        return used_bytes


class NewMemory:
    """Used instead of an arena for values that remain valid after the stage: all memory is new."""

    __slots__ = ()
    # Without a call of a Python function.
    empty = staticmethod(cast("Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]", np.empty))


class Arenas:
    """The arenas of a pipeline, one for each chunk in progress.

    There may be fewer chunks than threads, or more, because a user function that an operator calls may call operators.
    Arenas that were not needed for some time are freed, because more chunks are in progress before times are measured.
    So are arenas that were enlarged for samples of a size that did not occur for some time.
    """

    __slots__ = ("_free", "_loans", "_most_bytes", "_recent_bytes", "_unused")

    def __init__(self) -> None:
        self._free: list[Arena] = []  # pop and append are single C calls
        # Threads change these numbers without a lock, because the effect of a lost change is small.
        self._loans = self._unused = self._most_bytes = 0
        self._recent_bytes = _FIRST_BYTES

    def borrow(self) -> Arena:
        """Return an arena for the caller: the one that was returned last, which may be in the CPU cache."""
        self._loans += 1
        if self._loans % _LOANS_BETWEEN_CHECKS == 0:
            del self._free[: self._unused]
            self._unused = len(self._free)
            self._recent_bytes, self._most_bytes = max(self._most_bytes, _FIRST_BYTES), 0
        try:
            arena = self._free.pop()
        except IndexError:
            arena = Arena()
        self._unused = min(self._unused, len(self._free))
        return arena

    def take_back(self, arena: Arena) -> None:
        """Reset an arena and make it available again, unless it is too large."""
        self._most_bytes = max(self._most_bytes, arena.reset())
        if arena.size_bytes <= 2 * max(self._most_bytes, self._recent_bytes):
            self._free.append(arena)
