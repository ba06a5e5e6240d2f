"""Worker processes that read samples, for datasets whose ``__getitem__`` is Python code that holds the GIL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

from dalify.base.fork_hook import Owner
from dalify.base.fork_lock import ForkLock
from dalify.base.optional import is_loaded, torch
from dalify.sources.permutation import mixed_key
from dalify.sources.worker_death import WorkerDeath
from dalify.sources.worker_pool import WorkerPool
from dalify.sources.worker_process import (
    Calls,
    Failure,
    RunnerFactory,
    Task,
    error_of,
    failure_of,
    seed_generators,
    trace_of,
)

# Two tasks keep a process busy. More would delay others, because tasks in the pipe cannot be canceled.
_TASKS_PER_PROCESS = 2


class ReaderProcesses:
    """Reads entries in worker processes.

    Before each sample, the random generators of Python, NumPy and torch are seeded from seed, batch and position, so
    that a dataset with random augmentations returns the same data in every run, for any number of processes.

    If a process dies, its current sample is lost, and the process is replaced. A forked child starts its own processes.

    Args:
        index: index of the reader.
        read: maps an entry to its arrays.
        count: number of processes.
        start_method: ``fork``, ``spawn`` or ``forkserver``.
        callback_pickler: pickler of index and functions for processes that are not forked; see ``CallbackPickler``.
        seed: seed of the reader.
        callback_timeout_s: maximum time to read a sample in seconds; None for no limit.
        operator: public name of the reader.
    """

    def __init__(
        self,
        index: Sequence[Any],
        read: Callable[[Any], Any],
        count: int,
        start_method: str,
        callback_pickler: Any,
        seed: int,
        callback_timeout_s: float | None,
        operator: str,
    ) -> None:
        self._task = (index, read)
        self._pool_options: dict[str, Any] = {
            "num_workers": count,
            "start_method": start_method,
            "callback_pickler": callback_pickler,
            "callback_timeout_s": callback_timeout_s,
            "max_tasks_out": _TASKS_PER_PROCESS * count,
        }
        self._operator = operator
        self._seed = seed
        self._pool: WorkerPool | None = None
        self._owner = Owner()
        self._starting = ForkLock()

    def start(self) -> None:
        """Start the processes.

        Raises:
            ArgumentTypeError: the dataset cannot be sent to another process.
            WorkerError: the system cannot start processes.
        """
        self._owner.take_over()
        self._pool = WorkerPool(**self._pool_options)
        self._pool.register(self)
        self._pool.start()

    def submit(self, batch: int, position: int, entry: int) -> Future[Any]:
        """Start reading an entry for the sample at a position of a batch; the future has its arrays."""
        with self._starting:  # in a forked child, several threads may call this first
            if self._pool is None or not self._owner.is_this_process:
                self.start()
            pool = self._pool
            assert pool is not None, "dalify bug: no processes"
            pool.collect_in_background()
        future: Future[Any] = Future()
        pool.submit(0, 0, (entry, mixed_key(self._seed, batch, position), 0, 0, 0, 0), future)
        return future

    def runner_factory(self) -> RunnerFactory:
        """Return the function that creates the task runner of a process; see ``Receiver``."""
        assert self._pool is not None, "dalify bug: no processes"
        return partial(_Reader, self._pool.loader(self._task, "of the reader", None, self._operator))

    def is_wanted(self, token: Future[Any]) -> bool:
        """Return whether a pending task is still needed; see ``Receiver``."""
        return not token.cancelled()

    def receive(self, token: Future[Any], outcome: Any) -> None:
        """Receive a sample; see ``Receiver``."""
        with suppress(InvalidStateError):  # canceled
            if isinstance(outcome, Failure):
                token.set_exception(error_of(outcome, "the dataset"))
            else:
                token.set_result(outcome)

    def task_lost(self, token: Future[Any], death: WorkerDeath) -> None:
        """Record that a process died while it read a sample; see ``Receiver``."""
        with suppress(InvalidStateError):
            token.set_exception(death.error("the dataset", "a sample", None, self._operator))

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None and self._owner.is_this_process:
            self._pool.close()
        self._pool = None


_Task = tuple[Sequence[Any], Callable[[Any], Any]]  # index and function of a reader


class _Reader:
    """The reader in a worker process."""

    def __init__(self, load: Callable[[], _Task]) -> None:
        self._load = load
        self._loaded: _Task | None = None

    def run(self, task: Task, calls: Calls) -> Any:
        entry, seed, *_ = task.details
        try:
            if self._loaded is None:
                self._loaded = self._load()
                if is_loaded("torch"):
                    torch.set_num_threads(1)
            index, read = self._loaded
            seed_generators(seed)
            calls.begin(0)
            try:
                return read(index[entry])
            finally:
                calls.end()
        except Exception as error:
            return failure_of(error, trace_of(error, __file__))
