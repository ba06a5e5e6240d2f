"""Shuffles entries that are stored in blocks, where reading one entry costs as much as reading the whole block.

The exact shuffle of the sampler would read a whole row group for each row. Here blocks are shuffled, and then all
entries within windows of a few blocks. The order is a function of epoch and position, so no other state is stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.data.entries import Blocks
from dalify.data.rows import starts_of
from dalify.sources.permutation import mixed_key, permute

Numbers = NDArray[np.int64]
_FIXED_ORDER, _PIECE_ORDER, _ENTRY_ORDER = 21, 22, 23
_KEPT_PLANS = 4  # for this epoch and, after resharding, for others


class _Plan(NamedTuple):
    """The order of a range of the data in one epoch: pieces of blocks, and windows of pieces."""

    first_entries: Numbers  # first entry of each piece
    piece_starts: Numbers  # cumulative, in the order of the plan; the last element is the end
    window_starts: Numbers  # likewise


class BlockOrder:
    """A random order that uses few blocks at a time.

    The blocks have one fixed random order, so that shards of sorted data are mixed. A shard is a range of it and shares
    at most two blocks with its neighbors. In each epoch, the blocks of a shard are reordered and grouped into windows,
    and all entries of a window are shuffled.

    Args:
        blocks: the blocks of the index.
        min_entries: minimum size of a window: blocks are added until it is reached or the next one would exceed the
            memory limit.
    """

    def __init__(self, blocks: Blocks, min_entries: int) -> None:
        count = len(blocks.entries)
        order = permute(np.arange(count), count, mixed_key(_FIXED_ORDER, int(blocks.entries.sum())))
        self._first_entries = (np.cumsum(blocks.entries) - blocks.entries)[order]
        self._sizes = blocks.entries[order]
        self._ends = np.cumsum(self._sizes)
        self._size_bytes = blocks.size_bytes[order]
        self._max_bytes = blocks.max_bytes
        self._min_entries = min_entries
        self._plans: dict[tuple[int, int, int], _Plan] = {}

    def entries(self, positions: Numbers, start: int, stop: int, key: int) -> Numbers:
        """Return the entries at positions of a shuffled range of the data.

        Args:
            positions: from ``start`` to less than ``stop``, int64 ``[N]``.
            start: start of the range in the fixed order.
            stop: end of the range in the fixed order, exclusive.
            key: 64-bit key; another key gives another order.

        Returns:
            int64 ``[N]``; all positions of all ranges together give every entry once.
        """
        plan = self._plans.get((start, stop, key))
        if plan is None:
            plan = self._plan(start, stop, key)
            # A new dictionary, because other threads may be reading the old one.
            self._plans = {**dict(list(self._plans.items())[1 - _KEPT_PLANS :]), (start, stop, key): plan}
        places = positions - start
        windows = np.searchsorted(plan.window_starts, places, side="right") - 1
        for window in np.unique(windows).tolist():
            begin, end = plan.window_starts[window : window + 2].tolist()
            chosen = windows == window
            places[chosen] = begin + permute(places[chosen] - begin, end - begin, mixed_key(key, _ENTRY_ORDER, window))
        pieces = np.searchsorted(plan.piece_starts, places, side="right") - 1
        return plan.first_entries[pieces] + places - plan.piece_starts[pieces]

    def _plan(self, start: int, stop: int, key: int) -> _Plan:
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right").tolist()
        ends = self._ends[first : last + 1]
        starts = ends - self._sizes[first : last + 1]
        begins = np.maximum(starts, start)
        sizes = np.minimum(ends, stop) - begins
        order = permute(np.arange(len(sizes)), len(sizes), mixed_key(key, _PIECE_ORDER))
        first_entries = self._first_entries[first : last + 1] + begins - starts
        size_bytes = self._size_bytes[first : last + 1]
        return _Plan(
            first_entries[order],
            starts_of(sizes[order]),
            self._windows(sizes[order].tolist(), size_bytes[order].tolist()),
        )

    def _windows(self, sizes: list[int], size_bytes: list[int]) -> Numbers:
        """Return the starts of windows, and the end of the last one, in entries."""
        starts = [0]
        total = window = window_bytes = 0
        for size, taken in zip(sizes, size_bytes, strict=True):
            if window and (window >= self._min_entries or window_bytes + taken > self._max_bytes):
                starts.append(total)
                window = window_bytes = 0
            total += size
            window += size
            window_bytes += taken
        return np.array([*starts, total], np.int64)
