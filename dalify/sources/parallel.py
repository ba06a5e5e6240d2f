"""Calls a user's source in worker processes.

Batches are requested ahead of time, and their chunks arrive in any order. As in ``dalify.sources.external``, batches
are returned in order, and each epoch ends once.
"""

from __future__ import annotations

import pickle
from collections import deque
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, CheckpointError, WorkerError
from dalify.base.interrupts import deferred_interrupts
from dalify.data.shared_memory import HELD_BATCHES, FreeSlots, Slot, array_in
from dalify.sources.callback import Cycle, SourceKind
from dalify.sources.external import SourceOptions, UserSource, position_in
from dalify.sources.source_worker import (
    IN_PLACE,
    Chunk,
    Expected,
    Piece,
    SourceOutcome,
    SourceRunner,
    SourceSettings,
    uniform_starts,
)
from dalify.sources.worker_death import WorkerDeath
from dalify.sources.worker_pool import WorkerPool
from dalify.sources.worker_process import Failure, RunnerFactory, error_of

# Chunks of a batch per worker. With more than one, a worker that finishes early takes another.
_CHUNKS_PER_WORKER = 2


class _PendingBatch:
    """A batch in progress."""

    def __init__(self, slot: int, chunks: int, generation: int, expected: Expected) -> None:
        self.slot = slot
        self.outcomes: list[SourceOutcome] = [SourceOutcome()] * chunks
        self.missing = set(range(chunks))
        self.death: WorkerDeath | None = None  # of a worker while it processed a chunk of the batch
        self.is_dropped = False
        self.generation = generation
        self.expected = expected

    @property
    def is_complete(self) -> bool:
        """Whether all chunks have arrived, or the batch is lost because a worker died."""
        return not self.missing or self.death is not None


