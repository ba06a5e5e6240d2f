"""Calls a parallel source in a worker process and writes the results into shared memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DalifyError, SourceError
from dalify.data.batch import Batch
from dalify.data.sample_info import BatchInfo, SampleInfo
from dalify.data.shared_memory import REGION_BYTES, Slot, aligned
from dalify.sources.callback import Callback, ItemIterator, SourceKind
from dalify.sources.convert import to_batch
from dalify.sources.external import SourceOptions, split_outputs
from dalify.sources.worker_process import Calls, Failure, Task, failure_of, trace_of

# The first frames of every traceback are in these files; they are omitted.
_OWN_FILES = (ItemIterator.take.__code__.co_filename, __file__)

# For each output: dtype and shape of its samples if they are expected to be uniform, otherwise None.
Expected = tuple[tuple[str, tuple[int, ...]] | None, ...]


class Chunk(NamedTuple):
    """One chunk of a batch: the details of a task.

    Attributes:
        slot: number of the slot that receives the results.
        number: index of the chunk in the batch.
        first: index of its first sample in the batch.
        size: number of its samples.
        iteration: number of the batch in the epoch.
        epoch: number of the epoch.
    """

    slot: int
    number: int
    first: int
    size: int
    iteration: int
    epoch: int


class Piece(NamedTuple):
    """Position of an array in a slot: one sample, or a whole chunk with a leading sample axis."""

    start: int
    dtype: str
    shape: tuple[int, ...]


# Replaces the pieces if the samples of the chunk are at their expected positions.
IN_PLACE = "in place"


class SourceOutcome(NamedTuple):
    """The outcome of a chunk.

    Attributes:
        outputs: for each output ``IN_PLACE``, one piece for the whole chunk, or one per sample; None without data.
        ended: the source raised StopIteration.
        failure: any other exception of the source.
        taken: items taken from an iterable since it was last started.
    """

    outputs: list[str | Piece | list[Piece]] | None = None
    ended: bool = False
    failure: Failure | None = None
    taken: int = 0


@dataclass(frozen=True)
class SourceSettings:
    """Settings of a source for its workers.

    Attributes:
        load: returns the source.
        options: options of the source.
        slots: the slots, by number.
        skipped_items: number of items of an iterable to skip before the next batch, because another worker or an
            earlier run has taken them.
        generation: the generation that ``skipped_items`` applies to.
    """

    load: Callable[[], Any]
    options: SourceOptions
    slots: list[Slot]
    skipped_items: int = 0
    generation: int = 0


def uniform_starts(expected: Expected, batch_size: int) -> list[int]:
    """Return the start offset in a slot of each output, for a full batch of the expected samples."""
    starts = []
    start = REGION_BYTES  # after the header
    for output in expected:
        starts.append(start)
        if output is not None:
            dtype, shape = output
            start += aligned(batch_size * int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    return starts


class SourceRunner:
    """A source in a worker process."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._options = settings.options
        self._callback: Callback | None = None
        self._iterator: ItemIterator | None = None
        self._skipped_items = settings.skipped_items
        self._generation = settings.generation

    def _load(self) -> Callback:
        callback = Callback(self._settings.load(), self._options.cycle)
        if callback.kind is not SourceKind.CALLABLE:
            self._iterator = ItemIterator(callback)
        return callback

    def run(self, task: Task, calls: Calls) -> SourceOutcome:
        """Execute a task; errors of the source are in the outcome."""
        chunk = Chunk(*task.details)
        items: list[Any] = []
        options = self._options
        try:
            if self._callback is None:
                self._callback = self._load()
            if self._iterator is not None and task.generation > self._generation:
                self._iterator = ItemIterator(self._callback)
                self._skipped_items = 0
            self._generation = task.generation
            try:
                self._call_source(self._callback, chunk, items, calls)
            finally:
                calls.end()
            columns = split_outputs(items[0] if options.batch else items, options, self._callback)
            outputs = self._write(chunk, columns)
        except StopIteration:
            return SourceOutcome(ended=True, taken=self._items_taken())
        except Exception as error:
            trace = trace_of(error, *_OWN_FILES)
            if isinstance(error, DalifyError):
                error.locate(line=self._callback.line if self._callback else None, operator="fn.external_source")
                if error.sample is not None:
                    error.sample += chunk.first
            elif self._callback is not None:
                sample = None if options.batch else chunk.first + len(items)
                self._callback.add_note(error, chunk.iteration, chunk.epoch, sample)
            return SourceOutcome(failure=failure_of(error, trace), taken=self._items_taken())
        return SourceOutcome(outputs, taken=self._items_taken())

    def _items_taken(self) -> int:
        return 0 if self._iterator is None else self._iterator.taken

    def _call_source(self, callback: Callback, chunk: Chunk, items: list[Any], calls: Calls) -> None:
        options = self._options
        if self._iterator is not None:
            try:
                while self._skipped_items:
                    calls.begin(-1)
                    self._iterator.take(1, [])
                    self._skipped_items -= 1
                for index in range(1 if options.batch else chunk.size):
                    calls.begin(index)
                    self._iterator.take(1, items)
            except StopIteration:
                self._skipped_items = 0
                raise
        elif options.batch:
            calls.begin(0)
            info = BatchInfo(chunk.iteration, chunk.epoch) if options.batch_info else chunk.iteration
            items.append(callback.source(info))
        else:
            start = chunk.iteration * options.batch_size
            for index in range(chunk.first, chunk.first + chunk.size):
                calls.begin(index)
                items.append(callback.source(SampleInfo(start + index, index, chunk.iteration, chunk.epoch)))

    def _write(self, chunk: Chunk, columns: list[Any]) -> list[str | Piece | list[Piece]]:
        batch_size = self._options.batch_size
        slot = self._settings.slots[chunk.slot]
        expected: Expected = pickle.loads(slot.read_header())
        starts = uniform_starts(expected, batch_size)
        outputs: list[str | Piece | list[Piece]] = []
        cursor = Slot.chunk_start(chunk.number)
        for index, column in enumerate(columns):
            batch = to_batch(column, copy=False)
            if batch.device != "cpu":
                raise SourceError(
                    "a worker process returned data in device memory.", hint="Return CPU arrays with parallel=True."
                )
            common = _common_dtype_and_shape(batch)
            if common is not None and index < len(expected) and common == expected[index]:
                dtype, shape = common
                whole = slot.array(starts[index], dtype, (batch_size, *shape))
                _fill(whole[chunk.first : chunk.first + len(batch)], batch)
                outputs.append(IN_PLACE)
            elif common is not None:
                dtype, shape = common
                piece = Piece(cursor, dtype, (len(batch), *shape))
                block = slot.array(*piece)
                _fill(block, batch)
                outputs.append(piece)
                cursor += aligned(block.nbytes)
            else:
                pieces = []
                for sample in batch.samples:
                    piece = Piece(cursor, sample.dtype.str, sample.shape)
                    slot.array(*piece)[...] = sample
                    pieces.append(piece)
                    cursor += aligned(sample.nbytes)
                outputs.append(pieces)
        return outputs


def _common_dtype_and_shape(batch: Batch) -> tuple[str, tuple[int, ...]] | None:
    """Return dtype and shape of all samples, or None if shapes differ."""
    if batch.dense is not None:
        return batch.dense.dtype.str, batch.dense.shape[1:]
    shapes = batch.shapes()
    return (batch.samples[0].dtype.str, shapes[0]) if shapes.count(shapes[0]) == len(shapes) else None


def _fill(rows: NDArray[Any], batch: Batch) -> None:
    if batch.dense is not None:
        rows[...] = batch.dense
        return
    for row, sample in enumerate(batch.samples):
        rows[row] = sample
