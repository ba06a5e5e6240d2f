"""The number of batches of an epoch, and the number of samples of its last batch.

The numbers equal DALI's: if an epoch ends inside a batch, the other samples of the batch belong to the next epoch,
unless the reader pads or with ``fresh_epochs``.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import CheckpointError, IteratorArgumentError
from dalify.sources import window_bounds

__all__ = ["Epochs", "LastBatchPolicy", "OpenEpochs", "ReaderEpochs", "SizedEpochs"]


class LastBatchPolicy(Enum):
    """The handling of a partial last batch of an epoch.

    FILL: the batch is full; the reader repeats its last sample (``pad_last_batch=True``) or continues with the next
    epoch. DROP: the batch is omitted. PARTIAL: the batch ends with the last sample of the epoch.
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2


class Epochs(ABC):
    """Counts the batches of epochs; the defaults are for epochs of unknown length."""

    @property
    def batches(self) -> int | None:
        """Number of batches of the current epoch; None if it lasts until the data end."""
        return None

    @property
    def surplus(self) -> int:
        """Number of batches that are read and dropped at the end of the epoch."""
        return 0

    @property
    def samples(self) -> int:
        """Size of the current epoch as in DALI; -1 if unknown."""
        return -1

    @abstractmethod
    def kept(self, pipeline: int, batch: int) -> int:
        """Return the number of samples that are returned of a batch.

        Args:
            pipeline: index of the pipeline.
            batch: index of the batch in the epoch.
        """

    def advance(self) -> None:  # noqa: B027 -- nothing is counted
        """Start the next epoch; its data follow the data of this epoch."""

    def restart(self, epoch: int) -> None:  # noqa: B027 -- nothing is counted
        """Start an epoch at the first sample of its shard."""

    def state(self) -> dict[str, Any]:
        """Return the position and the options as JSON-ready data."""
        return {"counts": []}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue at a ``state()``; raises CheckpointError if the options differ."""
        _check_counts(state, self)

    def divide(self, state: dict[str, Any], delivered: int, left: Mapping[int, int]) -> None:
        """Continue in the middle of an epoch whose remaining samples were divided among another number of shards.

        Args:
            state: result of ``state()`` with the former number of shards.
            delivered: number of batches of the epoch that were returned.
            left: number of remaining samples of all shards, by epoch of the reader.
        """
        _check_counts(state, self)


class OpenEpochs(Epochs):
    """Epochs that last until the sources of the pipelines end."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def kept(self, pipeline: int, batch: int) -> int:
        """Return the batch size."""
        return self._batch_size


class SizedEpochs(Epochs):
    """Epochs with a fixed number of samples over all pipelines.

    Args:
        size: number of samples in an epoch, at least 1.
        batch_size: number of samples in a batch of one pipeline.
        pipelines: number of pipelines.
        policy: policy for the last batch.
        is_padded: True if the reader pads the last batch, so that the next epoch begins at its first sample.
    """

    def __init__(self, size: int, batch_size: int, pipelines: int, policy: LastBatchPolicy, is_padded: bool) -> None:
        self._size = size
        self._batch_size = batch_size
        self._step = pipelines * batch_size
        self._policy = policy
        self._fills_from_next_epoch = policy is LastBatchPolicy.FILL and not is_padded
        self._ahead = 0  # number of samples of this epoch that the previous one returned

    @property
    def batches(self) -> int:
        """Number of batches of the current epoch."""
        left = self._size - self._ahead
        return left // self._step if self._policy is LastBatchPolicy.DROP else -(-left // self._step)

    @property
    def samples(self) -> int:
        """Number of samples of every epoch."""
        return self._size

    @property
    def surplus(self) -> int:
        """1 if the policy is DROP and the last batch is partial, otherwise 0."""
        return int(self._policy is LastBatchPolicy.DROP and self._size % self._step > 0)

    def kept(self, pipeline: int, batch: int) -> int:
        """Return the number of samples that are returned of a batch; the pipelines' batches are consecutive."""
        if self._policy is not LastBatchPolicy.PARTIAL:
            return self._batch_size
        left = self._size - batch * self._step - pipeline * self._batch_size
        return min(self._batch_size, max(0, left))

    def advance(self) -> None:
        """Start the next epoch."""
        if self._fills_from_next_epoch:
            self._ahead = (self._ahead + self.batches * self._step) % self._size

    def restart(self, epoch: int) -> None:
        """Start an epoch at its first sample."""
        self._ahead = 0

    def state(self) -> dict[str, Any]:
        """Return the options and the number of samples read ahead."""
        counts = ["size", self._size, self._step, self._policy.name, self._fills_from_next_epoch]
        return {"counts": counts, "ahead": self._ahead}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue at a ``state()``."""
        _check_counts(state, self)
        self._ahead = int(state["ahead"])

    def divide(self, state: dict[str, Any], delivered: int, left: Mapping[int, int]) -> None:
        """Raise CheckpointError, because without a reader the division of the samples is unknown."""
        raise CheckpointError(
            "an epoch with size= cannot be resumed with another number of shards.",
            hint="Specify the reader instead: reader_name='Reader'.",
        )


class _Samples(NamedTuple):
    """The samples of an epoch, divided among any number of shards.

    Attributes:
        total: number of samples of all shards.
        rotation: number of windows by which the shards are rotated.
    """

    total: int
    rotation: int

    def size(self, shard: int, shards: int) -> int:
        """Return the number of samples of a shard."""
        start, stop = window_bounds(self.total, (shard + self.rotation) % shards, shards)
        return stop - start

    def sizes(self, shards: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the number of samples of each shard."""
        windows = (np.arange(shards, dtype=np.int64) + self.rotation) % shards
        start, stop = window_bounds(self.total, windows, shards)
        return stop - start


