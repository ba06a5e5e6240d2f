"""Decoded blocks of files, the last used ones, for all threads of a process.

Alone because a row group or a chunk is decoded as a whole and wanted piece by piece, by several threads at once, and
readers are forked and pickled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["BlockCache"]

T = TypeVar("T")
# Where a batch spans two blocks, each of any size, both are wanted in turns.
_FEWEST = 2


class _Slot(Generic[T]):
    __slots__ = ("lock", "size_bytes", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: T | None = None
        self.size_bytes = 0


class BlockCache(Generic[T]):
    """Blocks by number, loaded once however many threads ask.

    Pickled, and in a process that was forked, it is empty.

    Args:
        load: from a number to a block and its size in bytes; called in the thread that asks.
        most_bytes: what is used least is dropped beyond; the two last used blocks stay in any case.
    """

    def __init__(self, load: Callable[[int], tuple[T, int]], most_bytes: int) -> None:
        self._load = load
        self._most_bytes = most_bytes
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._slots: dict[int, _Slot[T]] = {}  # the least used first
        self._last: tuple[int, T] | None = None  # whole or not at all, so that it can be looked at without the lock
        self._size_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: how to load, no blocks."""
        return {"load": self._load, "most_bytes": self._most_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin empty."""
        self.__init__(state["load"], state["most_bytes"])

    def get(self, number: int) -> T:
        """Return a block.

        Raises:
            Exception: what loading it raises; the next one who asks tries again.
        """
        last = self._last
        if last is not None and last[0] == number and self._process == os.getpid():
            return last[1]
        if self._process != os.getpid():  # a thread of the parent may have held a lock when the process was forked
            self._begin()
        with self._lock:
            slot = self._slots.pop(number, None) or _Slot[T]()
            self._slots[number] = slot
            if slot.value is not None:
                self._last = number, slot.value
                return slot.value
        with slot.lock:
            if slot.value is None:
                try:
                    slot.value, slot.size_bytes = self._load(number)
                except BaseException:
                    with self._lock:
                        if self._slots.get(number) is slot:
                            del self._slots[number]
                    raise
                self._keep(number, slot.value, slot.size_bytes)
            return slot.value

    def _keep(self, number: int, value: T, added_bytes: int) -> None:
        with self._lock:
            self._last = number, value
            self._size_bytes += added_bytes
            loaded = [number for number, slot in self._slots.items() if slot.value is not None]
            for number in loaded[:-_FEWEST]:
                if self._size_bytes <= self._most_bytes:
                    break
                self._size_bytes -= self._slots.pop(number).size_bytes

    def __repr__(self) -> str:
        """Return how much is kept."""
        return f"BlockCache({len(self._slots)} blocks, {self._size_bytes} bytes)"
