"""A mapping with a least-recently-used (LRU) limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dalify.base.fork_lock import ForkLock

__all__ = ["Recent"]

_T = TypeVar("_T")


class Recent(Generic[_T]):
    """An LRU cache.

    Args:
        limit: maximum number of values.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = ForkLock()
        self._values: OrderedDict[Hashable, _T] = OrderedDict()

    def get(self, key: Hashable | None, make: Callable[[], _T]) -> tuple[_T, bool]:
        """Return the value of a key, and whether it was cached.

        Args:
            key: the key; None for a value that is not cached.
            make: creates the value.
        """
        with self._lock:
            found = None if key is None else self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
                return found, True
        # Without the lock: it may take long, and concurrent creation of the same value is harmless.
        made = make()
        if key is not None:
            with self._lock:
                self._values[key] = made
                if len(self._values) > self._limit:
                    self._values.popitem(last=False)
        return made, False

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)
