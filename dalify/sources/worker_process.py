"""What a worker process does: take tasks, call the user's source, write the results into shared memory.

Alone because it runs elsewhere: it must import little, hold no lock (a process that is killed would keep it), and
survive whatever the user's code does except being killed.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import DalifyError, SourceError
from dalify.data.batch import Batch
from dalify.data.sample_info import BatchInfo, SampleInfo
from dalify.sources.callback import Callback, SourceKind, Walk
from dalify.sources.convert import to_batch
from dalify.sources.external import split_outputs
from dalify.sources.shared_memory import Slot, aligned

__all__ = ["IN_PLACE", "Failure", "Piece", "Result", "SourceSettings", "Task", "run_worker", "uniform_starts"]

# Frames of these begin every traceback and tell the user nothing.
_OWN_FILES = {Walk.take.__code__.co_filename, __file__}
# How often an idle worker looks whether the process that it works for is still there, in seconds.
_PARENT_CHECK_S = 5.0

# Element type and shape of the samples of an output that is expected to be uniform; None where it is not.
Expected = tuple[tuple[str, tuple[int, ...]] | None, ...]


class Task(NamedTuple):
    """One chunk of one batch.

    Attributes:
        source: number of the source.
        slot: number of the slot that receives the results.
        chunk: number of the chunk in the batch.
        first: number of its first sample in the batch.
        size: number of its samples.
        iteration: number of the batch in the epoch.
        epoch: number of the epoch.
        generation: tasks of a generation before the source's current one are skipped.
    """

    source: int
    slot: int
    chunk: int
    first: int
    size: int
    iteration: int
    epoch: int
    generation: int

    def packed(self) -> bytes:
        """Return the task as bytes of a fixed length, which a pipe gives to one reader as a whole."""
        return _TASK.pack(*self)


_TASK = struct.Struct("<8q")


class Piece(NamedTuple):
    """Where in a slot an array is: one sample, or all of a chunk with a leading sample axis."""

    start: int
    dtype: str
    shape: tuple[int, ...]


# In place of pieces: the samples of the chunk are where the expectation puts them.
IN_PLACE = "in place"


class Failure(NamedTuple):
    """An exception of the user's code, on its way to the user.

    Attributes:
        pickled: the exception, or None where it cannot travel.
        text: its type and message.
        trace: the traceback in the worker.
    """

    pickled: bytes | None
    text: str
    trace: str


class Result(NamedTuple):
    """What became of a task.

    Attributes:
        source: of the task.
        slot: of the task.
        chunk: of the task.
        outputs: for each output ``IN_PLACE``, one piece for the whole chunk, or one per sample; None without data.
        ended: the source raised StopIteration.
        failure: the source raised something else.
        taken: items taken from an iterable since it began anew.
    """

    source: int
    slot: int
    chunk: int
    outputs: list[str | Piece | list[Piece]] | None = None
    ended: bool = False
    failure: Failure | None = None
    taken: int = 0


@dataclass(frozen=True)
class SourceSettings:
    """What a worker must know of a source.

    Attributes:
        source: the source itself, or the bytes it travels as.
        load: makes the source of the bytes; None where the source is there itself.
        cycle: see ``fn.external_source``.
        num_outputs: see ``fn.external_source``.
        batch: see ``fn.external_source``.
        batch_info: see ``fn.external_source``.
        batch_size: most samples in a batch.
        slots: shared memory.
        skipped_items: of an iterable, when it is restored from a checkpoint.
    """

    source: Any
    load: Callable[[bytes], Any] | None
    cycle: str | bool | None
    num_outputs: int | None
    batch: bool
    batch_info: bool
    batch_size: int
    slots: list[Slot]
    skipped_items: int = 0


def uniform_starts(expected: Expected, batch_size: int) -> list[int]:
    """Return where in a slot the samples of each expected output begin."""
    starts = []
    start = Slot.uniform_start()
    for output in expected:
        starts.append(start)
        if output is not None:
            dtype, shape = output
            start += aligned(batch_size * int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    return starts


class _Source:
    """A source in the worker."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._callback: Callback | None = None
        self._walk: Walk | None = None
        self._generation = 0

    def _begin(self) -> Callback:
        # On the first task, so that errors in unpickling or iterating reach the user like those of the source.
        settings = self._settings
        source = settings.source if settings.load is None else settings.load(settings.source)
        callback = Callback(source, settings.cycle)
        if callback.kind is not SourceKind.CALLABLE:
            self._walk = Walk(callback)
            for _ in range(settings.skipped_items):
                self._walk.take(1, [])
        return callback

    def run(self, task: Task) -> Result:
        """Do a task."""
        address = (task.source, task.slot, task.chunk)
        items: list[Any] = []
        settings = self._settings
        try:
            if self._callback is None:
                self._callback = self._begin()
            elif self._walk is not None and task.generation > self._generation:
                self._walk = Walk(self._callback)
            self._generation = task.generation
            self._ask(self._callback, task, items)
            data = items[0] if settings.batch else items
            columns = split_outputs(data, settings.num_outputs, settings.batch, self._callback)
            outputs = self._write(task, columns)
        except StopIteration:
            return Result(*address, ended=True, taken=self._taken())
        except Exception as error:
            trace = _trace(error)
            if isinstance(error, DalifyError):
                error.locate(line=self._callback.line if self._callback else None, operator="fn.external_source")
                if error.sample is not None:
                    error.sample += task.first
            elif self._callback is not None:
                sample = "" if settings.batch else f"sample {task.first + len(items)} of "
                where = f"for {sample}batch {task.iteration} of epoch {task.epoch}"
                error.add_note(f"Raised by the source of fn.external_source, {self._callback.place}, {where}.")
            return Result(*address, failure=_failure(error, trace), taken=self._taken())
        return Result(*address, outputs, taken=self._taken())

    def _taken(self) -> int:
        return 0 if self._walk is None else self._walk.taken

    def _ask(self, callback: Callback, task: Task, items: list[Any]) -> None:
        settings = self._settings
        if self._walk is not None:
            self._walk.take(1 if settings.batch else task.size, items)
        elif settings.batch:
            info = BatchInfo(task.iteration, task.epoch) if settings.batch_info else task.iteration
            items.append(callback.source(info))
        else:
            start = task.iteration * settings.batch_size
            for index in range(task.first, task.first + task.size):
                items.append(callback.source(SampleInfo(start + index, index, task.iteration, task.epoch)))

    def _write(self, task: Task, columns: list[Any]) -> list[str | Piece | list[Piece]]:
        settings = self._settings
        slot = settings.slots[task.slot]
        expected: Expected = pickle.loads(slot.read_header())
        starts = uniform_starts(expected, settings.batch_size)
        outputs: list[str | Piece | list[Piece]] = []
        cursor = Slot.chunk_start(task.chunk)
        for index, column in enumerate(columns):
            batch = to_batch(column, copy=False)
            if batch.device != "cpu":
                raise SourceError(
                    "a worker process returned data in device memory.", hint="Return CPU arrays where parallel=True."
                )
            common = _common_form(batch)
            if common is not None and index < len(expected) and common == expected[index]:
                dtype, shape = common
                whole = slot.array(starts[index], dtype, (settings.batch_size, *shape))
                _fill(whole[task.first : task.first + len(batch)], batch)
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


