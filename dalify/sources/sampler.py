"""Determines the order of the entries of indexable readers.

Order, shards, padding and resuming are the same for every reader. Windows, rotation of shards and padding are as in
DALI. The shuffle is a computed exact permutation instead of DALI's buffer of ``initial_fill`` samples, so it needs no
memory and resumes from two integers.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, CheckpointError, DalifyError
from dalify.base.narrow import is_integer
from dalify.base.wording import counted
from dalify.data.entries import Blocks
from dalify.sources.block_order import BlockOrder
from dalify.sources.permutation import mixed_key, permute
from dalify.sources.remainder import MAX_SHARDS, Remainder, Split
from dalify.sources.sampler_options import SamplerOptions, window_bounds
from dalify.sources.selection import BoundSampler

# Distinct, so that two uses of the same seed have different orders.
_DATASET_ORDER, _WINDOW_ORDER, _EPOCH_ORDER, _REPLACEMENT_ORDER = 1, 2, 3, 4
# Number of entries computed at a time, so that NumPy's overhead is small for any batch size.
_BLOCK = 4096
_MAX_NUMBER = 1 << 53  # of epochs and samples in a saved state


class Sampler:
    """The entry indices of one reader, for any number of epochs.

    Its state is the epoch and the number of samples returned in it; equal options and state give equal batches.

    Args:
        options: options that determine the order.
        selection: the entries of an epoch; None for all entries, each once.
        blocks: blocks of entries, for formats where reading one entry costs as much as reading its block; None if each
            entry can be read separately.
        file_sizes: number of entries of each container file; None unless ``options.by_file``.

    Attributes:
        epoch: number of the epoch of the next sample, or of the epoch that just ended.
        position: number of samples returned in this epoch, including padding.
        padded_samples: number of padding samples at the end of the last batch.
    """

    def __init__(
        self,
        options: SamplerOptions,
        selection: BoundSampler | None = None,
        blocks: Blocks | None = None,
        file_sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self.options = options
        self.epoch = 0
        self.position = 0
        self.padded_samples = 0
        self._selection = selection
        self._block_order = None if blocks is None else BlockOrder(blocks, options.initial_fill)
        self._file_sizes = file_sizes
        # Epochs that other shardings have partially read.
        self._remainders: dict[int, Remainder] = {}
        # The entries at positions _block_start, _block_start + 1, … of the epoch _block_epoch.
        self._block = np.empty(0, np.int64)
        self._block_start = 0
        self._block_epoch = -1

    def next_batch(self, batch_size: int) -> NDArray[np.int64]:
        """Return the entry indices of the next batch, int64 ``[batch_size]``, and advance.

        Args:
            batch_size: number of samples, at least 1; may change from call to call.
        """
        self.padded_samples = 0
        start = self.position - self._block_start
        stop = start + batch_size
        if self._block_epoch == self.epoch and start >= 0 and stop <= len(self._block):  # nearly always
            self.position += batch_size
            return self._block[start:stop].copy()
        pads = self.options.pad_last_batch
        indices = np.empty(batch_size, np.int64)
        filled = 0
        while filled < batch_size:
            start, stop, largest = self._window()
            if self.position < stop - start:
                entries = self._entries(self.position)[: batch_size - filled]
                count = len(entries)
                indices[filled : filled + count] = entries
            elif pads and largest and (filled or self.position < largest):
                count = self.padded_samples = batch_size - filled
                indices[filled:] = self._last_entry()
            else:
                self._begin(self.epoch + 1)
                continue
            self.position += count
            filled += count
        return indices

    def _begin(self, epoch: int) -> None:
        self._remainders.pop(self.epoch, None)
        self.epoch = epoch
        self.position = 0

    def _window(self) -> tuple[int, int, int]:
        """Return start and stop of this reader's window of the epoch, and the size of the largest window."""
        remainder = self._remainders.get(self.epoch)
        if remainder is None:
            return *self.options.window(self.epoch), self.options.largest_shard
        count, shard = self.options.num_shards, self.options.shard(self.epoch)
        return *window_bounds(len(remainder), shard, count), -(-len(remainder) // count)

    def _entries(self, position: int) -> NDArray[np.int64]:
        """Return at least one entry of the current epoch, starting at a position."""
        first = position - position % _BLOCK
        if self._block_epoch != self.epoch or self._block_start != first:
            start, stop, _ = self._window()
            self._block = self._entries_at(np.arange(start + first, min(start + first + _BLOCK, stop)))
            self._block_epoch, self._block_start = self.epoch, first
        return self._block[position - first :]

    def _last_entry(self) -> int:
        """Return the entry for padding the last batch: the last one of this shard, or of its neighbor if empty."""
        start, stop, _ = self._window()
        if stop > start:
            return int(self._entries(stop - start - 1)[0])
        return int(self._entries_at(np.array([max(stop - 1, 0)]))[0])

    def _entries_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the entries at positions of the current epoch, or of its remainder."""
        remainder = self._remainders.get(self.epoch)
        if remainder is None:
            start, stop = self.options.window(self.epoch)
            return self._entries_in_window(positions, start, stop, self.epoch, self.options.seed)
        in_epoch, windows = remainder.locate(positions)
        entries = np.empty(len(positions), np.int64)
        for window in np.unique(windows).tolist():
            chosen = windows == window
            seed = remainder.splits[0].seed(window)
            bounds = remainder.window_bounds(window)
            entries[chosen] = self._entries_in_window(in_epoch[chosen], *bounds, self.epoch, seed)
        return entries

    def _entries_in_window(
        self, positions: NDArray[np.int64], start: int, stop: int, epoch: int, seed: int
    ) -> NDArray[np.int64]:
        """Return the entries at positions of an epoch, all in the window from ``start`` to ``stop``."""
        options = self.options
        if options.shuffle_after_epoch:
            key = mixed_key(_EPOCH_ORDER, options.shuffle_after_epoch_seed, epoch)
            if self._block_order is not None:
                return self._block_order.entries(positions, 0, options.size, key)
            if self._file_sizes is not None:
                if options.random_shuffle:
                    own = mixed_key(_WINDOW_ORDER, seed, epoch, start)
                    positions = permute(positions - start, stop - start, own) + start
                return _by_file(positions, self._file_sizes, key)
            positions = permute(positions, options.size, key)
        elif options.random_shuffle:
            key = mixed_key(_WINDOW_ORDER, seed, epoch, start)
            if self._block_order is not None:
                return self._block_order.entries(positions, start, stop, key)
            in_window = permute(positions - start, stop - start, key) + start
            positions = permute(in_window, options.size, mixed_key(_DATASET_ORDER, options.size))
        return positions if self._selection is None else self._selection.entries(epoch, positions)

    def replacement(self, epoch: int, *position: int) -> int:
        """Return a replacement for an unusable entry: any entry of the shard in this epoch.

        Args:
            epoch: epoch of the batch.
            position: numbers that identify the replaced sample; equal numbers give equal entries.
        """
        start, stop = self.options.window(epoch)
        chosen = start + mixed_key(_REPLACEMENT_ORDER, self.options.size, epoch, *position) % (stop - start)
        return int(self._entries_in_window(np.array([chosen]), start, stop, epoch, self.options.seed)[0])

    def epoch_of(self, state: Mapping[str, Any], position: int) -> int:
        """Return the epoch of the sample at a position of the batch that follows a state."""
        replay = copy.copy(self)
        replay.restore(state)
        replay.next_batch(position + 1)
        return replay.epoch

    def start_epoch(self, epoch: int) -> None:
        """Move to the start of an epoch.

        Args:
            epoch: number of the epoch, from 0.

        Raises:
            ArgumentValueError: ``epoch`` is negative or not an integer.
        """
        if not is_integer(epoch) or epoch < 0:
            raise ArgumentValueError(f"epoch must be an integer, at least 0; got {epoch!r}.")
        self._move_to(epoch, 0, {})

    def left(self) -> dict[int, int]:
        """Return the number of unread samples of all shards, by epoch, for epochs started with other shards."""
        return {epoch: len(remainder) for epoch, remainder in self._remainders.items()}

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-ready data."""
        state: dict[str, Any] = {
            "epoch": self.epoch,
            "position": self.position,
            "size": self.options.size,
            "num_shards": self.options.num_shards,
            "shard_id": self.options.shard_id,
            "seed": self.options.seed,
        }
        if self._remainders:
            state["left"] = {
                str(epoch): [split.to_json() for split in remainder.splits]
                for epoch, remainder in self._remainders.items()
            }
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state()`` of a sampler with equal options.

        If the number of shards differs, the unread samples of the epoch are divided among the new shards.

        Args:
            state: state of a sampler, or ``{"shards": [...]}`` with the states of all shards after the same batch.

        Raises:
            CheckpointError: the state is not a state of a sampler, is for other data, or shards are missing.
        """
        try:
            self._restore(state)
        except DalifyError:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise CheckpointError(f"the state of a reader in the checkpoint is damaged: {error}.") from None

    def _restore(self, state: Mapping[str, Any]) -> None:
        states = list(state["shards"]) if "shards" in state else [state]
        for item in states:
            self._check_state(item)
        options = self.options
        if states[0]["num_shards"] != options.num_shards:
            self._divide(states)
            return
        own = [item for item in states if item["shard_id"] == options.shard_id] or states
        found = own[0]
        if found["shard_id"] != options.shard_id and options.size % options.num_shards and not options.pad_last_batch:
            raise CheckpointError(
                f"the checkpoint was made by shard {found['shard_id']}, but the reader is shard {options.shard_id}: "
                "shards of different sizes are not at the same position of an epoch.",
                hint="Save a checkpoint for every shard, or make the shards equal with pad_last_batch=True.",
            )
        self._move_to(found["epoch"], found["position"], _remainders_of(found, options.size))

    def _move_to(self, epoch: int, position: int, remainders: dict[int, Remainder]) -> None:
        self.epoch = int(epoch)
        self.position = int(position)
        self._remainders = remainders
        self._block_epoch = -1

    def _check_state(self, state: Mapping[str, Any]) -> None:
        if set(state) - {"left"} != set(self.state()) - {"left"}:
            raise CheckpointError(f"this is not the state of a reader: {sorted(state)}.")
        if state["size"] != self.options.size:
            raise CheckpointError(
                f"the checkpoint was made with {counted(state['size'], 'sample')}, but the reader now has "
                f"{self.options.size}, so its position cannot be restored.",
                hint="Restore with the same data, or restart this epoch.",
            )
        numbers = [state[name] for name in ("epoch", "position", "shard_id")]
        are_numbers = all(type(number) is int and 0 <= number < _MAX_NUMBER for number in numbers)
        shards = state["num_shards"]
        if (
            not are_numbers
            or type(shards) is not int
            or not 1 <= shards <= MAX_SHARDS
            or type(state["seed"]) is not int
        ):
            raise CheckpointError(f"invalid position of a reader: {dict(state)}.")

    def _divide(self, states: list[Mapping[str, Any]]) -> None:
        """Divide the unread samples of an epoch that was started with another number of shards."""
        count = states[0]["num_shards"]
        if len(states) == 1 and count > 1:
            self._divide_from_one(states[0])
            return
        by_shard = {item["shard_id"]: item for item in states if item["num_shards"] == count}
        if len(states) != count or len(by_shard) != count:
            missing = sorted(set(range(count)) - set(by_shard))
            raise CheckpointError(
                f"the checkpoints are of the shards {sorted(item['shard_id'] for item in states)} of {count}"
                f"{f'; {missing} are missing' if missing else ''}.",
                hint="To resume with another number of shards, pass the states of all shards, each once.",
            )
        epochs = {item["epoch"] for item in states}
        first = min(epochs)
        # A shard that has started the next epoch has deleted the remainder of this one.
        left = next(item for item in states if item["epoch"] == first).get("left", {})
        if max(epochs) - first > 1 or any(not item.get("left", {}).items() <= left.items() for item in states):
            raise CheckpointError(
                f"the checkpoints of the shards are not from the same batch: they are in epochs {sorted(epochs)}.",
                hint="Save the states of all shards after the same batch.",
            )
        remainders = _remainders_of({"left": left}, self.options.size)
        for epoch in sorted(epochs):  # some shards may have started the next one already
            old = replace(self.options, num_shards=count, shard_id=0)
            by_window = {old.shard(epoch, shard): item for shard, item in by_shard.items()}
            positions = tuple(_read_in(by_window[window], epoch) for window in range(count))
            seeds = tuple(by_window[window]["seed"] for window in range(count))
            before = remainders[epoch].splits if epoch in remainders else ()
            remainders[epoch] = Remainder(self.options.size, [*before, Split.of(positions, seeds)])
        self._move_to(first, 0, remainders)

    def _divide_from_one(self, state: Mapping[str, Any]) -> None:
        """Like ``_divide``, with the state of one shard; without a shuffle, the others have the same position."""
        if self.options.random_shuffle:
            raise CheckpointError(
                f"the checkpoint was made with {state['num_shards']} shards, but the reader now has "
                f"{self.options.num_shards}; the entries read by the other shards depend on their seeds.",
                hint="Pass the states of all shards: pipe.load_state_dict([state_of_shard_0, state_of_shard_1, ...]).",
            )
        epoch = state["epoch"]
        remainders = _remainders_of(state, self.options.size)
        before = remainders[epoch].splits if epoch in remainders else ()
        split = Split(state["num_shards"], state["position"], state["seed"])
        remainders[epoch] = Remainder(self.options.size, [*before, split])
        self._move_to(epoch, 0, remainders)

    def __repr__(self) -> str:
        options = self.options
        shard = f"shard {options.shard_id} of {options.num_shards}"
        return f"Sampler({options.size} samples, {shard}, epoch {self.epoch}, position {self.position})"


def _read_in(state: Mapping[str, Any], epoch: int) -> int:
    """Return the number of samples that a shard has read in an epoch; all of them if it is in a later epoch."""
    if state["epoch"] == epoch:
        return state["position"]
    return state["size"] if state["epoch"] > epoch else 0


def _remainders_of(state: Mapping[str, Any], size: int) -> dict[int, Remainder]:
    return {
        int(epoch): Remainder(size, [Split.from_json(item) for item in splits])
        for epoch, splits in state.get("left", {}).items()
    }


def _by_file(positions: NDArray[np.int64], sizes: NDArray[np.int64], key: int) -> NDArray[np.int64]:
    """Return the entries at positions when files are in random order and entries keep their order in each file."""
    order = permute(np.arange(len(sizes)), len(sizes), key)
    ends = np.cumsum(sizes[order])
    ranks = np.searchsorted(ends, positions, side="right")
    before = ends[ranks] - sizes[order[ranks]]
    firsts = np.cumsum(sizes) - sizes
    return firsts[order[ranks]] + positions - before
