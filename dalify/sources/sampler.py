"""Which entries of an indexable reader come next.

Alone because order, shards, padding and resuming are the same for every reader. The windows, the rotation of shards and
the padding are DALI's; the shuffling is better: an exact permutation by formula instead of a buffer of ``initial_fill``
samples, so that it needs no memory, no fill time, and resumes from two integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, CheckpointError
from dalify.sources.permutation import mixed_key, permute

__all__ = ["Sampler", "SamplerOptions"]

# Apart so that no two uses of one seed share an order.
_DATASET_ORDER, _WINDOW_ORDER, _EPOCH_ORDER, _REFILL_ORDER = 1, 2, 3, 4
# Shuffled entries are computed this many at a time: numpy's cost per call is then small for any batch size.
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """What decides the order in which a reader gives its entries.

    Attributes:
        size: number of entries, at least ``num_shards``.
        shard_id: this reader's shard in the first epoch, 0 to ``num_shards - 1``.
        num_shards: number of readers that share the data. Shard ``i`` is the entries ``[size*i//n, size*(i+1)//n)``.
        random_shuffle: give the entries of the shard in a random order, another one each epoch. The data are first
            brought into one random order that depends on nothing but their number, so that shards of sorted data are
            mixed and readers with different seeds still share the data without overlap.
        initial_fill: size of DALI's shuffle buffer. Checked and otherwise unused: the shuffle is exact.
        shuffle_after_epoch: shuffle all data before each epoch, in the same way on all shards, and give the shard's
            window of them. Excludes ``random_shuffle`` and ``stick_to_shard``.
        stick_to_shard: read the same shard in every epoch; otherwise the next shard follows in the next epoch.
        pad_last_batch: fill the last batch of an epoch with its last sample, also a whole batch where other shards have
            one more; otherwise the next epoch begins inside the batch.
        seed: seed of ``random_shuffle``; may differ between shards.
        shuffle_after_epoch_seed: seed of ``shuffle_after_epoch``; must be equal on all shards.

    Raises:
        ArgumentValueError: a value out of range, or two options that exclude each other.
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

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.num_shards < 1:
            raise ArgumentValueError(f"num_shards must be at least 1; got {self.num_shards}.")
        if not 0 <= self.shard_id < self.num_shards:
            raise ArgumentValueError(
                f"shard_id must be from 0 to num_shards - 1 = {self.num_shards - 1}; got {self.shard_id}."
            )
        if self.size < 1:
            raise ArgumentValueError("the reader found no samples.", hint="Check its paths and filters.")
        if self.size < self.num_shards:
            raise ArgumentValueError(
                f"{self.size} samples cannot be divided into {self.num_shards} shards: one would be empty.",
                hint=f"Use num_shards of at most {self.size}, or more data.",
            )
        if self.initial_fill < 1:
            raise ArgumentValueError(f"initial_fill must be at least 1; got {self.initial_fill}.")
        if self.shuffle_after_epoch and self.random_shuffle:
            raise ArgumentValueError(
                "shuffle_after_epoch and random_shuffle exclude each other.",
                hint="shuffle_after_epoch mixes all shards each epoch, random_shuffle each shard for itself: keep one.",
            )
        if self.shuffle_after_epoch and self.stick_to_shard:
            raise ArgumentValueError(
                "shuffle_after_epoch and stick_to_shard exclude each other.",
                hint="shuffle_after_epoch changes what is in each shard: leave stick_to_shard out.",
            )

    @property
    def keeps_shard(self) -> bool:
        """Whether every epoch reads the window of the same shard."""
        return self.stick_to_shard or self.shuffle_after_epoch

    @property
    def epoch_size(self) -> int:
        """Number of entries of all shards together."""
        return self.size

    @property
    def largest_shard(self) -> int:
        """Number of entries of the largest shard."""
        return -(-self.size // self.num_shards)

    @property
    def epoch_size_padded(self) -> int:
        """Number of samples of all shards together, with the padding that makes shards equal (not that of batches)."""
        return self.largest_shard * self.num_shards if self.pad_last_batch else self.size

    def window(self, epoch: int) -> tuple[int, int]:
        """Return start and stop of what this reader gives in an epoch, as positions in the order of that epoch."""
        shard = self.shard_id if self.keeps_shard else (self.shard_id + epoch) % self.num_shards
        return self.size * shard // self.num_shards, self.size * (shard + 1) // self.num_shards

    def batches_per_epoch(self, batch_size: int) -> int | None:
        """Return how many batches an epoch has on every shard, or None without padding: epochs begin inside batches."""
        return -(-self.largest_shard // batch_size) if self.pad_last_batch else None

    def meta(self) -> dict[str, int]:
        """Return what ``Pipeline.reader_meta`` tells, under DALI's names."""
        return {
            "epoch_size": self.epoch_size,
            "epoch_size_padded": self.epoch_size_padded,
            "number_of_shards": self.num_shards,
            "shard_id": self.shard_id,
            "pad_last_batch": int(self.pad_last_batch),
            "stick_to_shard": int(self.keeps_shard),
        }


class Sampler:
    """The endless stream of entry indices of one reader.

    Its state is the epoch and the number of samples already given in it; equal options and state give equal batches.

    Args:
        options: what decides the order.

    Attributes:
        epoch: number of the epoch that the next sample belongs to, or just ended.
        position: samples given in this epoch, padding included.
        padded_samples: how many samples at the end of the last batch repeat the one before them.
    """

    def __init__(self, options: SamplerOptions) -> None:
        self.options = options
        self.epoch = 0
        self.position = 0
        self.padded_samples = 0
        # The entries that stand at _block_start, _block_start + 1, … of the epoch _block_epoch.
        self._block = np.empty(0, np.int64)
        self._block_start = 0
        self._block_epoch = -1

    def next_batch(self, batch_size: int) -> NDArray[np.int64]:
        """Return the entry indices of the next batch, int64 ``[batch_size]``, and move on.

        Args:
            batch_size: number of samples, at least 1; may change from call to call.
        """
        options = self.options
        indices = np.empty(batch_size, np.int64)
        self.padded_samples = 0
        filled = 0
        while filled < batch_size:
            start, stop = options.window(self.epoch)
            if self.position < stop - start:
                entries = self._entries(self.position)[: batch_size - filled]
                count = len(entries)
                indices[filled : filled + count] = entries
            elif options.pad_last_batch and (filled or self.position < options.largest_shard):
                count = self.padded_samples = batch_size - filled
                indices[filled:] = self._entries(stop - start - 1)[0]
            else:
                self.epoch += 1
                self.position = 0
                continue
            self.position += count
            filled += count
        return indices

    def _entries(self, position: int) -> NDArray[np.int64]:
        """Return some entries of the current epoch, at least one, beginning with the given one."""
        first = position - position % _BLOCK
        if self._block_epoch != self.epoch or self._block_start != first:
            start, stop = self.options.window(self.epoch)
            positions = np.arange(start + first, min(start + first + _BLOCK, stop))
            self._block = self._shuffled(positions, start, stop, self.epoch)
            self._block_epoch, self._block_start = self.epoch, first
        return self._block[position - first :]

    def _shuffled(self, positions: NDArray[np.int64], start: int, stop: int, epoch: int) -> NDArray[np.int64]:
        options = self.options
        if options.shuffle_after_epoch:
            key = mixed_key(_EPOCH_ORDER, options.shuffle_after_epoch_seed, epoch)
            return permute(positions, options.size, key)
        if options.random_shuffle:
            key = mixed_key(_WINDOW_ORDER, options.seed, epoch, start)
            in_window = permute(positions - start, stop - start, key) + start
            return permute(in_window, options.size, mixed_key(_DATASET_ORDER, options.size))
        return positions

    def refill(self, epoch: int, *place: int) -> int:
        """Return the entry that takes the place of one that cannot be used: any of this epoch's shard.

        Args:
            epoch: of the batch.
            place: what tells one use from another; equal numbers give equal entries.
        """
        start, stop = self.options.window(epoch)
        chosen = start + mixed_key(_REFILL_ORDER, self.options.size, epoch, *place) % (stop - start)
        entry = self._shuffled(np.array([chosen]), start, stop, epoch)
        return int(entry[0])

    def start_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch, wherever the stream stands.

        Args:
            epoch: 0 for the first.

        Raises:
            ArgumentValueError: the number is negative.
        """
        if epoch < 0:
            raise ArgumentValueError(f"epoch must not be negative; got {epoch}.")
        self.epoch = epoch
        self.position = 0

    def state(self) -> dict[str, int]:
        """Return the state as JSON-ready integers."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "size": self.options.size,
            "num_shards": self.options.num_shards,
            "shard_id": self.options.shard_id,
        }

    def restore(self, state: dict[str, int]) -> None:
        """Continue where a sampler with equal options was when ``state()`` was taken.

        Raises:
            CheckpointError: not a sampler's state, or one of other data, of another number of shards, or of another
                shard where shards differ in size.
        """
        if set(state) != set(self.state()):
            raise CheckpointError(f"this is not the state of a reader: {sorted(state)}.")
        for name, text in (("size", "samples"), ("num_shards", "shards")):
            now = getattr(self.options, name)
            if state[name] != now:
                raise CheckpointError(
                    f"the checkpoint was made with {state[name]} {text}, the reader now has {now}: "
                    "its position has no meaning here.",
                    hint=f"Restore with the same {text}, or start this epoch anew.",
                )
        options = self.options
        if state["shard_id"] != options.shard_id and options.size % options.num_shards and not options.pad_last_batch:
            raise CheckpointError(
                f"the checkpoint was made by shard {state['shard_id']}, the reader is shard {options.shard_id}: "
                "shards of different sizes do not stand at the same place of an epoch.",
                hint="Save a checkpoint for every shard, or make them equal with pad_last_batch=True.",
            )
        if state["epoch"] < 0 or state["position"] < 0:
            raise CheckpointError(f"a reader cannot stand at {state}.")
        self.epoch = int(state["epoch"])
        self.position = int(state["position"])

    def __repr__(self) -> str:
        """Return where the stream stands."""
        options = self.options
        shard = f"shard {options.shard_id} of {options.num_shards}"
        return f"Sampler({options.size} samples, {shard}, epoch {self.epoch}, position {self.position})"
