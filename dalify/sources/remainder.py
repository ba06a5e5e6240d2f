"""The unread samples of a partially read epoch, for resuming with another number of shards.

They are divided among the new shards, each sample once, without a list of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.data.rows import starts_of
from dalify.sources.sampler_options import window_bounds

MAX_SHARDS = 1 << 20
"""Maximum number of shards in a saved state."""
_MAX_PRODUCT = (1 << 63) - 1  # the maximum of int64


@dataclass(frozen=True, slots=True)
class Split:
    """Progress of the shards of an abandoned sharding.

    Equal values are stored once, so a state of thousands of shards at the same position is small.

    Attributes:
        count: number of shards.
        positions: number of samples read from each window; one number if all are equal.
        seeds: seed of the order of each window; one number if all are equal.
    """

    count: int
    positions: int | tuple[int, ...]
    seeds: int | tuple[int, ...]

    @classmethod
    def of(cls, positions: Sequence[int], seeds: Sequence[int]) -> Split:
        """Return the split for given numbers of each window."""
        return cls(len(positions), _compact(positions), _compact(seeds))

    def seed(self, window: int) -> int:
        """Return the seed of a window's order."""
        return self.seeds if isinstance(self.seeds, int) else self.seeds[window]

    def to_json(self) -> list[Any]:
        """Return count, positions and seeds as integers or lists of integers."""
        numbers = (self.positions, self.seeds)
        return [self.count, *(value if isinstance(value, int) else list(value) for value in numbers)]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Split:
        """Return the split from the result of ``to_json``.

        Raises:
            ValueError: a number is invalid or missing.
        """
        count, *numbers = data
        if type(count) is not int or not 1 <= count <= MAX_SHARDS:
            raise ValueError(f"invalid number of shards: {count!r}")
        given = [[value] if isinstance(value, int) else list(value) for value in numbers]
        if any(type(value) is not int for values in given for value in values) or min(given[0]) < 0:
            raise ValueError(f"invalid numbers of samples read: {str(numbers[0])[:60]}")
        if any(len(value) != count for value in numbers if not isinstance(value, int)):
            raise ValueError(f"there must be a number for each of {count} shards")
        positions, seeds = (value if isinstance(value, int) else _compact(value) for value in numbers)
        return cls(count, positions, seeds)


def _compact(values: Sequence[int]) -> int | tuple[int, ...]:
    return values[0] if len(set(values)) == 1 else tuple(values)


class _EqualWindows:
    """The unread samples of windows if the same number was read from each; positions are computed.

    Args:
        size: total number of samples.
        count: number of windows.
        read: number of samples read from each window, at most the size of the smallest window.
    """

    def __init__(self, size: int, count: int, read: int) -> None:
        self._size = size
        self._count = count
        self._read = read
        self.length = size - count * read

    def locate(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        count, length = self._count, self.length
        windows = ((positions + 1) * count - 1) // length  # the last one that starts at or before the position
        return self._size * windows // count + self._read + positions - length * windows // count, windows


class _UnequalWindows:
    """The unread samples of windows if different numbers were read; the bounds of each window are stored.

    Args:
        size: total number of samples.
        count: number of windows.
        read: number of samples read from each window; larger numbers mean all samples.
    """

    def __init__(self, size: int, count: int, read: NDArray[np.int64]) -> None:
        bounds = np.array([size * window // count for window in range(count + 1)], np.int64)
        read = np.minimum(read, np.diff(bounds))
        self._firsts = bounds[:-1] + read  # first unread sample of each window
        self._starts = starts_of(np.diff(bounds) - read)
        self.length = int(self._starts[-1])

    def locate(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        windows = np.searchsorted(self._starts, positions, side="right") - 1
        return self._firsts[windows] + positions - self._starts[windows], windows


def _windows(size: int, split: Split) -> _EqualWindows | _UnequalWindows:
    count, read = split.count, split.positions
    if isinstance(read, int) and read <= size // count and (size + 1) * count <= _MAX_PRODUCT:
        return _EqualWindows(size, count, read)
    return _UnequalWindows(size, count, np.full(count, read, np.int64))


class Remainder:
    """The remaining samples of an epoch, ordered by window, and in each window in their original order.

    Args:
        size: number of samples of the whole epoch.
        splits: the abandoned shardings: the first one of the whole epoch, each further one of the remainder of the
            previous one.
    """

    def __init__(self, size: int, splits: Sequence[Split]) -> None:
        self.splits = tuple(splits)
        self._size = size
        self._windows: list[_EqualWindows | _UnequalWindows] = []
        self.length = size
        for split in self.splits:
            self._windows.append(_windows(self.length, split))
            self.length = self._windows[-1].length

    def __len__(self) -> int:
        return self.length

    def locate(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Map positions in the remainder to positions in the epoch.

        Args:
            positions: in the remainder, int64 ``[N]``.

        Returns:
            Their positions in the epoch and their windows of the first sharding, both int64 ``[N]``.
        """
        numbers = np.zeros(len(positions), np.int64)
        for windows in reversed(self._windows):
            positions, numbers = windows.locate(positions)
        return positions, numbers

    def window_bounds(self, window: int) -> tuple[int, int]:
        """Return start and stop of a window of the first sharding."""
        return window_bounds(self._size, window, self.splits[0].count)
