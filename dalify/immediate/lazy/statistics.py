"""Statistics of lazy mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

from dalify.base.fork_lock import ForkLock


@dataclass(frozen=True, slots=True)
class Fallback:
    """An operator that should run on the GPU and ran on the CPU.

    Attributes:
        operator: public name.
        reason: the reason.
        line: line of the call, ``file:line``.
    """

    operator: str
    reason: str
    line: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts since the start of the program.

    Attributes:
        plans_made: number of graphs that were checked, optimized and planned.
        plans_reused: number of graphs that reused a plan.
        operators_run: number of computed calls.
        operators_repeated: number of these that had been computed before, as part of a graph that did not keep them.
        operators_pruned: number of calls that were never computed, because their results were not referenced.
        fallbacks: how often each operator ran on the CPU although the GPU was requested.
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
        self.pruned = bytearray()  # one byte per pruned call: appending is a single, atomic C call
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
        """Count fallbacks of one run."""
        if fallbacks:
            with self._lock:
                self._fallbacks.update(fallbacks)

    def snapshot(self) -> Statistics:
        """Return the current counts."""
        with self._lock:
            self._count_pruned()
            counts = [self._counts[item.name] for item in fields(Statistics)[:-1]]
            return Statistics(*counts, fallbacks=dict(self._fallbacks))


COUNTS = Counts()
