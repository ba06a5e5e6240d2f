"""A least-recently-used (LRU) cache."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Recent(Generic[_T]):
    """An LRU cache for several threads.

    It has no lock, because each access is a single operation of a dictionary. So a hit takes little more time than that
    of a dictionary, and a fork cannot leave it locked. Above the limit, the least recently used eighth is removed at
    once, because finding the values takes a pass over all of them.

    Args:
        limit: maximum number of values, or maximum total size if `size` is given.
        drop: called for each removed value; None for nothing.
        size: returns the size of a value, which must not change; None to count values.
    """

    __slots__ = ("_clock", "_drop", "_entries", "_limit", "_size", "_total")

    def __init__(
        self, limit: int, drop: Callable[[_T], object] | None = None, size: Callable[[_T], int] | None = None
    ) -> None:
        self._limit = limit
        self._drop = drop
        self._size = size
        self._entries: dict[Hashable, list[Any]] = {}  # value, time of its last use, size
        self._total = 0  # total size; may be wrong after a race of two threads, until `_trim` computes it again
        self._clock = itertools.count()

    def get(self, key: Hashable) -> _T | None:
        """Return the value of a key; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry[1] = next(self._clock)
        return entry[0]

    def put(self, key: Hashable, value: _T) -> None:
        """Store a value, which must not be None."""
        size = 1 if self._size is None else self._size(value)
        self._entries[key] = [value, next(self._clock), size]
        self._total += size
        if self._total > self._limit:
            self._trim()

    def _trim(self) -> None:
        """Remove the least recently used values if there are more than the limit allows."""
        uses = [(key, entry[1], entry[2]) for key, entry in list(self._entries.items())]
        self._total = sum(size for _, _, size in uses)
        if self._total > self._limit:
            uses.sort(key=itemgetter(1))
            for key, _, _ in uses:
                if self._total <= self._limit - self._limit // 8:
                    break
                self.remove(key)

    def get_or_make(self, key: Hashable | None, make: Callable[[], _T]) -> tuple[_T, bool]:
        """Return the value of a key, and whether it was cached.

        Args:
            key: the key; None to create the value without caching it.
            make: creates the value. Threads that need it at the same time may each create one.
        """
        found = None if key is None else self.get(key)
        if found is not None:
            return found, True
        made = make()
        if key is not None:
            self.put(key, made)
        return made, False

    def remove(self, key: Hashable) -> None:
        """Remove a value if there is one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._total -= entry[2]
        if self._drop is not None:
            self._drop(entry[0])

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._entries):
            self.remove(key)

    def __len__(self) -> int:
        return len(self._entries)
