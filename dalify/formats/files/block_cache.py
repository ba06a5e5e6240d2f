"""LRU cache of decoded blocks of files, such as row groups and chunks, shared by all threads of a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dalify.base.fork_hook import Owner

T = TypeVar("T")
# A batch that spans two blocks alternates between them.
_MIN_BLOCKS = 2


class _Slot(Generic[T]):
    __slots__ = ("lock", "size_bytes", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: T | None = None
        self.size_bytes = 0


class BlockCache(Generic[T]):
    """Blocks by number; each is loaded once, even if several threads request it.

    The cache is empty after unpickling and in a forked process.

    Args:
        load: function of a number, which returns the block and its size in bytes; called in the requesting thread.
        max_bytes: least recently used blocks are dropped above this size, except for the last two.
    """

    def __init__(self, load: Callable[[int], tuple[T, int]], max_bytes: int) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._reset()

    def _reset(self) -> None:
        self._owner = Owner()
        self._lock = threading.Lock()
        self._slots: dict[int, _Slot[T]] = {}  # least recently used first
        self._last: tuple[int, T] | None = None  # replaced atomically, so it can be read without the lock
        self._size_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without blocks."""
        return {"load": self._load, "max_bytes": self._max_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore an empty cache."""
        self.__init__(state["load"], state["max_bytes"])

    def get(self, number: int) -> T:
        """Return a block.

        Raises:
            Exception: any exception of ``load``; the next request tries again.
        """
        last = self._last
        if last is not None and last[0] == number and self._owner.is_this_process:
            return last[1]
        if not self._owner.is_this_process:  # a thread of the parent may have held the lock during the fork
            self._reset()
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
                self._keep(number, slot, slot.value)
            return slot.value

    def _keep(self, number: int, slot: _Slot[T], value: T) -> None:
        with self._lock:
            self._last = number, value
            if self._slots.get(number) is not slot:  # removed when another thread failed to load the block
                return
            self._size_bytes += slot.size_bytes
            loaded = [number for number, slot in self._slots.items() if slot.value is not None]
            for number in loaded[:-_MIN_BLOCKS]:
                if self._size_bytes <= self._max_bytes:
                    break
                self._size_bytes -= self._slots.pop(number).size_bytes

    def __repr__(self) -> str:
        return f"BlockCache({len(self._slots)} blocks, {self._size_bytes} bytes)"
