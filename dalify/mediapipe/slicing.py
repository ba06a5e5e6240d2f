"""Selects the items of a dataset for each device and epoch, and their order.

Shared by all readers. The dataset is divided into slices once, after one shuffle that is the same on all devices;
afterwards each device shuffles within its slice, unless the slices are divided again in every epoch. All slices have
the same number of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.registry import Parameters

Indices = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class SliceOptions(Parameters):
    """The order of a reader's items, and the slice of them that a device reads.

    Attributes:
        shuffle: random order, different in each epoch.
        num_slices: number of devices that share the dataset.
        slice_index: index of this device.
        drop_remainder: drop the last batch if it is incomplete.
        pad_remainder: pad the last batch with the last item; otherwise with random items.
        max_file: accepted but ignored: there are no buffers of fixed size.
    """

    shuffle: bool = True
    num_slices: int = 1
    slice_index: int = 0
    drop_remainder: bool = False
    pad_remainder: bool = False
    max_file: str | None = None


class SlicedOrder:
    """The order of one slice.

    Args:
        count: number of items of the dataset.
        batch_size: samples per batch.
        options: the options of the reader.
        seed: seed of the order; negative for no seed, as with all operators.
        pipe_seed: used if `seed` is None; with several slices, only for the order within this one, so pipes may differ.
        shuffle_across: shuffle all items and divide the slices again in each epoch.

    Attributes:
        batches: number of batches of an epoch.
        seed: seed shared by all devices; None for a random one.

    Raises:
        ReaderError: there are no items, or fewer than a batch.
        ArgumentValueError: the slices are invalid.
    """

    def __init__(
        self,
        count: int,
        batch_size: int,
        options: SliceOptions,
        *,
        seed: int | None,
        pipe_seed: int | None,
        shuffle_across: bool = False,
    ) -> None:
        num_slices, slice_index = options.num_slices, options.slice_index
        if num_slices < 1:
            raise ArgumentValueError(f"num_slices must be at least 1; got {num_slices}.")
        if not 0 <= slice_index < num_slices:
            raise ArgumentValueError(
                f"slice_index must be in [0, {num_slices - 1}] (num_slices - 1); got {slice_index}."
            )
        if not count:
            raise ReaderError("there is nothing to read: the dataset has no items.")
        seed = None if seed is not None and seed < 0 else seed
        own = pipe_seed if seed is None else seed
        self.seed = own
        if num_slices > 1:  # devices must agree on the division of the dataset
            self.seed = 0 if seed is None else seed
            own = self.seed if own is None else own
        self._common = np.random.default_rng(self.seed)
        order = self._common.permutation(count) if options.shuffle else np.arange(count)
        self._count = count
        self._part = slice(slice_index, None, num_slices)
        self._slice = order[self._part]
        # From here on, each slice uses its own random numbers.
        self._random = np.random.default_rng([own, slice_index]) if own is not None else self._common
        self._shuffle = options.shuffle
        self._shuffles_across = options.shuffle and shuffle_across
        self._pads_with_last = options.pad_remainder
        share = count // num_slices if options.drop_remainder else -(-count // num_slices)
        self.batches = share // batch_size if options.drop_remainder else -(-share // batch_size)
        if not self.batches:
            raise ReaderError(
                f"a slice has {share} items, fewer than a batch of {batch_size}, and drop_remainder is set.",
                hint="Use drop_remainder=False, or a smaller batch_size.",
            )
        self.batch_size = batch_size

    def epoch(self) -> tuple[Indices, int]:
        """Return the items of the next epoch, padded to whole batches, and how many of them are not padding."""
        if self._shuffles_across:
            items = self._common.permutation(self._count)[self._part]
        else:
            items = self._random.permutation(self._slice) if self._shuffle else self._slice
        total = self.batches * self.batch_size
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
    """Batches of items that are read by index.

    Args:
        order: the items, their order and the batch size.
        take: returns the batch for item indices and the number of items that are not padding.
    """

    def __init__(self, order: SlicedOrder, take: Callable[[Indices, int], tuple[Any, ...]]) -> None:
        self._order = order
        self._take = take
        self._items: Indices = np.empty(0, np.int64)
        self._valid_count = 0
        self._position = 0

    def start_epoch(self) -> None:
        """Start the next epoch."""
        self._items, self._valid_count = self._order.epoch()
        self._position = 0

    def next_batch(self) -> tuple[tuple[Any, ...], int]:
        """Return the next batch, and the number of its samples that are not padding.

        Raises:
            StopIteration: the epoch has ended.
        """
        if self._position >= len(self._items):
            raise StopIteration
        first = self._position
        self._position += self._order.batch_size
        valid = min(max(self._valid_count - first, 0), self._order.batch_size)
        return self._take(self._items[first : self._position], valid), valid

    def __len__(self) -> int:
        return self._order.batches
