"""Slots of shared memory that are used again when no process can read their batches.

A slot is reserved while the program has views of its batch. A process that is forked meanwhile also has these views,
and may read them as long as it runs.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.forked_processes import forked_processes
from dalify.base.interrupts import deferred_interrupts
from dalify.data.shared_memory import Slot, SlotReference


class Release(NamedTuple):
    """A slot that the program does not view any more.

    Attributes:
        number: number of the slot.
        first_fork: the first fork since it was reserved.
        end_fork: the first fork after it was released.
    """

    number: int
    first_fork: int
    end_fork: int

    @property
    def may_be_read(self) -> bool:
        """Whether a forked process may read the slot."""
        return forked_processes.may_run(self.first_fork, self.end_fork)


class ReservedSlots:
    """Records which slots the program views. Thread-safe."""

    def __init__(self) -> None:
        forked_processes.observe(_note_all_releases)
        self._forks: dict[int, int] = {}  # the first fork since each slot was reserved
        # Releasing a slot is a single C call, because consumers release memory in any thread at any time.
        self._unseen: deque[int] = deque()
        self._releases: deque[Release] = deque()
        _all.add(self)

    def reserve(self, slot: Slot, number: int) -> NDArray[np.uint8]:
        """Return all bytes of a slot, which is reserved while an array views them.

        Args:
            slot: the slot.
            number: its number.
        """
        self._forks[number] = forked_processes.finished
        return SlotReference(slot, self._unseen.append, number).memory()

    @property
    def has_released(self) -> bool:
        """Whether `released` would yield a slot."""
        return bool(self._unseen or self._releases)

    def note_releases(self) -> None:
        """Record the current number of forks for the slots that have been released."""
        with suppress(IndexError):  # another thread took the last one
            while self._unseen:
                number = self._unseen.popleft()
                self._releases.append(Release(number, self._forks[number], forked_processes.begun))

    def released(self) -> Iterator[Release]:
        """Yield each slot that has been released, once."""
        self.note_releases()
        with suppress(IndexError):
            while self._releases:
                yield self._releases.popleft()


class FreeSlots:
    """The numbers of the slots that are free. Thread-safe.

    Args:
        count: number of slots.
    """

    def __init__(self, count: int) -> None:
        self._free: deque[int] = deque(range(count))
        self._reserved = ReservedSlots()
        self._delayed: deque[Release] = deque()  # a forked process may read them

    def __len__(self) -> int:
        """Return the number of free slots."""
        self._add_released()
        return len(self._free)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers of the free slots."""
        self._add_released()
        return iter(tuple(self._free))

    def take(self) -> int:
        """Remove and return the number of a free slot.

        Raises:
            IndexError: no slot is free.
        """
        self._add_released()
        return self._free.pop()  # the most recently used one, because its pages are mapped

    def add(self, number: int) -> None:
        """Add a slot that no array views, and that no forked process has viewed."""
        self._free.append(number)

    def reserve(self, slot: Slot, number: int) -> NDArray[np.uint8]:
        """Return all bytes of a slot, which is added when no array of this process or of a forked one views them."""
        return self._reserved.reserve(slot, number)

    def _add_released(self) -> None:
        if not (self._reserved.has_released or self._delayed):
            return
        with deferred_interrupts():  # which would lose a slot
            releases = list(self._reserved.released())
            with suppress(IndexError):  # another thread took the last one
                for _ in range(len(self._delayed)):
                    releases.append(self._delayed.popleft())
            for release in releases:
                if release.may_be_read:
                    self._delayed.append(release)
                else:
                    self._free.append(release.number)


_all: weakref.WeakSet[ReservedSlots] = weakref.WeakSet()


def _note_all_releases() -> None:
    for slots in list(_all):
        slots.note_releases()
