"""Scratch memory for the values in a chunk.

Reusing the same memory keeps it in the CPU cache and avoids page faults of newly allocated memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dalify.data.pool import pageable

__all__ = ["Arena", "Arenas", "NewMemory"]

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

    def reset(self) -> None:
        """Free everything; keep only the last block, which is the largest."""
        self._offset = 0
        if self._full:
            self._full.clear()


class NewMemory:
    """Used instead of an arena for values that remain valid after the stage: all memory is new."""

    __slots__ = ()
    # Without a call of a Python function.
    empty = staticmethod(cast("Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]", np.empty))


class Arenas:
    """The arenas of a pipeline, one for each chunk in progress.

    There may be fewer chunks than threads, or more, because a user function that an operator calls may call operators.
    Arenas that were not needed for some time are freed, because more chunks are in progress before times are measured.
    """

    __slots__ = ("_free", "_loans", "_unused")

    def __init__(self) -> None:
        self._free: list[Arena] = []  # pop and append are single C calls
        # Threads change these numbers without a lock, because the effect of a lost change is small.
        self._loans = self._unused = 0

    def borrow(self) -> Arena:
        """Return an arena for the caller: the one that was returned last, which may be in the CPU cache."""
        self._loans += 1
        if self._loans % _LOANS_BETWEEN_CHECKS == 0:
            del self._free[: self._unused]
            self._unused = len(self._free)
        try:
            arena = self._free.pop()
        except IndexError:
            arena = Arena()
        self._unused = min(self._unused, len(self._free))
        return arena

    def take_back(self, arena: Arena) -> None:
        """Reset an arena and make it available again."""
        arena.reset()
        self._free.append(arena)
