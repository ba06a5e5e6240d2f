"""The data of a user's callback, called in worker processes.

Alone because batches are asked for ahead and come back in pieces and in any order; the executor sees what
``dalify.sources.external`` would give it: one batch after the other, one end of each epoch.
"""

from __future__ import annotations

import pickle
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, CheckpointError, WorkerError
from dalify.sources.callback import Callback, Cycle, SourceKind
from dalify.sources.shared_memory import Lease, Slot, array_in
from dalify.sources.worker_pool import WorkerPool
from dalify.sources.worker_process import (
    IN_PLACE,
    Expected,
    Failure,
    Piece,
    Result,
    SourceSettings,
    Task,
    uniform_starts,
)

__all__ = ["ParallelSource"]

# Batches that consumers may hold without a copy, besides those that are being made.
_LENT_SLOTS = 4
# Each batch is cut into so many chunks per worker: a worker that is done early takes another.
_CHUNKS_PER_WORKER = 2


class _Flight:
    """A batch that is being made."""

    def __init__(self, slot: int, chunks: int, generation: int, expected: Expected) -> None:
        self.slot = slot
        self.results: list[Result | None] = [None] * chunks
        self.missing = chunks
        self.generation = generation
        self.expected = expected


class ParallelSource:
    """Asks a user's source for batches, in the worker processes of a pool.

    The source is a callable of one argument, whose calls are spread over the workers (samples of a batch, or batches),
    or an iterable or generator function, which one worker walks. Epochs are as in ``ExternalSource``. A callable must
    depend on its argument alone, and must raise StopIteration also for what lies further behind the end.

    Args:
        pool: the workers; the source registers itself.
        source: what the user passed.
        num_outputs: see ``ExternalSource``.
        cycle: see ``ExternalSource``.
        batch: see ``ExternalSource``.
        batch_info: see ``ExternalSource``.
        batch_size: most samples in a batch.
        prefetch_queue_depth: how many batches are made ahead, at least 1.

    Attributes:
        callback: the examined source.
        epoch: number of the epoch, counted by ``reset``.
        iteration: number of batches returned in this epoch.

    Raises:
        ArgumentTypeError: nothing that gives data, or a callable without argument.
        ArgumentValueError: an argument out of range.
    """

    def __init__(
        self,
        pool: WorkerPool,
        source: Any,
        num_outputs: int | None = None,
        *,
        cycle: str | bool | None = None,
        batch: bool = True,
        batch_info: bool = False,
        batch_size: int,
        prefetch_queue_depth: int = 1,
    ) -> None:
        self.callback = Callback(source, cycle)
        self._is_callable = self.callback.kind is SourceKind.CALLABLE
        if self._is_callable and not self.callback.takes_info:
            raise ArgumentTypeError(
                f"the source {self.callback.name} takes no argument: all its calls would give the same.",
                line=self.callback.line,
                hint="Let it take one: the SampleInfo, BatchInfo or iteration number of what is wanted.",
                operator="fn.external_source",
            )
        if num_outputs is not None and num_outputs < 1:
            raise ArgumentValueError(f"num_outputs must be at least 1; got {num_outputs}.")
        if prefetch_queue_depth < 1:
            raise ArgumentValueError(f"prefetch_queue_depth must be at least 1; got {prefetch_queue_depth}.")
        self.num_outputs = num_outputs
        self.batch = batch
        self.batch_info = batch_info
        self.batch_size = batch_size
        self.prefetch_queue_depth = prefetch_queue_depth
        self.epoch = 0
        self.iteration = 0
        self._pool = pool
        self._cycle = cycle
        self._ended = False
        self._taken = 0
        self._skipped_items = 0
        self._generation = 0
        self._scheduled = 0
        self._flights: deque[_Flight] = deque()
        self._by_slot: dict[int, _Flight] = {}
        self._expected: Expected = ()
        pieces = 1 if batch or not self._is_callable else min(batch_size, pool.num_workers * _CHUNKS_PER_WORKER)
        edges = np.linspace(0, batch_size, pieces + 1).astype(int).tolist()
        self._chunks = [(first, stop - first) for first, stop in pairwise(edges)]
        self._slots = [Slot(pieces) for _ in range(prefetch_queue_depth + _LENT_SLOTS)]
        self._free: deque[int] = deque(range(len(self._slots)))
        self._number = pool.register(self)

    @property
    def resumes_exactly(self) -> bool:
        """Whether a restored state needs no replay: the source is told which item is wanted."""
        return self._is_callable

    @property
    def shared_bytes(self) -> list[int]:
        """How much memory each slot takes."""
        return [slot.used_bytes for slot in self._slots]

    def settings(self) -> SourceSettings:
        """Return what the workers must know of this source."""
        source, load = self.callback.source, None
        if self._pool.start_method != "fork":
            source, load = self._pool.pickler.dumps(source, self.callback.name, self.callback.line)
        return SourceSettings(
            source,
            load,
            self._cycle,
            self.num_outputs,
            self.batch,
            self.batch_info,
            self.batch_size,
            self._slots,
            self._skipped_items,
        )

    def prefetch(self) -> None:
        """Let the workers begin with the next batches."""
        while len(self._flights) < self.prefetch_queue_depth and self._free:
            slot = self._free.popleft()
            flight = _Flight(slot, len(self._chunks), self._generation, self._expected)
            self._slots[slot].write_header(pickle.dumps(self._expected))
            self._by_slot[slot] = flight
            self._flights.append(flight)
            worker = None if self._is_callable else self._number
            for chunk, (first, count) in enumerate(self._chunks):
                self._pool.submit(
                    Task(self._number, slot, chunk, first, count, self._scheduled, self.epoch, self._generation), worker
                )
            self._scheduled += 1

    def receive(self, result: Result) -> None:
        """Take what became of a task."""
        flight = self._by_slot[result.slot]
        flight.results[result.chunk] = result
        flight.missing -= 1
        if not flight.missing:
            del self._by_slot[result.slot]
            if flight.generation != self._generation:
                self._free.appendleft(flight.slot)

    def next_batch(self) -> list[Any]:
        """Return the next batch: for each output one array ``[N, ...]``, or a list of one array per sample.

        Arrays are views of shared memory, which is written again when the last view is gone. Where a consumer holds
        many batches, they are copies.

        Raises:
            StopIteration: the data are at their end; also every time until ``reset``.
            SourceError: the source gave something that cannot be used.
            WorkerError: a worker has died; or the source raised an exception that cannot be raised here.
            Exception: whatever the source raises, with notes that name it and show its traceback.
        """
        if self._ended:
            raise StopIteration
        self.prefetch()
        while not self._flights:  # all slots hold batches of an epoch that was left
            self._pool.collect(lambda: bool(self._free))
            self.prefetch()
        flight = self._flights[0]
        while flight.missing:
            self._pool.collect(lambda: not flight.missing)
        self._flights.popleft()
        self.iteration += 1
        results = [result for result in flight.results if result is not None]
        self._taken = results[-1].taken
        try:
            self._raise_first(results)
        except BaseException:
            self._free.appendleft(flight.slot)
            raise
        lent = len(self._slots) - len(self._free) - len(self._by_slot) - sum(not f.missing for f in self._flights)
        memory = Lease(self._free, flight.slot, self._slots[flight.slot]).memory()
        outputs = self._assembled(memory, flight, results)
        if lent > _LENT_SLOTS:
            outputs = [
                each.copy() if isinstance(each, np.ndarray) else [one.copy() for one in each] for each in outputs
            ]
        self.prefetch()
        return outputs

    def _raise_first(self, results: list[Result]) -> None:
        for result in results:
            if result.ended:
                self._ended = True
                raise StopIteration
            if result.failure is not None:
                raise _error_of(result.failure, self.callback)

    def _assembled(self, memory: NDArray[np.uint8], flight: _Flight, results: list[Result]) -> list[Any]:
        starts = uniform_starts(flight.expected, self.batch_size)
        outputs: list[Any] = []
        expected: list[tuple[str, tuple[int, ...]] | None] = []
        columns = zip(*(result.outputs or () for result in results), strict=True)
        for index, parts in enumerate(columns):
            form = flight.expected[index] if index < len(flight.expected) else None
            whole = None if form is None else array_in(memory, starts[index], form[0], (self.batch_size, *form[1]))
            if whole is not None and parts.count(IN_PLACE) == len(parts):
                output: Any = whole
            elif len(parts) == 1 and isinstance(parts[0], Piece):
                output = array_in(memory, *parts[0])
            else:
                output = self._joined(memory, whole, parts)
            outputs.append(output)
            expected.append(None if isinstance(output, list) else (output.dtype.str, output.shape[1:]))
        # Only samples that are made apart need to know where each belongs.
        self._expected = tuple(expected) if len(self._chunks) > 1 else ()
        return outputs

    def _joined(self, memory: NDArray[np.uint8], whole: NDArray[Any] | None, parts: tuple[Any, ...]) -> Any:
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
            return np.stack(samples)  # the first uniform batch: from the next on, they are written side by side
        return samples

    def reset(self) -> None:
        """Begin the next epoch: indices start at 0 again. Iterables go on where they are, as in DALI."""
        self._ended = False
        self.iteration = 0
        self.epoch += 1
        if self._is_callable:
            self._drop_flights()

    def restart(self) -> None:
        """Begin the next epoch at the first item, in the middle of this one; see ``ExternalSource.restart``."""
        if self.callback.cycle is not Cycle.NO:
            self._drop_flights()  # a worker that sees a new generation begins its walk anew
            self._taken = 0
        self.reset()

    def _drop_flights(self) -> None:
        # What is in the making is not wanted any more. Its slots come back with its results.
        self._generation += 1
        self._pool.skip_before(self._number, self._generation)
        self._free.extendleft(flight.slot for flight in self._flights if not flight.missing)
        self._flights.clear()
        self._scheduled = 0

    def close(self) -> None:
        """Give the shared memory back as soon as nobody views it. The pool is closed by its owner."""
        self._ended = True
        for slot in self._slots:
            slot.close()

    def state(self) -> dict[str, int]:
        """Return the state as JSON-ready integers."""
        return {
            "epoch": self.epoch,
            "iteration": self.iteration,
            "items": self._taken,
            "ended": int(self._ended),
        }

    def restore(self, state: dict[str, int]) -> None:
        """Continue where a source was when ``state()`` was taken.

        A callable continues at once. The items of an iterable that come before are asked for again and dropped.

        Raises:
            CheckpointError: not a source's state, or an iterable that workers walk already.
        """
        if set(state) - {"over"} != {"epoch", "iteration", "items", "ended"}:
            raise CheckpointError(f"this is not the state of an external source: {sorted(state)}.")
        if not self._is_callable and self._pool.is_started:
            raise CheckpointError(
                f"the source {self.callback.name} is an iterable that a worker process walks already.",
                hint="Restore before the first batch.",
            )
        self.epoch, self.iteration, self._ended = int(state["epoch"]), int(state["iteration"]), bool(state["ended"])
        self._skipped_items = self._taken = int(state["items"])
        if self._is_callable:
            self._drop_flights()
            self._scheduled = self.iteration

    def __repr__(self) -> str:
        """Return the source and where it stands."""
        return f"ParallelSource({self.callback.place}, epoch {self.epoch}, iteration {self.iteration})"


def _error_of(failure: Failure, callback: Callback) -> Exception:
    error: BaseException | None = None
    if failure.pickled is not None:
        try:
            error = pickle.loads(failure.pickled)
        except Exception:  # a class that only the worker knows
            error = None
    if not isinstance(error, Exception):
        error = WorkerError(
            f"the source {callback.name} failed in a worker process: {failure.text}", line=callback.line
        )
    error.add_note(f"In the worker process:\n{failure.trace}")
    return error
