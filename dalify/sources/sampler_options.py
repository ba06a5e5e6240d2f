"""What decides the order of a reader: DALI's arguments, checked once, and its arithmetic of shards and epochs."""

from __future__ import annotations

from dataclasses import dataclass

from dalify.base.errors import ArgumentValueError

__all__ = ["SamplerOptions"]


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
        initial_fill: size of DALI's shuffle buffer. Unused where the shuffle is exact; of entries that come in blocks
            (row groups), the fewest that are shuffled together.
        shuffle_after_epoch: shuffle all data before each epoch, in the same way on all shards, and give the shard's
            window of them. Excludes ``random_shuffle`` and ``stick_to_shard``. Of containers (``by_file``): shuffle the
            files and leave the entries of each as they are, so that files are read from their beginning to their end;
            ``random_shuffle`` then shuffles what the shard has got.
        stick_to_shard: read the same shard in every epoch; otherwise the next shard follows in the next epoch.
        pad_last_batch: fill the last batch of an epoch with its last sample, also a whole batch where other shards have
            one more; otherwise the next epoch begins inside the batch.
        seed: seed of ``random_shuffle``; may differ between shards.
        shuffle_after_epoch_seed: seed of ``shuffle_after_epoch``; must be equal on all shards.
        by_file: entries lie in files, many in each.

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
    by_file: bool = False

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
        if self.shuffle_after_epoch and self.random_shuffle and not self.by_file:
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

    def shard(self, epoch: int, shard_id: int | None = None) -> int:
        """Return the number of the window that a shard, by default this one, reads in an epoch."""
        first = self.shard_id if shard_id is None else shard_id
        return first if self.keeps_shard else (first + epoch) % self.num_shards

    def window(self, epoch: int) -> tuple[int, int]:
        """Return start and stop of what this reader gives in an epoch, as positions in the order of that epoch."""
        shard = self.shard(epoch)
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
