"""The options that determine the order of a reader; shards and epochs are computed as in DALI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError
from dalify.base.wording import counted


@overload
def window_bounds(size: int, window: int, count: int) -> tuple[int, int]: ...
@overload
def window_bounds(size: int, window: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def window_bounds(size: int, window: Any, count: int) -> tuple[Any, Any]:
    """Return start and stop of one of ``count`` windows of ``range(size)``; for an array of windows, arrays."""
    return size * window // count, size * (window + 1) // count


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """Options that determine the order of a reader's entries.

    Attributes:
        size: number of entries, at least ``num_shards``.
        shard_id: this reader's shard in the first epoch, 0 to ``num_shards - 1``.
        num_shards: number of readers that share the data. Shard ``i`` is the entries ``[size*i//n, size*(i+1)//n)``.
        random_shuffle: return the entries of the shard in random order, different in each epoch. The data is first
            put into a fixed random order that depends only on the number of entries, so that shards of sorted data are
            mixed and readers with different seeds still share the data without overlap.
        initial_fill: size of DALI's shuffle buffer. Unused if the shuffle is exact; for entries in blocks
            (row groups), the minimum number that is shuffled together.
        shuffle_after_epoch: shuffle all data before each epoch, identically on all shards, and return the shard's
            window of it. Excludes ``random_shuffle`` and ``stick_to_shard``. With ``by_file``, shuffle the files and
            keep the order of entries in each file, so that files are read sequentially; ``random_shuffle`` then
            shuffles the entries of the shard.
        stick_to_shard: read the same shard in every epoch; if False, each epoch reads the next shard.
        pad_last_batch: fill the last batch of an epoch by repeating its last sample, and add a whole batch if other
            shards have one more; if False, the next epoch starts within the batch.
        seed: seed of ``random_shuffle``; may differ between shards.
        shuffle_after_epoch_seed: seed of ``shuffle_after_epoch``; must be equal on all shards.
        by_file: the entries are in container files with many entries each.

    Raises:
        ArgumentValueError: a value is out of range, or two options cannot be used together.
    """

    size: int
    shard_id: int = 0
    num_shards: int = 1
    random_shuffle: bool = False
    initial_fill: int = 1024
    shuffle_after_epoch: bool = False
    stick_to_shard: bool = False
    pad_last_batch: bool = False
    seed: int = 0
    shuffle_after_epoch_seed: int = 0
    by_file: bool = False

    def __post_init__(self) -> None:
        if self.num_shards < 1:
            raise ArgumentValueError(f"num_shards must be at least 1; got {self.num_shards}.")
        if not 0 <= self.shard_id < self.num_shards:
            raise ArgumentValueError(
                f"shard_id must be in [0, {self.num_shards - 1}] (num_shards - 1); got {self.shard_id}."
            )
        if self.size < 1:
            raise ArgumentValueError("the reader found no samples.", hint="Check its paths and filters.")
        if self.size < self.num_shards:
            raise ArgumentValueError(
                f"{counted(self.size, 'sample')} cannot be divided into {self.num_shards} shards: one would be empty.",
                hint=f"Use num_shards of at most {self.size}, or more data.",
            )
        if self.random_shuffle and self.initial_fill < 1:
            raise ArgumentValueError(f"initial_fill must be at least 1; got {self.initial_fill}.")
        if self.shuffle_after_epoch and self.random_shuffle and not self.by_file:
            raise ArgumentValueError(
                "shuffle_after_epoch and random_shuffle cannot be used together.",
                hint="shuffle_after_epoch shuffles across shards, random_shuffle within each shard: use only one.",
            )
        if self.shuffle_after_epoch and self.stick_to_shard:
            raise ArgumentValueError(
                "shuffle_after_epoch and stick_to_shard cannot be used together.",
                hint="shuffle_after_epoch changes the contents of each shard: omit stick_to_shard.",
            )

    @property
    def keeps_shard(self) -> bool:
        """Whether every epoch reads the window of the same shard."""
        return self.stick_to_shard or self.shuffle_after_epoch

    @property
    def largest_shard(self) -> int:
        """Number of entries of the largest shard."""
        return -(-self.size // self.num_shards)

    @property
    def epoch_size_padded(self) -> int:
        """Total number of samples of all shards, including padding to shards of equal size, but not to full batches."""
        return self.largest_shard * self.num_shards if self.pad_last_batch else self.size

    def shard(self, epoch: int, shard_id: int | None = None) -> int:
        """Return the index of the window that a shard, by default this one, reads in an epoch."""
        first = self.shard_id if shard_id is None else shard_id
        return first if self.keeps_shard else (first + epoch) % self.num_shards

    def window(self, epoch: int) -> tuple[int, int]:
        """Return start and stop of this reader's window in an epoch, as positions in the order of that epoch."""
        return window_bounds(self.size, self.shard(epoch), self.num_shards)

    def meta(self) -> dict[str, int]:
        """Return the values of ``Pipeline.reader_meta``, under DALI's names."""
        return {
            "epoch_size": self.size,
            "epoch_size_padded": self.epoch_size_padded,
            "number_of_shards": self.num_shards,
            "shard_id": self.shard_id,
            "pad_last_batch": int(self.pad_last_batch),
            "stick_to_shard": int(self.keeps_shard),
        }