class ReaderEpochs(Epochs):
    """Epochs of a sharded reader: all pipelines, in this process and in others, have the same number of batches.

    Args:
        metas: result of ``Pipeline.reader_meta`` for the reader, per pipeline.
        batch_size: number of samples in a batch of one pipeline.
        policy: policy for the last batch.

    Attributes:
        size: number of samples of all shards.
        shards: number of shards.
        stick_to_shard: True if a pipeline reads the same shard in each epoch.
        is_padded: True if the reader fills the last batch.
        sizes: number of samples of each shard in the current epoch, int64 ``[shards]``.
        ahead: number of samples of each shard that the previous epoch returned, int64 ``[shards]``.

    Raises:
        IteratorArgumentError: the readers of the pipelines differ.
    """

    def __init__(self, metas: Sequence[Mapping[str, int]], batch_size: int, policy: LastBatchPolicy) -> None:
        for name in ("epoch_size", "number_of_shards", "pad_last_batch", "stick_to_shard"):
            found = sorted({meta[name] for meta in metas})
            if len(found) > 1:
                raise IteratorArgumentError(
                    f"the readers of the pipelines differ in {name}: {', '.join(map(str, found))}."
                )
        self.size = metas[0]["epoch_size"]
        self.shards = metas[0]["number_of_shards"]
        self.stick_to_shard = bool(metas[0]["stick_to_shard"])
        self._shard_ids = [meta["shard_id"] for meta in metas]
        self._batch_size = batch_size
        self._policy = policy
        self.is_padded = bool(metas[0]["pad_last_batch"])
        self._fills_from_next_epoch = policy is LastBatchPolicy.FILL and not self.is_padded
        # For an epoch resumed with another number of shards: batches returned before, remaining samples by epoch.
        self._batches_before = 0
        self._remaining: dict[int, _Samples] = {}
        self.restart(0)

    def _all_samples(self, epoch: int) -> _Samples:
        return _Samples(self.size, 0 if self.stick_to_shard else epoch % self.shards)

    @property
    def shard_ids(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The shard that each pipeline reads in the current epoch."""
        rotation = 0 if self.stick_to_shard else self._epoch
        return (np.array(self._shard_ids, np.int64) + rotation) % self.shards

    @property
    def batches(self) -> int:
        """Number of batches of the current epoch, equal for all shards."""
        if self._policy is LastBatchPolicy.DROP:
            return self._returned_batches + int(np.min(self.sizes)) // self._batch_size
        ahead = self.ahead if self._fills_from_next_epoch else 0
        return self._returned_batches + math.ceil(int(np.max(self.sizes - ahead)) / self._batch_size)

    @property
    def _returned_batches(self) -> int:
        """Number of batches of the current epoch that were returned before its remaining samples were divided again."""
        return self._batches_before if self._epoch == self._start and self._remaining else 0

    @property
    def surplus(self) -> int:
        """1 if the policy is DROP and the last batch of the smallest shard is partial, otherwise 0."""
        return int(self._policy is LastBatchPolicy.DROP and int(np.min(self.sizes)) % self._batch_size > 0)

    @property
    def samples(self) -> int:
        """Samples per pipeline: the smallest shard for DROP, the largest with padding, otherwise whole batches."""
        if self._policy is LastBatchPolicy.DROP:
            return self.size // self.shards
        return -(-self.size // self.shards) if self.is_padded else self.batches * self._batch_size

    def kept(self, pipeline: int, batch: int) -> int:
        """Return the number of samples of a batch that belong to the pipeline's shard."""
        if self._policy is not LastBatchPolicy.PARTIAL:
            return self._batch_size
        size = self._samples_of(self._epoch).size(self._shard_ids[pipeline], self.shards)
        left = size - (batch - self._returned_batches) * self._batch_size
        return min(self._batch_size, max(0, left))

    def advance(self) -> None:
        """Start the next epoch; its samples that filled the last batch are subtracted."""
        if self._fills_from_next_epoch:
            self.ahead = self.ahead + (self.batches - self._returned_batches) * self._batch_size - self.sizes
        if self._epoch in self._remaining:
            # Samples read ahead are counted per shard.
            self.sizes = self._samples_of(self._epoch + 1).sizes(self.shards)
        elif self._fills_from_next_epoch:
            if not self.stick_to_shard:
                self.sizes = np.roll(self.sizes, 1)
            if self.batches <= 0:
                # All samples of an epoch were read ahead, so it is skipped; DALI then starts counting from 0.
                self.ahead = np.zeros_like(self.sizes)
                self.sizes = np.roll(self.sizes, 1)
        self._epoch += 1

    def state(self) -> dict[str, Any]:
        """Return the options, the current epoch, and the epoch of the last restart."""
        flags = [int(self.stick_to_shard), int(self.is_padded)]
        counts = ["reader", self.size, self.shards, self._batch_size, self._policy.name, *flags]
        state: dict[str, Any] = {"counts": counts, "start": self._start, "epoch": self._epoch}
        if self._remaining:
            left = [[epoch, *samples] for epoch, samples in sorted(self._remaining.items())]
            state |= {"before": self._batches_before, "left": left}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue at a ``state()``. The sizes of shards are computed again, because there may be many shards."""
        _check_counts(state, self)
        self._continue_at(state)

    def _continue_at(self, state: Mapping[str, Any]) -> None:
        left = {epoch: _Samples(int(total), int(rotation)) for epoch, total, rotation in state.get("left", ())}
        self._begin(int(state["start"]), state.get("before", 0), left)
        while self._epoch < int(state["epoch"]):
            self.advance()

    def divide(self, state: dict[str, Any], delivered: int, left: Mapping[int, int]) -> None:
        """Continue in the middle of an epoch whose remaining samples were divided among another number of shards."""
        counts, now = list(state["counts"]), self.state()["counts"]
        if len(counts) == len(now):
            counts[2] = now[2]  # the number of shards
        _check_counts({"counts": counts}, self)
        before = copy.copy(self)
        before.shards = int(state["counts"][2])
        before._continue_at(state)
        epoch, first = before._epoch, min(left)
        # Without padding, the last batch of an epoch has samples of the next one, so the reader is in that epoch.
        is_over = first != epoch and delivered == before.batches
        shift = 0 if epoch in left else epoch + is_over - first
        remaining = {number + shift: self._all_samples(number)._replace(total=total) for number, total in left.items()}
        if is_over:
            remaining[epoch] = _Samples(0, 0)
        self._begin(epoch, delivered, remaining)

    def restart(self, epoch: int) -> None:
        """Start an epoch at the first sample of its shard."""
        self._begin(epoch, 0, {})

    def _begin(self, epoch: int, before: int, left: dict[int, _Samples]) -> None:
        self._epoch = self._start = epoch
        self._batches_before = before
        self._remaining = left
        self.sizes = self._sizes_of(epoch)
        self.ahead = np.zeros_like(self.sizes)

    def _sizes_of(self, epoch: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        left = self._remaining.get(epoch)
        if left is not None:
            return left.sizes(self.shards)
        sizes = _Samples(self.size, 0).sizes(self.shards)
        return sizes if self.stick_to_shard else np.roll(sizes, epoch)

    def _samples_of(self, epoch: int) -> _Samples:
        return self._remaining.get(epoch) or self._all_samples(epoch)


def _check_counts(state: Mapping[str, Any], epochs: Epochs) -> None:
    before, now = state["counts"], epochs.state()["counts"]
    if before != now:
        raise CheckpointError(
            f"the checkpoint belongs to an iterator that counts {_shown(before)}, but this iterator counts "
            f"{_shown(now)}.",
            hint="Restore with the same size, reader_name, last_batch_policy and number of pipelines.",
        )


def _shown(counts: Sequence[Any]) -> str:
    return " ".join(map(str, counts)) if counts else "until the data end"
