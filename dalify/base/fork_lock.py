"""Locks that remain usable after a fork.

A thread that holds a lock during a fork does not exist in the child, so an ordinary lock would never be released.
"""

from __future__ import annotations

import threading
import weakref
from operator import attrgetter
from typing import TYPE_CHECKING

from dalify.base.fork_hook import at_fork


class ForkLock:
    """A reentrant lock that is free in a forked child, unless the forking thread holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(weakref.ref(self, _locks.discard))

    if TYPE_CHECKING:

        def __enter__(self) -> None:
            """Acquire the lock."""

        def __exit__(self, *_: object) -> None:
            """Release the lock."""

    else:
        # Implemented in C: Ctrl-C cannot interrupt between acquiring the lock and entering the block.
        __enter__ = property(attrgetter("_lock.acquire"))
        __exit__ = property(attrgetter("_lock.__exit__"))

    def begin_child(self) -> None:
        """Replace the lock in a forked child if another thread of the parent held it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


# Not a WeakSet, because exceptions such as KeyboardInterrupt are ignored in its callbacks, which are in Python.
_locks: set[weakref.ref[ForkLock]] = set()


def _begin_child() -> None:
    for reference in list(_locks):
        lock = reference()
        if lock is not None:
            lock.begin_child()


at_fork(_begin_child)
