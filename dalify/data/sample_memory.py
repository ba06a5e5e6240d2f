"""Cache of computed samples in the memory of this process.

The maximum size is never exceeded, also if several threads add samples.
"""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.base.fork_hook import Owner
from dalify.base.fork_lock import ForkLock

MEGABYTE = 1 << 20
CACHE_TYPES = ("threshold", "largest")
# Overhead of an entry besides its array elements: key, dictionary, tuples, and the header of each array.
_ENTRY_BYTES = 512
_ARRAY_BYTES = 192

Allocate = Callable[[int], np.ndarray[Any, np.dtype[np.uint8]]]


class StoredSample(NamedTuple):
    """Values computed by operators for one sample.

    Attributes:
        arrays: one array per value, read-only; tensors in a memory on the device.
        layouts: layout of each.
        notes: JSON-serializable metadata of the values.
    """

    arrays: tuple[Any, ...]
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
        """Bytes in use."""
        ...

    def get(self, key: str, state: str, allocate: Allocate) -> StoredSample | None:
        """Return a sample; None if it is missing."""
        ...

    def has(self, key: str, state: str) -> bool:
        """Return whether a sample probably exists."""
        ...

    def put(self, key: str, state: str, sample: StoredSample) -> bool:
        """Store a copy of a sample if there is room; return whether it is stored."""
        ...


def check_cache_options(cache_type: str, cache_size: int, cache_threshold: int, cache_folder: str) -> None:
    """Raise if options of a cache are mutually exclusive or out of range.

    Raises:
        ArgumentValueError: invalid options.
    """
    if cache_type and cache_type not in CACHE_TYPES:
        raise ArgumentValueError(option_error_text("cache_type", cache_type, CACHE_TYPES))
    for name, value in (("cache_size", cache_size), ("cache_threshold", cache_threshold)):
        if value < 0:
            raise ArgumentValueError(f"{name} must not be negative; got {value}.")
    check_cache_folder("cache_folder", cache_folder)
    if cache_folder and cache_type == "largest":
        raise ArgumentValueError(
            "cache_type='largest' cannot be combined with cache_folder.",
            hint="Pass cache_type='threshold', or omit cache_folder.",
        )


def check_cache_folder(name: str, folder: str) -> None:
    """Raise an error if a path is not the path of a local folder.

    Args:
        name: name of the argument that specifies the path, for the error.
        folder: the path.

    Raises:
        ArgumentValueError: a URL, which would become a folder of that name, or a path with a null character.
    """
    if "://" in folder or "\0" in folder:
        raise ArgumentValueError(
            f"{name} must be a local folder; got {folder!r}.",
            hint="Use a local path, for example '/tmp/cache'.",
        )


def _array_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array(array, order="C", copy=True)


