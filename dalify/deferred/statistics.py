"""What lazy mode has done so far, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dalify.base.fork_lock import ForkLock

__all__ = ["COUNTS", "Counts", "Fallback", "Statistics"]


@dataclass(frozen=True, slots=True)
class Fallback:
    """An operator that was asked to run on the GPU and ran on the CPU.

    Attributes:
        operator: public name.
        reason: why.
        line: of the call, ``file:line``.
    """

    operator: str
    reason: str
    line: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts since the program began.

    Attributes:
        plans_made: graphs that were checked, optimised and planned.
        plans_reused: graphs for which a plan was there already.
        operators_run: calls that were computed.
        operators_repeated: of these, calls that had been computed before, inside a graph that kept only its end.
        operators_pruned: calls that were never computed, because nobody held what they would have given.
        fallbacks: how often which operators ran on the CPU although the GPU was asked for.
    """

    plans_made: int
    plans_reused: int
    operators_run: int
    operators_repeated: int
    operators_pruned: int
    fallbacks: dict[Fallback, int]


class Counts:
    """The counts of a process."""

    def __init__(self) -> None:
        self.pruned = bytearray()  # a byte for each call that was given up: appending one is a single call of C
        self._lock = ForkLock()
        self._counts: Counter[str] = Counter()
        self._fallbacks: Counter[Fallback] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count an event, by the name of the attribute of ``Statistics``."""
        with self._lock:
            self._counts[name] += count
            self._count_pruned()

    def _count_pruned(self) -> None:
        count = len(self.pruned)
        del self.pruned[:count]
        self._counts["operators_pruned"] += count

    def add_fallbacks(self, fallbacks: list[Fallback]) -> None:
        """Count operators of one run."""
        if fallbacks:
            with self._lock:
                self._fallbacks.update(fallbacks)

    def shown(self) -> Statistics:
        """Return all counts as they stand."""
        with self._lock:
            self._count_pruned()
            counts = self._counts
            return Statistics(
                counts["plans_made"],
                counts["plans_reused"],
                counts["operators_run"],
                counts["operators_repeated"],
                counts["operators_pruned"],
                dict(self._fallbacks),
            )


COUNTS = Counts()
