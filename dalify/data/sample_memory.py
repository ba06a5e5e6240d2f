"""Samples that were computed once, kept in the memory of this process.

Alone because the bound is a promise: no path through this file keeps more than it, however many threads add samples.
"""

from __future__ import annotations

import heapq
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.base.fork_lock import ForkLock

__all__ = [
    "CACHE_TYPES",
    "MEGABYTE",
    "SampleMemory",
    "SampleStore",
    "StoredSample",
    "check_cache_options",
    "shared_memory_of",
]

MEGABYTE = 1 << 20
CACHE_TYPES = ("threshold", "largest")
# Of an entry besides the elements of its arrays: key, dictionary, tuples, and the head of each array.
_ENTRY_BYTES = 512
_ARRAY_BYTES = 192

Allocate = Callable[[int], np.ndarray[Any, np.dtype[np.uint8]]]


class StoredSample(NamedTuple):
    """What an operator, or several, made of one sample.

    Attributes:
        arrays: one for each value. Not to be changed.
        layouts: of each.
        notes: plain data about what was in front of the values; any that JSON can hold.
    """

    arrays: tuple[np.ndarray[Any, Any], ...]
    layouts: tuple[str, ...]
    notes: Sequence[Any] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements."""
        return sum(array.nbytes for array in self.arrays)


class SampleStore(Protocol):
    """Keeps samples by key, in memory or in a folder."""

    @property
    def size_bytes(self) -> int:
        """Bytes that are taken now."""
        ...

    def get(self, key: str, state: str, allocate: Allocate) -> StoredSample | None:
        """Return a sample; None where it is not there."""
        ...

    def has(self, key: str, state: str) -> bool:
        """Tell whether a sample is probably there."""
        ...

    def put(self, key: str, state: str, sample: StoredSample) -> bool:
        """Keep a copy of a sample, where there is room; return whether it is kept."""
        ...


def check_cache_options(cache_type: str, cache_size: int, cache_threshold: int, cache_folder: str) -> None:
    """Refuse options of a cache that exclude each other or are out of range.

    Raises:
        ArgumentValueError: one of them.
    """
    if cache_type and cache_type not in CACHE_TYPES:
        raise ArgumentValueError(option_error_text("cache_type", cache_type, CACHE_TYPES))
    for name, value in (("cache_size", cache_size), ("cache_threshold", cache_threshold)):
        if value < 0:
            raise ArgumentValueError(f"{name} must not be negative; got {value}.")
    if cache_folder and cache_type == "largest":
        raise ArgumentValueError(
            "cache_type='largest' works in memory only, and cache_folder is given.",
            hint="Write cache_type='threshold', or leave cache_folder out.",
        )


class SampleMemory:
    """Keeps samples in memory up to a bound. Safe to use from several threads, and in a process that was forked.

    Args:
        most_bytes: bound for everything that is kept, bookkeeping included.
        keeps_largest: where it is full, smaller samples make room for a larger one; otherwise what came first stays.
    """

    def __init__(self, most_bytes: int, keeps_largest: bool = False) -> None:
        self._most_bytes = most_bytes
        self._keeps_largest = keeps_largest
        self._lock = ForkLock()
        self._process = os.getpid()
        self._entries: dict[str, tuple[str, StoredSample, int]] = {}
        self._sizes: list[tuple[int, str]] = []  # a heap; entries that have gone are passed over
        self._size_bytes = 0  # of entries, and of those that threads are just copying

    @property
    def size_bytes(self) -> int:
        """Bytes that are taken now."""
        return self._size_bytes

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._entries)

    def get(self, key: str, state: str, allocate: Allocate | None = None) -> StoredSample | None:
        """Return a sample; None where it is not there.

        Args:
            key: of the sample.
            state: of what it was made from: another state is another sample.
            allocate: for stores that have to read; not needed here.
        """
        found = self._entries.get(key)  # one operation of C: no lock
        return found[1] if found is not None and found[0] == state else None

    def has(self, key: str, state: str) -> bool:
        """Tell whether a sample is there."""
        found = self._entries.get(key)
        return found is not None and found[0] == state

    def put(self, key: str, state: str, sample: StoredSample) -> bool:
        """Keep a copy of a sample, where there is room; return whether it is kept.

        Args:
            key: of the sample. What is there under it, in another state, is replaced.
            state: of what it was made from.
            sample: its arrays.
        """
        heads = len(sample.arrays) + len(sample.notes)
        size = sample.size_bytes + _ENTRY_BYTES + 2 * len(key) + heads * _ARRAY_BYTES
        with self._lock:
            self._begin_child()
            before = self._entries.get(key)
            if before is not None:
                if before[0] == state:
                    return True
                self._drop(key)
            if not self._make_room(size):
                return False
            self._size_bytes += size
        try:
            # Without the lock: this is what takes the time.
            arrays = tuple(np.array(array, order="C", copy=True) for array in sample.arrays)
            copy = StoredSample(arrays, sample.layouts, sample.notes)
        except BaseException:
            with self._lock:
                self._size_bytes -= size
            raise
        with self._lock:
            if key in self._entries:  # another thread was quicker
                self._drop(key)
            self._entries[key] = state, copy, size
            if self._keeps_largest:
                heapq.heappush(self._sizes, (size, key))
        return True

    def _make_room(self, size: int) -> bool:
        """Drop smaller samples where that makes room for one; return whether there is room."""
        excess = self._size_bytes + size - self._most_bytes
        if excess <= 0:
            return True
        if not self._keeps_largest or size > self._most_bytes:
            return False
        smaller: dict[str, int] = {}
        while excess > 0 and self._sizes and self._sizes[0][0] < size:
            least, key = heapq.heappop(self._sizes)
            entry = self._entries.get(key)
            if entry is not None and entry[2] == least and key not in smaller:
                smaller[key] = least
                excess -= least
        if excess > 0:  # what is left is as large: nothing is gained
            for key, least in smaller.items():
                heapq.heappush(self._sizes, (least, key))
            return False
        for key in smaller:
            self._drop(key)
        return True

    def _drop(self, key: str) -> None:
        self._size_bytes -= self._entries.pop(key)[2]

    def _begin_child(self) -> None:
        """In a forked child: forget what threads of the parent were just adding."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._size_bytes = sum(size for _, _, size in self._entries.values())
            self._sizes = [(size, key) for key, (_, _, size) in self._entries.items()] if self._keeps_largest else []
            heapq.heapify(self._sizes)

    def __repr__(self) -> str:
        """Return how much is kept."""
        return f"SampleMemory({len(self._entries)} samples, {self._size_bytes} of {self._most_bytes} bytes)"


_shared: weakref.WeakValueDictionary[tuple[Any, ...], SampleMemory] = weakref.WeakValueDictionary()
_shared_lock = ForkLock()


def shared_memory_of(digest: str, most_bytes: int, keeps_largest: bool, options: Sequence[Any] = ()) -> SampleMemory:
    """Return the memory for samples that are made in one way; all pipelines of the process share it while one lives.

    Args:
        digest: of what makes the samples.
        most_bytes: see ``SampleMemory``.
        keeps_largest: see ``SampleMemory``.
        options: what else tells memories from each other.
    """
    key = (digest, most_bytes, keeps_largest, *options)
    with _shared_lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SampleMemory(most_bytes, keeps_largest)
        return found
