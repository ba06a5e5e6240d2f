"""The worker processes of a pipeline: started, given tasks, watched, and ended.

Alone because processes outlive mistakes: whatever happens here (an error, Ctrl-C, a fork by the user, the end of the
interpreter), none may stay behind, and none of another process may be ended.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing import process as multiprocessing_process
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, PipelineStateError, WorkerError, option_error_text
from dalify.sources.pickling import CallbackPickler
from dalify.sources.shared_memory import Slot
from dalify.sources.worker_process import Result, SourceSettings, Task, run_worker

__all__ = ["ResultReceiver", "WorkerPool"]

# A pipe holds 64 KiB, which is 1024 tasks: below that, giving out a task never waits.
_MOST_TASKS_OUT = 512
# Ended workers are seen at once; this is for workers whose children keep the pipe that tells it, in seconds.
_LIFE_CHECK_S = 1.0
# How long a worker may take to finish its task when the pool is closed, in seconds.
_GRACE_S = 1.0


class ResultReceiver(Protocol):
    """A source that runs in the pool."""

    def settings(self) -> SourceSettings:
        """Return what the workers must know of it."""
        ...

    def receive(self, result: Result) -> None:
        """Take what became of a task."""
        ...


class _Worker:
    def __init__(self, process: Any, own_tasks: Connection, results: Connection) -> None:
        self.process = process
        self.own_tasks = own_tasks
        self.results = results


class WorkerPool:
    """Worker processes that call the sources of one pipeline.

    Sources register themselves before the pool starts; it starts with the first task, or with ``start``.

    Args:
        num_workers: number of processes, at least 1.
        start_method: ``"fork"``, ``"spawn"`` or ``"forkserver"``, see ``multiprocessing``. With the latter two, sources
            must be pickled, and the program's main module must be guarded by ``if __name__ == "__main__":``.
        callback_pickler: the user's ``py_callback_pickler``, see ``CallbackPickler``.

    Raises:
        ArgumentValueError: no workers, or a start method that this system does not have.
    """

    def __init__(self, num_workers: int = 1, start_method: str = "fork", callback_pickler: Any = None) -> None:
        if num_workers < 1:
            raise ArgumentValueError(f"py_num_workers must be at least 1; got {num_workers}.")
        methods = multiprocessing.get_all_start_methods()
        if start_method not in methods:
            raise ArgumentValueError(option_error_text("py_start_method", start_method, methods))
        if os.name != "posix":
            raise WorkerError("parallel=True needs Linux or macOS.", hint="Leave parallel=True out on this system.")
        self.num_workers = num_workers
        self.start_method = start_method
        self.pickler = CallbackPickler(callback_pickler)
        self._sources: list[ResultReceiver] = []
        self._workers: list[_Worker] = []
        self._shared_tasks: Connection | None = None
        self._control: Slot | None = None
        self._generations: NDArray[Any] = np.zeros(0, np.int64)
        self._waiting: deque[tuple[Task, int | None]] = deque()
        self._tasks_out = 0
        self._failure = ""
        self._closed = False
        self._owner = os.getpid()
        # Two, so that one thread can give out tasks while another waits for results. Where both, in this order.
        self._collecting = threading.RLock()
        self._submitting = threading.RLock()
        self._pending: tuple[Connection, ...] = ()
        _POOLS.add(self)
        self._finalizer = weakref.finalize(self, _end, self._workers, self._owner)

    def register(self, source: ResultReceiver) -> int:
        """Add a source and return its number.

        Raises:
            PipelineStateError: the workers run already.
        """
        if self._workers or self._closed:
            raise PipelineStateError("the worker processes have been started: no source can be added to them.")
        self._sources.append(source)
        return len(self._sources) - 1

    @property
    def is_started(self) -> bool:
        """Whether there are worker processes."""
        return bool(self._workers)

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def start(self) -> None:
        """Start the workers, if they do not run yet. Fork before threads and GPU contexts are made.

        Raises:
            ArgumentTypeError: a source cannot be sent to another process.
            WorkerError: the pool has lost a worker before, or belongs to another process.
            PipelineStateError: the pool is closed.
        """
        self._check_usable()
        with self._submitting:
            if self._workers:
                return
            settings = [source.settings() for source in self._sources]
            context: Any = multiprocessing.get_context(self.start_method)
            self._control = Slot(0)
            self._generations = self._control.array(0, "<i8", (len(settings),))
            shared_out, self._shared_tasks = context.Pipe(duplex=False)
            os.set_blocking(shared_out.fileno(), False)
            try:
                for number in range(self.num_workers):
                    self._workers.append(self._started_worker(context, number, settings, shared_out))
            except BaseException:
                self._shut()
                raise
            finally:
                shared_out.close()

    def _started_worker(
        self, context: Any, number: int, settings: list[SourceSettings], shared_out: Connection
    ) -> _Worker:
        own_out, own_tasks = context.Pipe(duplex=False)
        results, results_in = context.Pipe(duplex=False)
        os.set_blocking(own_out.fileno(), False)
        # Known before the fork, so that the child closes its copies of this end: see _disown.
        self._pending = (own_tasks, results)
        process = context.Process(
            target=run_worker,
            args=(settings, shared_out, own_out, results_in, self._control, self._owner),
            name=f"dalify worker {number}",
            daemon=True,
        )
        # A Ctrl-C while a worker begins would end it with a traceback: it is held back until run_worker ignores it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._pending = ()
            own_out.close()
            results_in.close()
        return _Worker(process, own_tasks, results)

    def _check_usable(self) -> None:
        if self._owner != os.getpid():
            raise WorkerError(
                "the worker processes belong to the process that this one was forked from.",
                hint="Build the pipeline in the process that runs it.",
            )
        if self._failure:
            raise self._failed()
        if self._closed:
            raise PipelineStateError("the pipeline's worker processes have been closed.")

    def submit(self, task: Task, worker: int | None = None) -> None:
        """Give out a task: to whichever worker is free, or to a certain one."""
        self.start()
        with self._submitting:
            self._waiting.append((task, worker))
            self._give_out()

    def _give_out(self) -> None:
        while self._waiting and self._tasks_out < _MOST_TASKS_OUT:
            task, worker = self._waiting.popleft()
            pipe = self._shared_tasks if worker is None else self._workers[worker % self.num_workers].own_tasks
            assert pipe is not None, "dalify bug: a task before the workers are started"
            try:
                os.write(pipe.fileno(), task.packed())
            except BrokenPipeError:
                self._waiting.clear()  # nobody is left; collect() says why
                return
            self._tasks_out += 1

    def skip_before(self, source: int, generation: int) -> None:
        """Let the workers skip tasks of a source that are older than a generation."""
        if len(self._generations):
            self._generations[source] = generation

    def collect(self, is_done: Callable[[], bool]) -> None:
        """Wait until there are results, and hand them to their sources.

        Args:
            is_done: whether there is nothing to wait for, because another thread took the result.

        Raises:
            WorkerError: a worker has died.
        """
        with self._collecting:
            self._check_usable()
            if is_done():
                return
            by_pipe = {worker.results: worker for worker in self._workers}
            ends = {worker.process.sentinel: worker for worker in self._workers}
            ready = connection.wait([*by_pipe, *ends], _LIFE_CHECK_S)
            got_results = False
            for pipe in ready:
                if isinstance(pipe, Connection) and self._take_results(pipe):
                    got_results = True
            with self._submitting:
                self._give_out()
            # Others may still do all the work; but who asked for so many workers wants to know that one is gone.
            if got_results and not any(end in ends for end in ready):
                return
            for worker in self._workers:
                if not worker.process.is_alive():
                    self._lose(worker)

    def _take_results(self, pipe: Connection) -> bool:
        try:
            result: Result = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):  # killed, possibly in the middle of a message
            return False
        with self._submitting:
            self._tasks_out -= 1
        self._sources[result.source].receive(result)
        return True

    def _lose(self, worker: _Worker) -> None:
        code = worker.process.exitcode
        if code is not None and code < 0:
            reason = f"was ended by signal {-code} ({signal.Signals(-code).name})"
        else:
            reason = f"ended with exit code {code}"
        self._failure = f"a worker process (pid {worker.process.pid}) {reason}."
        self.close()
        raise self._failed()

    def _failed(self) -> WorkerError:
        hint = "Look for a crash in the source, or for the system running out of memory; then build the pipeline anew."
        return WorkerError(self._failure, hint=hint)

    def close(self) -> None:
        """End the workers. Their last results stay readable. Can be called again, and in a forked process."""
        with self._collecting, self._submitting:
            self._closed = True
            self._shut()

    def _shut(self) -> None:
        if self._shared_tasks is not None:
            self._shared_tasks.close()
            self._shared_tasks = None
        self._waiting.clear()
        _end(self._workers, self._owner)
        if self._control is not None:
            self._control.close()
            self._control = None
        self._generations = np.zeros(0, np.int64)

    def _disown(self) -> None:
        """In a forked process: close this end of the pipes, so that the workers see when their parent ends."""
        self._collecting, self._submitting = threading.RLock(), threading.RLock()  # the fork may copy them locked
        pipes = [pipe for worker in self._workers for pipe in (worker.own_tasks, worker.results)]
        for pipe in [*self._pending, *pipes, self._shared_tasks]:
            if pipe is not None and not pipe.closed:
                pipe.close()
        for worker in self._workers:
            # multiprocessing would end or await them when the forked process ends, although they are not its children.
            multiprocessing_process._children.discard(worker.process)  # pyright: ignore[reportAttributeAccessIssue]
        self._workers.clear()


def _end(workers: list[_Worker], owner: int) -> None:
    if owner != os.getpid():
        return
    for worker in workers:
        worker.own_tasks.close()
    deadline = time.monotonic() + _GRACE_S
    for worker in workers:
        # Keep reading: a worker that waits for room in its pipe would not see that it is to end.
        while worker.process.is_alive() and time.monotonic() < deadline:
            ready = connection.wait([worker.results, worker.process.sentinel], deadline - time.monotonic())
            if worker.results in ready:
                try:
                    worker.results.recv_bytes()
                except (EOFError, OSError):
                    worker.process.join(max(0.0, deadline - time.monotonic()))
                    break
    for end_process in ("terminate", "kill"):
        for worker in workers:
            if worker.process.is_alive():
                getattr(worker.process, end_process)()
                worker.process.join(_GRACE_S)
    for worker in workers:
        worker.results.close()
        if not worker.process.is_alive():  # else the system cannot end it now: it waits for a disk that does not answer
            worker.process.close()
    workers.clear()


_POOLS: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _disown_all() -> None:
    for pool in list(_POOLS):
        pool._disown()


os.register_at_fork(after_in_child=_disown_all)
