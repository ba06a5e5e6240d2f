"""Shuffling where entries come in blocks, of which it costs as much to read one entry as all.

Alone because the exact shuffle of the sampler would read a whole row group for each row. Blocks are shuffled, and
within windows of a few blocks all entries: by formula, so that nothing but the epoch and a position has to be kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.data.blocks import Blocks
from dalify.sources.permutation import mixed_key, permute

__all__ = ["BlockOrder"]

Numbers = NDArray[np.int64]
_FIXED_ORDER, _PIECE_ORDER, _ENTRY_ORDER = 21, 22, 23
_KEPT_PLANS = 4  # of this epoch and, where shards were divided anew, of others


class _Plan(NamedTuple):
    """The order of one part of the data in one epoch: pieces of blocks, and windows of pieces."""

    first_entries: Numbers  # of each piece
    piece_ends: Numbers  # in the order of the plan
    window_ends: Numbers


class BlockOrder:
    """A random order in which few blocks are in use at once.

    The blocks stand in one fixed random order, so that shards of sorted data are mixed; a shard is a part of it, and at
    most two of its blocks belong to neighbours as well. In each epoch the shard's blocks come in another order, are
    gathered into windows, and all entries of a window are shuffled.

    Args:
        blocks: of the index.
        fewest_entries: of a window: blocks are added until it has so many or until the next one would take more memory
            than is allowed.
    """

    def __init__(self, blocks: Blocks, fewest_entries: int) -> None:
        count = len(blocks.entries)
        order = permute(np.arange(count), count, mixed_key(_FIXED_ORDER, int(blocks.entries.sum())))
        self._first_entries = (np.cumsum(blocks.entries) - blocks.entries)[order]
        self._sizes = blocks.entries[order]
        self._ends = np.cumsum(self._sizes)
        self._size_bytes = blocks.size_bytes[order]
        self._most_bytes = blocks.most_bytes
        self._fewest_entries = fewest_entries
        self._plans: dict[tuple[int, int, int], _Plan] = {}

    def entries(self, positions: Numbers, start: int, stop: int, key: int) -> Numbers:
        """Return the entries at places of a shuffled part of the data.

        Args:
            positions: from ``start`` to less than ``stop``, int64 ``[N]``.
            start: first place of the part in the fixed order.
            stop: place behind its last one.
            key: 64-bit key; another key is another order.

        Returns:
            int64 ``[N]``; for all positions of all parts, every entry once.
        """
        plan = self._plans.get((start, stop, key))
        if plan is None:
            plan = self._planned(start, stop, key)
            # A new dictionary: threads that ask for a replacement look at the old one meanwhile.
            self._plans = {**dict(list(self._plans.items())[1 - _KEPT_PLANS :]), (start, stop, key): plan}
        places = positions - start
        windows = np.searchsorted(plan.window_ends, places, side="right")
        for window in np.unique(windows).tolist():
            begin = int(plan.window_ends[window - 1]) if window else 0
            chosen = windows == window
            size = int(plan.window_ends[window]) - begin
            places[chosen] = begin + permute(places[chosen] - begin, size, mixed_key(key, _ENTRY_ORDER, window))
        pieces = np.searchsorted(plan.piece_ends, places, side="right")
        piece_starts = np.concatenate([np.zeros(1, np.int64), plan.piece_ends[:-1]])
        return plan.first_entries[pieces] + places - piece_starts[pieces]

    def _planned(self, start: int, stop: int, key: int) -> _Plan:
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
            np.cumsum(sizes[order]),
            self._windows(sizes[order].tolist(), size_bytes[order].tolist()),
        )

    def _windows(self, sizes: list[int], size_bytes: list[int]) -> Numbers:
        """Return where windows end, in entries."""
        ends: list[int] = []
        total = held = held_bytes = 0
        for size, taken in zip(sizes, size_bytes, strict=True):
            if held and (held >= self._fewest_entries or held_bytes + taken > self._most_bytes):
                ends.append(total)
                held = held_bytes = 0
            total += size
            held += size
            held_bytes += taken
        return np.array([*ends, total], np.int64)
