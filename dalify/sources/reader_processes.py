"""Processes that read samples: for data sets whose ``__getitem__`` is Python code that holds the interpreter's lock.

Alone because processes have a life of their own: they must begin before threads do, die, and be replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from dalify.base.errors import WorkerError
from dalify.base.optional import is_loaded, torch
from dalify.sources.permutation import mixed_key
from dalify.sources.pickling import CallbackPickler

__all__ = ["ReaderProcesses"]

_PARENT_CHECK_S = 1.0


class ReaderProcesses:
    """Reads entries in other processes.

    Before each sample, Python's, numpy's and torch's random numbers are set by seed, batch and place: a data set that
    draws some gives the same in every run, whatever the number of processes, and after resuming.

    Args:
        index: of the reader.
        read: from an entry to its arrays.
        count: number of processes.
        start_method: ``fork``, ``spawn`` or ``forkserver``.
        pickler: how index and functions travel to processes that are not forked.
        seed: of the reader.
    """

    def __init__(
        self,
        index: Sequence[Any],
        read: Callable[[Any], Any],
        count: int,
        start_method: str,
        pickler: CallbackPickler,
        seed: int,
    ) -> None:
        self._task = (index, read)
        self._count = count
        self._start_method = start_method
        self._pickler = pickler
        self._seed = seed
        self._pool: ProcessPoolExecutor | None = None
        self._process = os.getpid()

    def start(self) -> None:
        """Start the processes, and wait until they are there."""
        context = multiprocessing.get_context(self._start_method)
        is_fork = self._start_method == "fork"
        task: Any = (
            self._task if is_fork else self._pickler.dumps(self._task, "of the reader", None, "fn.readers.dataset")
        )
        self._process = os.getpid()
        parent = None if self._start_method == "forkserver" else self._process
        self._pool = ProcessPoolExecutor(self._count, context, _begin, (task, is_fork, parent))
        for future in [self._pool.submit(os.getpid) for _ in range(self._count)]:
            future.result()

    def submit(self, number: int, place: int, entry: int) -> Future[Any]:
        """Begin to read an entry, for a place of a batch."""
        if self._pool is None or self._process != os.getpid():
            self.start()
        assert self._pool is not None, "dalify bug: no processes"
        try:
            return self._pool.submit(_read, entry, mixed_key(self._seed, number, place))
        except BrokenProcessPool:
            self.close()
            self.start()
            return self._pool.submit(_read, entry, mixed_key(self._seed, number, place))

    @staticmethod
    def result(future: Future[Any]) -> Any:
        """Return what was read.

        Raises:
            WorkerError: a process died.
            Exception: what reading raised.
        """
        try:
            return future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "a process that reads samples died, for instance since memory ran out.",
                hint="The next batch starts new ones. Fewer processes need less memory.",
            ) from None

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None


_task: tuple[Sequence[Any], Callable[[Any], Any]] | None = None


def _begin(task: Any, is_fork: bool, parent: int | None) -> None:
    """Prepare a worker process; its parent is the one that reads, or the server that ends with it."""
    global _task
    threading.Thread(target=_end_with, args=(parent or os.getppid(),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers
    if is_fork:
        _task = task
    else:
        content, load = task
        _task = load(content)
    if is_loaded("torch"):
        torch.set_num_threads(1)


def _end_with(parent: int) -> None:
    """End this process with its parent: where that was killed, forked siblings keep each other's pipes open."""
    while os.getppid() == parent:  # a killed process may exist for long, until somebody asks how it ended
        time.sleep(_PARENT_CHECK_S)
    os._exit(1)


def _read(entry: int, seed: int) -> Any:
    assert _task is not None, "dalify bug: a worker without task"
    index, read = _task
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if is_loaded("torch"):
        torch.manual_seed(seed >> 1)
    return read(index[entry])