class ParallelSource(UserSource):
    """Requests batches from a user's source in the worker processes of a pool.

    The source is a callable with one argument, whose calls are distributed to the workers (samples of a batch, or
    batches), or an iterable or generator function, which one worker iterates. Epochs are as in ``ExternalSource``. A
    callable must depend only on its argument, and must also raise StopIteration for indices beyond the end.

    If a worker dies, its current batch is lost. Its replacement iterates an iterable again, from its state when the
    pipeline was built, and discards the items before the next batch. So the next batch is correct if the iterable
    returns the same items each time. If every worker dies at the same item, all further batches are lost.

    Args:
        pool: the workers; the source registers itself.
        source: the source as passed by the user.
        options: its options.
        prefetch_queue_depth: number of batches requested ahead of time, at least 1.

    Attributes:
        prefetch_queue_depth: as passed. See ``UserSource`` for the other attributes.

    Raises:
        ArgumentTypeError: the source is not a data source, or is a callable without argument.
        ArgumentValueError: an argument is out of range.
    """

    def __init__(self, pool: WorkerPool, source: Any, options: SourceOptions, prefetch_queue_depth: int = 1) -> None:
        super().__init__(source, options)
        self._is_callable = self.callback.kind is SourceKind.CALLABLE
        if self._is_callable and not self.callback.takes_info:
            raise ArgumentTypeError(
                f"the source {self.callback.name} takes no argument, so all its calls would return the same data.",
                line=self.callback.line,
                hint="Add an argument: the SampleInfo, BatchInfo or iteration number of the request.",
                operator="fn.external_source",
            )
        if prefetch_queue_depth < 1:
            raise ArgumentValueError(f"prefetch_queue_depth must be at least 1; got {prefetch_queue_depth}.")
        self.prefetch_queue_depth = prefetch_queue_depth
        self._pool = pool
        self._taken = 0
        batch_size = options.batch_size
        self._items_per_batch = 1 if options.batch else batch_size
        self._iterated_items = 0  # items of an iterable up to the last received or lost batch
        self._generation = 0
        self._scheduled = 0
        self._pending: deque[_PendingBatch] = deque()
        self._by_slot: dict[int, _PendingBatch] = {}
        self._expected: Expected = ()
        pieces = 1 if options.batch or not self._is_callable else min(batch_size, pool.num_workers * _CHUNKS_PER_WORKER)
        edges = np.linspace(0, batch_size, pieces + 1).astype(int).tolist()
        self._chunks = [(first, stop - first) for first, stop in pairwise(edges)]
        self._slots = [Slot(pieces) for _ in range(prefetch_queue_depth + HELD_BATCHES)]
        self._free = FreeSlots(len(self._slots))
        self._number = pool.register(self)

    @property
    def shared_bytes(self) -> list[int]:
        """Memory used by each slot in bytes."""
        return [slot.used_bytes for slot in self._slots]

    def runner_factory(self) -> RunnerFactory:
        """Return the function that creates the task runner of a worker that is started now; see ``Receiver``."""
        callback = self.callback
        load = self._pool.loader(callback.source, callback.name, callback.line)
        settings = SourceSettings(load, self.options, self._slots, self._iterated_items, self._generation)
        return partial(SourceRunner, settings)

    def prefetch(self) -> None:
        """Submit the next batches to the workers."""
        with deferred_interrupts():
            while len(self._pending) < self.prefetch_queue_depth and self._free:
                self._request_batch(self._free.take())

    def _request_batch(self, slot: int) -> None:
        pending = _PendingBatch(slot, len(self._chunks), self._generation, self._expected)
        number = -1
        try:
            self._by_slot[slot] = pending
            self._pool.start()  # before the header, which a forked process must not overwrite
            self._slots[slot].write_header(pickle.dumps(self._expected))
            worker = None if self._is_callable else self._number
            for number, (first, count) in enumerate(self._chunks):
                chunk = Chunk(slot, number, first, count, self._scheduled, self.epoch)
                self._pool.submit(self._number, self._generation, chunk, (pending, number), worker)
            self._pending.append(pending)
            self._scheduled += 1
        except BaseException:  # the workers cannot be started, for example: the batch will be requested again
            pending.is_dropped = True
            if self._pending and self._pending[-1] is pending:
                self._pending.pop()
            for unsent in range(max(0, number), len(self._chunks)):
                self._chunk_done(pending, unsent)
            raise

    def is_wanted(self, token: tuple[_PendingBatch, int]) -> bool:
        """Return True, because the slot of a batch is released only after all its chunks; see ``Receiver``."""
        return True

    def receive(self, token: tuple[_PendingBatch, int], outcome: SourceOutcome | Failure | None) -> None:
        """Receive the outcome of a chunk; see ``Receiver``."""
        pending, number = token
        if not isinstance(outcome, SourceOutcome):
            outcome = SourceOutcome(failure=outcome, taken=self._iterated_items + self._items_per_batch)
        if pending.generation == self._generation:
            self._iterated_items = outcome.taken
        pending.outcomes[number] = outcome
        self._chunk_done(pending, number)

    def task_lost(self, token: tuple[_PendingBatch, int], death: WorkerDeath) -> None:
        """Record that a worker died while it processed a chunk; see ``Receiver``."""
        pending, number = token
        if pending.generation == self._generation:
            self._iterated_items += self._items_per_batch
        pending.death = death
        self._chunk_done(pending, number)

    def _chunk_done(self, pending: _PendingBatch, number: int) -> None:
        pending.missing.discard(number)  # a chunk may also be lost after an error while it was received
        if not pending.missing and self._by_slot.pop(pending.slot, None) is not None and pending.is_dropped:
            self._free.add(pending.slot)

    def _drop(self, pending: _PendingBatch) -> None:
        """Drop a batch; its slot is free once no worker writes into it."""
        pending.is_dropped = True
        if not pending.missing:
            self._free.add(pending.slot)

    def next_batch(self) -> list[Any]:
        """Return the next batch: for each output one array ``[N, ...]``, or a list of one array per sample.

        Arrays are views of shared memory, which is reused when the last view is deleted. If a consumer holds more than
        ``HELD_BATCHES`` batches, the arrays are copies.

        Raises:
            StopIteration: the data is exhausted, also on every further call until ``reset``.
            SourceError: the source returned invalid data.
            WorkerError: a worker died while it processed this batch, or the source raised an exception that cannot be
                unpickled in this process.
            Exception: any exception of the source, with notes that name the source and show its traceback.
        """
        if self._ended:
            raise StopIteration
        self.prefetch()
        while not self._pending:  # all slots contain batches of an abandoned epoch
            self._pool.collect(lambda: bool(self._free))
            self.prefetch()
        pending = self._pending[0]
        while not pending.is_complete:
            self._pool.collect(lambda: pending.is_complete)
        with deferred_interrupts():  # which would lose the slot
            self._pending.popleft()
            self.iteration += 1
            outputs = self._take(pending)
        self.prefetch()
        return outputs

    def _take(self, pending: _PendingBatch) -> list[Any]:
        """Return a batch that is complete."""
        try:
            self._check(pending)
        except BaseException:
            self._drop(pending)
            raise
        in_use = len(self._slots) - len(self._free) - len(self._by_slot) - sum(not f.missing for f in self._pending)
        slot = self._slots[pending.slot]
        if in_use <= HELD_BATCHES:
            return self._outputs_in(self._free.reserve(slot, pending.slot), pending)
        try:
            outputs = self._outputs_in(slot.memory, pending)
            return [each.copy() if isinstance(each, np.ndarray) else [one.copy() for one in each] for each in outputs]
        finally:
            self._free.add(pending.slot)

    def _check(self, pending: _PendingBatch) -> None:
        """Raise the first error or end of data of a batch."""
        if pending.death is not None:
            self._taken += self._items_per_batch
            raise self._death_error(pending.death)
        for outcome in pending.outcomes:
            self._taken = outcome.taken
            if outcome.ended:
                self._ended = True
                raise StopIteration
            if outcome.failure is not None:
                raise error_of(outcome.failure, f"the source {self.callback.name}", self.callback.line)

    def _death_error(self, death: WorkerDeath) -> WorkerError:
        request = f"batch {self.iteration - 1} of epoch {self.epoch}"
        if not self.options.batch and death.call is not None and death.call >= 0:
            request = f"sample {death.call} of {request}"
        callback = self.callback
        return death.error(f"the source {callback.name}", request, callback.line, "fn.external_source")

    def _outputs_in(self, memory: NDArray[np.uint8], pending: _PendingBatch) -> list[Any]:
        batch_size = self.options.batch_size
        starts = uniform_starts(pending.expected, batch_size)
        outputs: list[Any] = []
        expected: list[tuple[str, tuple[int, ...]] | None] = []
        columns = zip(*(outcome.outputs or () for outcome in pending.outcomes), strict=True)
        for index, parts in enumerate(columns):
            form = pending.expected[index] if index < len(pending.expected) else None
            whole = None if form is None else array_in(memory, starts[index], form[0], (batch_size, *form[1]))
            if whole is not None and parts.count(IN_PLACE) == len(parts):
                output: Any = whole
            elif len(parts) == 1 and isinstance(parts[0], Piece):
                output = array_in(memory, *parts[0])
            else:
                output = self._join_pieces(memory, whole, parts)
            outputs.append(output)
            expected.append(None if isinstance(output, list) else (output.dtype.str, output.shape[1:]))
        # With a single chunk, the worker writes uniform samples contiguously anyway.
        self._expected = tuple(expected) if len(self._chunks) > 1 else ()
        return outputs

    def _join_pieces(self, memory: NDArray[np.uint8], whole: NDArray[Any] | None, parts: tuple[Any, ...]) -> Any:
        samples: list[NDArray[Any]] = []
        for (first, count), part in zip(self._chunks, parts, strict=True):
            if part == IN_PLACE:
                assert whole is not None, "dalify bug: samples in place without an expectation"
                samples.extend(whole[first + row, ...] for row in range(count))
            elif isinstance(part, Piece):
                block = array_in(memory, *part)
                samples.extend(block[row, ...] for row in range(len(block)))
            else:
                samples.extend(array_in(memory, *piece) for piece in part)
        shape, dtype = samples[0].shape, samples[0].dtype
        if all(sample.shape == shape and sample.dtype == dtype for sample in samples):
            return np.stack(samples)  # only the first uniform batch; later ones are written contiguously
        return samples

    def _begin(self, epoch: int) -> None:
        super()._begin(epoch)
        if self._is_callable:
            self._drop_pending()

    def restart(self, is_next: bool = True) -> None:
        """Restart at the first item, in the middle of an epoch; see ``ExternalSource.restart``."""
        if self.callback.cycle is not Cycle.NO:
            self._drop_pending()  # tasks of a new generation make the worker restart the iteration
            self._taken = self._iterated_items = 0
        self._begin(self.epoch + is_next)

    def _drop_pending(self) -> None:
        self._generation += 1
        self._pool.skip_before(self._number, self._generation)
        for pending in self._pending:
            self._drop(pending)
        self._pending.clear()
        self._scheduled = 0

    def close(self) -> None:
        """Release the shared memory when its last view is deleted. The pool is closed by its owner."""
        self._ended = True
        for slot in self._slots:
            slot.close()

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-ready integers."""
        return self._position(self._taken)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state returned by ``state()``.

        A callable continues immediately. Earlier items of an iterable are requested again and discarded.

        Raises:
            CheckpointError: this is not the state of a source, or workers already iterate over the source.
        """
        epoch, iteration, items, ended = position_in(state, {"over"})
        if not self._is_callable and self._pool.is_started:
            raise CheckpointError(
                f"the source {self.callback.name} is an iterable that a worker process already iterates over.",
                hint="Restore before the first batch.",
            )
        self.epoch, self.iteration, self._ended = epoch, iteration, ended
        self._iterated_items = self._taken = items
        if self._is_callable:
            self._drop_pending()
            self._scheduled = self.iteration
