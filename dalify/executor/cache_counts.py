"""Counts of the samples that were found in a cache."""

from __future__ import annotations

import threading

from dalify.base.wording import counted


class CacheCounts:
    """The numbers of samples that came from a cache and that were computed; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.hits = self.misses = 0
        self._reported = (0, 0)

    def add(self, hits: int, misses: int) -> None:
        """Count the samples of a chunk, or of another process."""
        with self._lock:
            self.hits += hits
            self.misses += misses

    def progress(self) -> tuple[int, int]:
        """Return hits and misses since the last call."""
        with self._lock:
            (hits, misses), self._reported = self._reported, (self.hits, self.misses)
            return self.hits - hits, self.misses - misses

    def text(self, computed: str) -> str:
        """Return the counts as a part of a sentence; ``computed`` is the participle for the other samples."""
        total = counted(self.hits + self.misses, "sample")
        return f"{self.hits} of {total} came from the cache, {self.misses} were {computed}"
