"""What is left of an epoch whose shards were read in part, for readers that divide it anew.

Alone because this is what lets a run go on with another number of processes: what other shards have not read is divided
among the new ones, each sample once, without a list of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_SHARDS", "Remainder", "Split"]

MOST_SHARDS = 1 << 20
"""Of a saved state."""


@dataclass(frozen=True, slots=True)
class Split:
    """How far the shards had come when they were given up.

    Attributes:
        positions: samples that were read of each window, int64 ``[shards]``.
        seeds: of each window's order.
    """

    positions: tuple[int, ...]
    seeds: tuple[int, ...]

    def to_json(self) -> list[Any]:
        """Return plain data, short where all windows are alike."""
        return [len(self.positions), _short(self.positions), _short(self.seeds)]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Split:
        """Return what ``to_json`` got."""
        count, positions, seeds = data
        if type(count) is not int or not 1 <= count <= MOST_SHARDS:
            raise ValueError(f"there cannot be {count!r} shards")
        return cls(_long(positions, count), _long(seeds, count))


def _short(values: tuple[int, ...]) -> int | list[int]:
    return values[0] if len(set(values)) == 1 else list(values)


def _long(values: int | Sequence[int], count: int) -> tuple[int, ...]:
    return (values,) * count if isinstance(values, int) else tuple(values)


class Remainder:
    """The samples of an epoch that are left, in a fixed order: by window, and within each as they would have come.

    Args:
        size: samples of the whole epoch.
        splits: the shardings that were given up, the first one over the whole epoch, each further one over what the one
            before had left.
    """

    def __init__(self, size: int, splits: Sequence[Split]) -> None:
        self.splits = tuple(splits)
        self._size = size
        self._starts: list[NDArray[np.int64]] = []
        self._ends: list[NDArray[np.int64]] = []
        length = size
        for split in self.splits:
            count = len(split.positions)
            bounds = np.array([length * index // count for index in range(count + 1)], np.int64)
            read = np.minimum(np.array(split.positions, np.int64), np.diff(bounds))
            self._starts.append(bounds[:-1] + read)
            self._ends.append(np.cumsum(np.diff(bounds) - read))
            length = int(self._ends[-1][-1])
        self.length = length

    def __len__(self) -> int:
        """Return how many samples are left."""
        return self.length

    def locate(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where samples of the remainder stood before.

        Args:
            positions: in the remainder, int64 ``[N]``.

        Returns:
            their places in the epoch, ``[N]``, and the number of the first sharding's window of each, ``[N]``.
        """
        window = np.zeros(len(positions), np.int64)
        for starts, ends in zip(reversed(self._starts), reversed(self._ends), strict=True):
            window = np.searchsorted(ends, positions, side="right")
            before = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
            positions = starts[window] + positions - before[window]
        return positions, window

    def window_bounds(self, window: int) -> tuple[int, int]:
        """Return start and stop of a window of the first sharding."""
        count = len(self.splits[0].positions)
        return self._size * window // count, self._size * (window + 1) // count