class SampleMemory:
    """Keeps samples in memory up to a maximum size. Thread-safe and fork-safe.

    Args:
        max_bytes: maximum size, including overhead.
        keeps_largest: when full, replace smaller samples by a larger one; False: keep the first samples.
        copied: returns a contiguous copy of an array, or of a tensor for samples on a device.
    """

    def __init__(self, max_bytes: int, keeps_largest: bool = False, copied: Callable[[Any], Any] = _array_copy) -> None:
        self._max_bytes = max_bytes
        self._keeps_largest = keeps_largest
        self._copied = copied
        self._lock = ForkLock()
        self._owner = Owner()
        self._entries: dict[str, tuple[str, StoredSample, int]] = {}
        self._sizes: list[tuple[int, str]] = []  # a heap; stale entries are skipped
        self._size_bytes = 0  # of entries, including those being copied

    @property
    def size_bytes(self) -> int:
        """Bytes in use."""
        return self._size_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str, state: str, allocate: Allocate | None = None) -> StoredSample | None:
        """Return a sample; None if it is missing.

        Args:
            key: key of the sample.
            state: state of its source; another state is another sample.
            allocate: unused; for stores that read files.
        """
        found = self._entries.get(key)  # a single C operation needs no lock
        return found[1] if found is not None and found[0] == state else None

    def has(self, key: str, state: str) -> bool:
        """Return whether a sample exists."""
        found = self._entries.get(key)
        return found is not None and found[0] == state

    def put(self, key: str, state: str, sample: StoredSample) -> bool:
        """Store a copy of a sample if there is room; return whether it is stored.

        Args:
            key: key of the sample; an existing sample in another state is replaced.
            state: state of its source.
            sample: the sample.
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
            # Without the lock, since the copy takes the time.
            arrays = tuple(map(self._copied, sample.arrays))
            copy = StoredSample(arrays, sample.layouts, sample.notes)
        except BaseException:
            with self._lock:
                self._size_bytes -= size
            raise
        with self._lock:
            if key in self._entries:  # another thread was faster
                self._drop(key)
            self._entries[key] = state, copy, size
            if self._keeps_largest:
                heapq.heappush(self._sizes, (size, key))
        return True

    def _make_room(self, size: int) -> bool:
        """Delete smaller samples if that makes room for one; return whether there is room."""
        excess = self._size_bytes + size - self._max_bytes
        if excess <= 0:
            return True
        if not self._keeps_largest or size > self._max_bytes:
            return False
        smaller: dict[str, int] = {}
        while excess > 0 and self._sizes and self._sizes[0][0] < size:
            smallest, key = heapq.heappop(self._sizes)
            entry = self._entries.get(key)
            if entry is not None and entry[2] == smallest and key not in smaller:
                smaller[key] = smallest
                excess -= smallest
        if excess > 0:  # the remaining samples are not smaller
            for key, smallest in smaller.items():
                heapq.heappush(self._sizes, (smallest, key))
            return False
        for key in smaller:
            self._drop(key)
        return True

    def _drop(self, key: str) -> None:
        self._size_bytes -= self._entries.pop(key)[2]

    def _begin_child(self) -> None:
        """In a forked child, discard the size of samples that threads of the parent were adding."""
        if self._owner.take_over():
            self._size_bytes = sum(size for _, _, size in self._entries.values())
            self._sizes = [(size, key) for key, (_, _, size) in self._entries.items()] if self._keeps_largest else []
            heapq.heapify(self._sizes)


class ChunkMemory:
    """The samples of one chunk in a cache on a device.

    Args:
        store: the cache.
        keys: key and state of each sample of the chunk; None for one that is not cached.
        threshold_bytes: minimum size; only samples with more bytes are stored.
    """

    def __init__(self, store: SampleMemory, keys: Sequence[tuple[str, str] | None], threshold_bytes: int) -> None:
        self._store = store
        self._keys = keys
        self._threshold_bytes = threshold_bytes

    def find(self) -> list[Any | None]:
        """Return the tensor of each sample; None if it is missing."""
        found = [None if key is None else self._store.get(*key) for key in self._keys]
        return [None if sample is None else sample.arrays[0] for sample in found]

    def add(self, index: int, sample: Any) -> None:
        """Store a copy of a tensor, in the order of torch's current stream, if there is room."""
        key = self._keys[index]
        if key is not None and sample.nbytes > self._threshold_bytes:
            self._store.put(*key, StoredSample((sample,), ("",)))

    def take(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> ChunkMemory:
        """Return the part for some samples of the chunk."""
        kept: list[int] = indices.tolist()
        return ChunkMemory(self._store, [self._keys[index] for index in kept], self._threshold_bytes)


_shared: weakref.WeakValueDictionary[tuple[Any, ...], SampleMemory] = weakref.WeakValueDictionary()
_shared_lock = ForkLock()


def shared_memory_of(digest: str, max_bytes: int, keeps_largest: bool, options: Sequence[Any] = ()) -> SampleMemory:
    """Return the memory for samples of one graph, shared by all pipelines of the process while one exists.

    Args:
        digest: digest of the graph that computes the samples.
        max_bytes: see ``SampleMemory``.
        keeps_largest: see ``SampleMemory``.
        options: further parts of the key.
    """
    key = (digest, max_bytes, keeps_largest, *options)
    with _shared_lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SampleMemory(max_bytes, keeps_largest)
        return found