def _common_form(batch: Batch) -> tuple[str, tuple[int, ...]] | None:
    """Return element type and shape of all samples, or None where shapes differ."""
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


def _trace(error: Exception) -> str:
    """Return the traceback as text, from the user's first frame on where there is one."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename in _OWN_FILES:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame or error.__traceback__))


def _failure(error: Exception, trace: str) -> Failure:
    text = "".join(traceback.format_exception_only(error)).strip()
    error.__traceback__ = None
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # many exceptions can be pickled but not made again
    except Exception:
        return Failure(None, text, trace)
    return Failure(pickled, text, trace)


def run_worker(
    settings: list[SourceSettings],
    shared_tasks: Connection,
    own_tasks: Connection,
    results: Connection,
    control: Slot,
    parent: int,
) -> None:
    """Work until the other end of the task pipes is closed.

    Args:
        settings: of all sources.
        shared_tasks: tasks that any worker may take.
        own_tasks: tasks of the iterables that this worker walks.
        results: takes pickled results.
        control: header region holds the current generation of each source as int64.
        parent: process id of the process that gives the tasks.
    """
    # Ctrl-C reaches all processes of a terminal; this one ends when its parent has cleaned up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # children of the source inherit the mask
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what the fork brought along is never garbage here; looking at it would copy its pages
    sources = [_Source(each) for each in settings]
    generations = control.array(0, "<i8", (len(settings),))
    pipes = selectors.DefaultSelector()
    pipes.register(shared_tasks.fileno(), selectors.EVENT_READ)
    pipes.register(own_tasks.fileno(), selectors.EVENT_READ)
    while True:
        ready = pipes.select(_PARENT_CHECK_S)
        if not ready and not _is_running(parent):
            return
        for key, _ in ready:
            try:
                record = os.read(key.fd, _TASK.size)
            except BlockingIOError:  # another worker was quicker
                continue
            if not record:
                return
            task = Task(*_TASK.unpack(record))
            if task.generation < generations[task.source]:
                result = Result(task.source, task.slot, task.chunk)
            else:
                result = sources[task.source].run(task)
            try:
                results.send_bytes(pickle.dumps(result))
            except (BrokenPipeError, ConnectionResetError):
                return


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
