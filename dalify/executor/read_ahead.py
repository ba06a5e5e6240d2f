"""Read samples from other machines or processes in advance, while previous batches are computed.

Waiting for responses uses separate threads, so that the worker threads keep computing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

import numpy as np

from dalify.base.errors import ReaderError
from dalify.base.fork_hook import Owner
from dalify.base.fork_lock import ForkLock
from dalify.sources.reader_processes import ReaderProcesses

__all__ = ["ReadAhead"]

# Answers of a storage take tens of milliseconds; so many at once fill a fast line with files of 100 kB.
_THREADS = 32
# Batches that nobody asked for were dropped by a reset; their samples are forgotten after so many more.
_REMEMBERED = 64


class ReadAhead:
    """Begins to read the samples of a batch when it is scheduled.

    Args:
        index: of the reader.
        read: from an entry to its arrays.
        processes: that read; threads of this process where None.

    Attributes:
        is_wanted: tells from the number of an entry whether it will be asked for; None: all are.
    """

    def __init__(
        self, index: Sequence[Any], read: Callable[[Any], Any], processes: ReaderProcesses | None = None
    ) -> None:
        self._index = index
        self._read = read
        self._processes = processes
        self._batches: dict[int, dict[int, tuple[int, Future[Any]]]] = {}
        self._owner = Owner()
        self.is_wanted: Callable[[int], bool] | None = None

    def begin(self, number: int, entries: np.ndarray[Any, Any]) -> None:
        """Begin to read.

        Args:
            number: of the batch.
            entries: numbers of its entries, by place.
        """
        self._forget(number)
        self._batches[number] = {
            place: (entry, self._begun(number, place, entry))
            for place, entry in enumerate(entries.tolist())
            if self.is_wanted is None or self.is_wanted(entry)
        }

    def _begun(self, number: int, place: int, entry: int) -> Future[Any]:
        if self._processes is not None:
            return self._processes.submit(number, place, entry)
        return _submit(self._read_entry, entry)

    def _begin_child(self) -> None:
        """In a forked child: forget what threads and processes of the parent would bring."""
        if self._owner.take_over():
            self._batches.clear()

    def _forget(self, number: int) -> None:
        self._begin_child()
        for other in [other for other in self._batches if other == number or other < number - _REMEMBERED]:
            for _, future in self._batches.pop(other).values():
                future.cancel()

    def _read_entry(self, entry: int) -> Any:
        return self._read(self._index[entry])

    def take(self, number: int, place: int, entry: int) -> Any:
        """Return the arrays of a sample; None where it was not begun, or another entry was.

        Raises:
            Exception: what reading it raised.
        """
        self._begin_child()
        batch = self._batches.get(number, {})
        began, future = batch.get(place, (None, None))
        try:
            if self._processes is not None and (future is None or began != entry):
                began, future = entry, self._processes.submit(number, place, entry)
                batch[place] = began, future  # seen by abandon()
            return future.result() if future is not None and began == entry else None
        finally:
            batch.pop(place, None)

    def abandon(self) -> None:
        """Let go of threads that wait for a storage or a process: nobody wants the samples any more."""
        if not self._owner.is_this_process:
            return
        for batch in list(self._batches.values()):
            for _, future in list(batch.values()):
                if not future.cancel():
                    with suppress(InvalidStateError):  # it has just arrived
                        future.set_exception(ReaderError("the pipeline was closed while the sample was on its way."))

    def close(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.close()


_queue: queue.SimpleQueue[tuple[Future[Any], Callable[[int], Any], int]] | None = None
_owner = Owner()
_lock = ForkLock()


def _submit(function: Callable[[int], Any], entry: int) -> Future[Any]:
    global _queue
    future: Future[Any] = Future()
    with _lock:
        if _owner.take_over() or _queue is None:
            _queue = queue.SimpleQueue()
            for number in range(_THREADS):
                # Daemons: a storage that does not answer must not keep a process from ending.
                threading.Thread(target=_work, args=(_queue,), name=f"dalify-read-{number}", daemon=True).start()
        _queue.put((future, function, entry))
    return future


def _work(tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[int], Any], int]]) -> None:
    while True:
        future, function, entry = tasks.get()
        if not future.set_running_or_notify_cancel():
            continue
        with suppress(InvalidStateError):  # nobody waits any more
            try:
                future.set_result(function(entry))
            except BaseException as error:
                future.set_exception(error)
        del future, function  # what was read belongs to who asked for it
