"""Which items of a data set a card sees in an epoch, and in which order.

Alone because all readers share the rule. The data set is cut into slices once, after one shuffle that is the same on
all cards; afterwards each card shuffles within its slice, unless the slices are to be cut anew in every epoch. All
slices have equally many batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ReaderError

__all__ = ["IndexedReader", "Indices", "SlicedOrder"]

Indices = np.ndarray[Any, np.dtype[np.int64]]


class SlicedOrder:
    """The order of one slice.

    Args:
        count: items of the data set.
        batch_size: samples of a batch.
        shuffle: whether orders are random.
        seed: of the orders; negative ones are none, as with all operators.
        pipe_seed: where `seed` is None; of several slices, for the order within this one: each pipe may have its own.
        num_slices: number of slices.
        slice_index: which slice this is.
        drop_remainder: leave out what fills no batch; otherwise the last batch is filled up.
        pad_remainder: fill with the last item of the slice; otherwise with random items of the data set.
        shuffle_across: shuffle everything and cut the slices anew in each epoch.

    Attributes:
        seed: of what is the same on all cards; None for a random one.

    Raises:
        ReaderError: there are no items, or no whole batch of them.
        ArgumentValueError: slices that cannot be.
    """

    def __init__(
        self,
        count: int,
        batch_size: int,
        *,
        shuffle: bool,
        seed: int | None,
        pipe_seed: int | None,
        num_slices: int,
        slice_index: int,
        drop_remainder: bool,
        pad_remainder: bool,
        shuffle_across: bool = False,
    ) -> None:
        if num_slices < 1:
            raise ArgumentValueError(f"num_slices must be at least 1; got {num_slices}.")
        if not 0 <= slice_index < num_slices:
            raise ArgumentValueError(
                f"slice_index must be from 0 to {num_slices - 1} (num_slices - 1); got {slice_index}."
            )
        if not count:
            raise ReaderError("there is nothing to read: the data set has no items.")
        seed = None if seed is not None and seed < 0 else seed
        own = pipe_seed if seed is None else seed
        self.seed = own
        if num_slices > 1:  # cards have to agree how the data set is cut
            self.seed = 0 if seed is None else seed
            own = self.seed if own is None else own
        self._common = np.random.default_rng(self.seed)
        order = self._common.permutation(count) if shuffle else np.arange(count)
        self._count = count
        self._part = slice(slice_index, None, num_slices)
        self._slice = order[self._part]
        # The slices go on with random numbers of their own.
        self._random = np.random.default_rng([own, slice_index]) if own is not None else self._common
        self._shuffle = shuffle
        self._shuffles_across = shuffle and shuffle_across
        self._pads_with_last = pad_remainder
        share = count // num_slices if drop_remainder else -(-count // num_slices)
        self.batches = share // batch_size if drop_remainder else -(-share // batch_size)
        if not self.batches:
            raise ReaderError(
                f"a slice has {share} items, which is less than a batch of {batch_size}, and drop_remainder is set.",
                hint="Use drop_remainder=False, or a smaller batch_size.",
            )
        self._batch_size = batch_size

    def epoch(self) -> tuple[Indices, int]:
        """Return the items of the next epoch, whole batches of them, and how many stand there in their own right."""
        if self._shuffles_across:
            items = self._common.permutation(self._count)[self._part]
        else:
            items = self._random.permutation(self._slice) if self._shuffle else self._slice
        total = self.batches * self._batch_size
        missing = total - len(items)
        if missing <= 0:
            return items[:total], total
        if self._pads_with_last:
            last = items[-1] if len(items) else self._count - 1
            fill = np.full(missing, last)
        else:
            fill = self._random.integers(self._count, size=missing)
        return np.concatenate([items, fill]).astype(np.int64), len(items)


class IndexedReader:
    """Batches of items that are found by their numbers.

    Args:
        order: which items, in which order.
        batch_size: samples of a batch.
        take: makes the batch of the items with the given numbers, of which so many are real.
    """

    def __init__(self, order: SlicedOrder, batch_size: int, take: Callable[[Indices, int], tuple[Any, ...]]) -> None:
        self._order = order
        self._batch_size = batch_size
        self._take = take
        self._items: Indices = np.empty(0, np.int64)
        self._real = 0
        self._place = 0

    def start_epoch(self) -> None:
        """Begin the next epoch."""
        self._items, self._real = self._order.epoch()
        self._place = 0

    def next_batch(self) -> tuple[tuple[Any, ...], int]:
        """Return the next batch, and how many of its samples are real.

        Raises:
            StopIteration: the epoch is at its end.
        """
        if self._place >= len(self._items):
            raise StopIteration
        first = self._place
        self._place += self._batch_size
        valid = min(max(self._real - first, 0), self._batch_size)
        return self._take(self._items[first : self._place], valid), valid

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self._order.batches
