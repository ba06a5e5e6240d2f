"""Reads samples from other machines or processes in advance, while previous batches are computed.

Separate threads wait for responses, so that the worker threads can compute.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dalify.base.errors import ReaderError, WorkerError
from dalify.base.fork_hook import Owner
from dalify.base.fork_lock import ForkLock
from dalify.base.threads import Thread

if TYPE_CHECKING:
    from dalify.sources.reader_processes import ReaderProcesses

# Responses of remote storage take tens of milliseconds; with files of 100 kB, this number saturates a fast network.
_THREADS = 32
# Batches that a reset has dropped are not requested; their samples are deleted after this number of batches.
_REMEMBERED = 64


class ReadAhead:
    """Starts to read the samples of a batch when it is scheduled.

    Args:
        index: index of the reader.
        read: function from an entry to its arrays.
        processes: processes that read; None for threads of this process.
    """

    def __init__(
        self, index: Sequence[Any], read: Callable[[Any], Any], processes: ReaderProcesses | None = None
    ) -> None:
        self._index = index
        self._read = read
        self._processes = processes
        self._batches: dict[int, dict[int, tuple[int, Future[Any]]]] = {}
        self._owner = Owner()

    def begin(self, number: int, entries: Iterable[tuple[int, int]]) -> None:
        """Start to read the samples of a batch.

        Args:
            number: number of the batch.
            entries: pairs of the position in the batch and the entry.
        """
        submit = self._submit_to_thread if self._processes is None else self._processes.submit
        self._forget(number)
        self._batches[number] = {position: (entry, submit(number, position, entry)) for position, entry in entries}

    def _submit_to_thread(self, number: int, position: int, entry: int) -> Future[Any]:
        return _submit(lambda: self._read(self._index[entry]))

    def _begin_child(self) -> None:
        """Drop requests to threads and processes of the parent in a forked child."""
        if self._owner.take_over():
            self._batches.clear()

    def _forget(self, number: int) -> None:
        self._begin_child()
        for other in [other for other in self._batches if other == number or other < number - _REMEMBERED]:
            for _, future in self._batches.pop(other).values():
                future.cancel()

    def take(self, number: int, position: int, entry: int) -> Any:
        """Wait for a sample and return its arrays; None if it was not requested, or another entry was read.

        Raises:
            Exception: the error of reading it.
        """
        self._begin_child()
        batch = self._batches.get(number, {})
        began, future = batch.get(position, (None, None))
        try:
            if self._processes is not None and (future is None or began != entry):
                began, future = entry, self._processes.submit(number, position, entry)
                batch[position] = began, future  # for release_waiting()
            return future.result() if future is not None and began == entry else None
        finally:
            batch.pop(position, None)

    def release_waiting(self) -> None:
        """Raise an error in threads that wait for storage or a process, because the samples are no longer needed."""
        if not self._owner.is_this_process:
            return
        for batch in list(self._batches.values()):
            for _, future in list(batch.values()):
                if not future.cancel():
                    with suppress(InvalidStateError):  # it has just arrived
                        future.set_exception(ReaderError("the pipeline was closed while the sample was being read."))

    def close(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.close()


_queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] | None = None
_owner = Owner()
_lock = ForkLock()


def _submit(function: Callable[[], Any]) -> Future[Any]:
    global _queue
    future: Future[Any] = Future()
    with _lock:
        if _owner.take_over():
            _queue = None  # the threads are in the parent
        if _queue is None:
            tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
            for number in range(_THREADS):
                # Daemons: storage that does not respond must not prevent the process from ending.
                thread = Thread(_work, f"dalify-read-{number}", (tasks,))
                try:
                    thread.start()
                except WorkerError:
                    if not number:
                        raise
                    break  # fewer threads are sufficient, but slower
            _queue = tasks
        _queue.put((future, function))
    return future


def _work(tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
    while True:
        future = function = None
        try:
            future, function = tasks.get()
            if future.set_running_or_notify_cancel():
                future.set_result(function())
        except BaseException as error:  # also one for lack of memory, after which the thread must continue
            if future is not None:
                with suppress(InvalidStateError):  # no thread waits any longer
                    future.set_exception(error)
        del future, function  # free the data: the requester owns the result
