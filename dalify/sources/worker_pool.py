"""Starts the worker processes of a pipeline, sends them tasks, monitors and replaces them, and ends them.

After an error, Ctrl-C, a fork by the user or the end of the interpreter, no worker may keep running, and processes of
other owners must not be ended.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import connection, resource_tracker
from multiprocessing import process as multiprocessing_process
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, PipelineStateError, WorkerError, check_option
from dalify.base.fork_hook import Owner, at_fork
from dalify.base.forked_processes import forked_processes
from dalify.base.interrupts import deferred_interrupts, was_interrupted
from dalify.base.source_line import SourceLine
from dalify.base.threads import Thread
from dalify.data.shared_memory import Slot
from dalify.sources.pickling import CallbackPickler
from dalify.sources.worker_death import WorkerDeath
from dalify.sources.worker_handle import TERMINATION_S, Worker, end_workers
from dalify.sources.worker_process import READING, STARTING, Result, RunnerFactory, Task, progress_in, run_worker

_T = TypeVar("_T")

# A pipe holds 64 KiB or 900 tasks, so submitting a task never blocks.
_MAX_TASKS_OUT = 512
# Interval in seconds for detecting an ended worker if its child processes keep its pipe open; others are detected
# immediately.
_LIFE_CHECK_S = 1.0
_POLL_S = 0.0005
# A worker ends itself when a call exceeds the time limit. A stopped worker (SIGSTOP) cannot; this process ends it after
# this multiple of the limit plus this number of seconds.
_OVERDUE_FACTOR, _OVERDUE_S = 2.0, 1.0
# Exit code that multiprocessing reports if the fork server was killed.
_NO_EXIT_CODE = 255


class Receiver(Protocol):
    """Submits tasks to a pool and receives their outcomes."""

    def runner_factory(self) -> RunnerFactory:
        """Return the function that creates the task runner of a worker process that is started now."""
        ...

    def is_wanted(self, token: Any) -> bool:
        """Return whether a pending task is still needed; otherwise it is dropped."""
        ...

    def receive(self, token: Any, outcome: Any) -> None:
        """Receive the outcome of a task.

        Args:
            token: the value passed to ``submit`` with the task.
            outcome: outcome of the task, see ``Result``.
        """
        ...

    def task_lost(self, token: Any, death: WorkerDeath) -> None:
        """Record that a task is lost because its worker died.

        Args:
            token: the value passed to ``submit`` with the task.
            death: the end of the worker.
        """
        ...


class _Job(NamedTuple):
    task: Task
    worker: int | None
    token: Any


class WorkerPool:
    """Worker processes that execute tasks for several receivers.

    Receivers register themselves before the pool starts; it starts with the first task, or with ``start``. If a worker
    dies, its current task is lost, and the worker is replaced.

    Args:
        num_workers: number of processes, at least 1.
        start_method: ``"fork"``, ``"spawn"`` or ``"forkserver"``, see ``multiprocessing``. With the latter two, sources
            must be pickled, and the program's main module must be guarded by ``if __name__ == "__main__":``.
        callback_pickler: the user's ``py_callback_pickler``, see ``CallbackPickler``.
        callback_timeout_s: maximum time of a call of the user's code, in seconds; None for no limit.
        max_tasks_out: maximum number of submitted tasks that are not completed.

    Raises:
        ArgumentValueError: there are no workers, or the system does not support the start method.
        WorkerError: the system cannot start processes.
    """

    def __init__(
        self,
        num_workers: int = 1,
        start_method: str = "fork",
        callback_pickler: Any = None,
        callback_timeout_s: float | None = None,
        max_tasks_out: int = _MAX_TASKS_OUT,
    ) -> None:
        if num_workers < 1:
            raise ArgumentValueError(f"py_num_workers must be at least 1; got {num_workers}.")
        methods = multiprocessing.get_all_start_methods()
        check_option("py_start_method", start_method, methods)
        if os.name != "posix":
            raise WorkerError("worker processes need Linux or macOS.", hint="Omit parallel=True on this system.")
        self.num_workers = num_workers
        self.start_method = start_method
        self.pickler = CallbackPickler(callback_pickler)
        self._timeout_s = callback_timeout_s
        self._max_tasks_out = min(max_tasks_out, _MAX_TASKS_OUT)
        self._receivers: list[Receiver] = []
        self._workers: list[Worker | None] = []
        self._shared_out: Connection | None = None
        self._shared_tasks: Connection | None = None
        self._control: Slot | None = None
        self._generations: NDArray[Any] = np.zeros(0, np.int64)
        self._progress: NDArray[Any] = np.zeros((0, 2), np.int64)
        self._waiting: deque[_Job] = deque()
        self._out: dict[int, _Job] = {}
        self._delivering: dict[int, _Job] = {}  # their receivers have not received them completely
        self._next_number = 0
        self._closed = False
        self._failure = ""
        self._owner = Owner()
        # Two locks, so that one thread can submit tasks while another waits for results. Acquired in this order.
        self._collecting = threading.RLock()
        self._submitting = threading.RLock()
        try:
            self._wake_reader, self._wake_writer = multiprocessing.Pipe(duplex=False)
        except OSError as error:
            raise _cannot_start(error) from error
        self._pending: tuple[Connection, ...] = ()
        self._collector: threading.Thread | None = None
        _POOLS.add(self)
        self._finalizer = weakref.finalize(self, _end_of_pool, weakref.ref(self), self._workers, self._owner)

    def register(self, receiver: Receiver) -> int:
        """Add a receiver and return its number.

        Raises:
            PipelineStateError: the workers are already running.
        """
        if self._workers or self._closed:
            raise PipelineStateError("the worker processes are already running, so no source can be added.")
        self._receivers.append(receiver)
        return len(self._receivers) - 1

    @property
    def is_started(self) -> bool:
        """Whether the worker processes have been started."""
        return bool(self._workers)

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process_id for worker in self._workers if worker is not None]

    def loader(
        self, value: _T, name: str, line: SourceLine | None, operator: str = "fn.external_source"
    ) -> Callable[[], _T]:
        """Return the function that returns a value in a worker that is started now: a copy, except after a fork.

        Args:
            value: the value.
            name: see ``CallbackPickler.dumps``, like the other arguments.
            line: see `name`.
            operator: see `name`.

        Raises:
            ArgumentTypeError: the value cannot be pickled.
        """
        if self.start_method == "fork":
            return lambda: value
        content, load = self.pickler.dumps(value, name, line, operator)
        return partial(load, content)

    def start(self) -> None:
        """Start the workers if they are not running. Call it before threads and GPU contexts are created.

        Raises:
            ArgumentTypeError: a source cannot be sent to another process.
            WorkerError: the pool belongs to another process, or the system cannot start processes.
            PipelineStateError: the pool is closed.
        """
        self._check_usable()
        with self._submitting:
            if self._workers:
                return
            try:
                self._control = Slot()
                self._generations, self._progress = progress_in(self._control, len(self._receivers), self.num_workers)
                self._shared_out, self._shared_tasks = multiprocessing.Pipe(duplex=False)
                os.set_blocking(self._shared_out.fileno(), False)
                for number in range(self.num_workers):
                    self._workers.append(self._start_worker(number))
            except BaseException as error:
                self._discard_tasks()
                if isinstance(error, OSError):
                    raise _cannot_start(error) from error
                raise

    def _start_worker(self, number: int) -> Worker:
        context: Any = multiprocessing.get_context(self.start_method)
        own_out, own_tasks = context.Pipe(duplex=False)
        results, results_in = context.Pipe(duplex=False)
        life_out, life = context.Pipe(duplex=False)
        os.set_blocking(own_out.fileno(), False)
        self._progress[number] = STARTING, -1
        factories = [receiver.runner_factory() for receiver in self._receivers]
        # Set before the fork, so that the child closes its copies of these ends; see _close_in_child.
        self._pending = (own_tasks, results, life)
        process = context.Process(
            target=run_worker,
            args=(
                number,
                factories,
                self._shared_out,
                own_out,
                results_in,
                life_out,
                self._control,
                self.num_workers,
                self._timeout_s,
            ),
            name=f"dalify worker {number}",
            daemon=True,
        )
        if self.start_method != "fork":
            resource_tracker.ensure_running()  # it unblocks SIGINT when it starts
        # Ctrl-C would end a starting worker with a traceback, so SIGINT is blocked until run_worker ignores it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with forked_processes.ignored():
                process.start()
        except BaseException as error:
            for pipe in self._pending:
                pipe.close()
            if isinstance(error, EOFError):
                raise OSError("the fork server has ended") from error
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._pending = ()
            for pipe in (own_out, results_in, life_out):
                pipe.close()
        return Worker(number, process, own_tasks, results, life)

    def _check_usable(self) -> None:
        if not self._owner.is_this_process:
            raise WorkerError(
                "the worker processes belong to the process that this one was forked from.",
                hint="Build the pipeline in the process that runs it.",
            )
        if self._closed:
            raise PipelineStateError("the pipeline's worker processes are closed.")
        if multiprocessing_process.current_process().daemon:  # multiprocessing raises an AssertionError
            raise WorkerError(
                "this process cannot start worker processes, because it is a daemon of multiprocessing, as are the "
                "workers of multiprocessing.Pool and of torch's DataLoader.",
                hint="Compute with threads in this process, or start it with daemon=False.",
            )

    def submit(
        self, receiver: int, generation: int, details: tuple[int, ...], token: Any, worker: int | None = None
    ) -> None:
        """Submit a task.

        Args:
            receiver: number of the receiver.
            generation: see ``skip_before``.
            details: see ``Task``.
            token: passed to the receiver with the outcome of the task.
            worker: index of the worker for the task, modulo the number of workers; None for any.
        """
        self.start()
        with self._submitting:
            task = Task(self._next_number, receiver, generation, details)
            self._next_number += 1
            self._waiting.append(_Job(task, None if worker is None else worker % self.num_workers, token))
            try:
                self._assign_tasks()
            except BaseException as error:  # collect() ends the workers: this thread must not wait for its lock
                self._failure = _text_of(error)

    def _assign_tasks(self) -> None:
        if self._waiting or self._out:
            self._replace_missing()
        while self._waiting and len(self._out) < self._max_tasks_out:
            job = self._waiting[0]
            if not self._receivers[job.task.receiver].is_wanted(job.token):
                self._waiting.popleft()
                continue
            pipe = self._shared_tasks
            if job.worker is not None:
                worker = self._workers[job.worker]
                if worker is None:  # starting a replacement failed
                    return
                pipe = worker.own_tasks
            assert pipe is not None, "dalify bug: a task before the workers are started"
            self._out[job.task.number] = job
            self._waiting.popleft()  # now, so that an error at any point leaves the task in one of the two
            # A worker that has just died is detected by the next collect(), which reassigns its tasks.
            with suppress(BrokenPipeError):
                os.write(pipe.fileno(), job.task.packed())

    def _replace_missing(self) -> None:
        for number, worker in enumerate(self._workers):
            if worker is None:
                try:
                    self._workers[number] = self._start_worker(number)
                except Exception as error:  # no process, file or memory left
                    self._requeue(self._unstarted_jobs())
                    if self._waiting:
                        reason = f"a worker process cannot be started: {error or type(error).__name__}"
                        self._report_lost(self._waiting.popleft(), WorkerDeath(0, None, None, reason=reason))
                    return

    def skip_before(self, receiver: int, generation: int) -> None:
        """Make the workers skip tasks of a receiver from before a generation."""
        if len(self._generations) and self._owner.is_this_process:  # a forked process shares this memory
            self._generations[receiver] = generation

    def collect(self, is_done: Callable[[], bool]) -> None:
        """Wait for results, and deliver them to their receivers.

        Args:
            is_done: returns whether there is nothing to wait for, because another thread took the result.

        Raises:
            WorkerError: the pool belongs to another process.
            PipelineStateError: the pool is closed.
        """
        with self._collecting:
            self._check_usable()
            if is_done():
                return
            if self._failure:
                self._restart(self._failure)
                return
            workers = [worker for worker in self._workers if worker is not None]
            pipes: list[Any] = [worker.results for worker in workers]
            ends: list[Any] = [worker.process.sentinel for worker in workers]
            must_start = not workers and (self._waiting or self._out)
            ready = connection.wait([*pipes, *ends, self._wake_reader], 0 if must_start else _LIFE_CHECK_S)
            with deferred_interrupts():
                try:
                    self._handle(workers, ready)
                except BaseException as error:  # no memory for a result, for example
                    self._restart(_text_of(error))

    def _handle(self, workers: list[Worker], ready: list[Any]) -> None:
        """Deliver results, replace ended workers, and assign tasks; see ``collect``."""
        got_results = False
        for worker in workers:
            if worker.results in ready:
                if self._take_result(worker):
                    got_results = True
                else:  # it is ending, or the user's code has closed its pipe, so it can send no results
                    worker.process.kill()
        self._end_overdue(workers)
        # Dead workers are also replaced if the others could execute all tasks.
        if not got_results or any(worker.process.sentinel in ready for worker in workers):
            for worker in workers:
                if worker.has_ended:
                    self._remove_dead(worker)
        with self._submitting:
            self._assign_tasks()

    def _restart(self, reason: str) -> None:
        """End all workers and report their tasks as lost; the next task starts new workers.

        Called after an unexpected error: a result may have been read and not delivered, so it is unknown which tasks
        are lost.
        """
        with self._collecting, self._submitting:
            lost = {**self._delivering, **self._out, **{job.task.number: job for job in self._waiting}}
            try:
                self._discard_tasks()
                self._failure = ""
            finally:
                death = WorkerDeath(0, None, None, reason=f"a result of a worker process could not be read: {reason}")
                for job in lost.values():
                    self._report_lost(job, death)

    def collect_in_background(self) -> None:
        """Deliver results in a thread until the pool is closed, so that full pipes do not block the workers.

        Raises:
            WorkerError: the system cannot start the workers or the thread.
        """
        if self._collector is None:
            self.start()  # the workers must be forked before the thread exists
            collector = Thread(self._collect_all, "dalify-collect")
            self._collector = collector
            try:
                collector.start()
            except BaseException:
                self._collector = None
                raise

    def _collect_all(self) -> None:
        while True:
            try:
                if self._closed:
                    return
                self.collect(lambda: False)
            except BaseException as error:  # the owners of the tasks wait for this thread
                if not self._closed:
                    self._restart(_text_of(error))

    def _end_overdue(self, workers: list[Worker]) -> None:
        """End workers that have exceeded the time limit of a call without ending, for example after SIGSTOP.

        The limit also applies to the time in which a worker must take a task.
        """
        if self._timeout_s is None or self._closed:  # the pool may be closed within collect()
            return
        now = time.monotonic()
        begun = set(self._progress[:, 0].tolist())
        not_begun = {job.worker for number, job in list(self._out.items()) if number not in begun}
        for worker in workers:
            task, call = self._progress[worker.number].tolist()
            is_due = call >= 0 if task >= 0 else task != STARTING and not not_begun.isdisjoint({None, worker.number})
            if not is_due or (task, call) != worker.call:
                worker.call, worker.call_since = (task, call), now
            elif now - worker.call_since > _OVERDUE_FACTOR * self._timeout_s + _OVERDUE_S:
                worker.is_overdue = True
                worker.process.kill()

    def _take_result(self, worker: Worker) -> bool:
        try:
            result: Result = pickle.loads(worker.results.recv_bytes())
        except (EOFError, OSError):  # killed, possibly in the middle of a message
            return False
        worker.call = None  # it may have been blocked until this was read
        with self._submitting:
            self._delivering[result.number] = job = self._out[result.number]
            del self._out[result.number]
        self._receivers[job.task.receiver].receive(job.token, result.outcome)
        del self._delivering[result.number]
        return True

    def _take_results(self, worker: Worker) -> None:
        with suppress(OSError):
            while worker.results.poll() and self._take_result(worker):
                pass

    def _report_lost(self, job: _Job, death: WorkerDeath) -> None:
        self._receivers[job.task.receiver].task_lost(job.token, death)

    def _remove_dead(self, worker: Worker) -> None:
        """Remove a dead worker. Its current task is lost; its other tasks are submitted again."""
        self._terminate_orphan(worker)
        self._take_results(worker)
        worker.process.join(TERMINATION_S)  # a fork server reaps a process before it reports the exit code
        with self._submitting:
            state, call = self._progress[worker.number].tolist()
            code: int | None = worker.process.exitcode
            timeout_s = self._timeout_s if code == -signal.SIGALRM or worker.is_overdue else None
            death = WorkerDeath(worker.process_id, code, None if state == STARTING else call, timeout_s)
            self._workers[worker.number] = None
            worker.close()
            lost = self._out.pop(state, None)
            again = [job for job in self._out.values() if job.worker == worker.number]
            if state == READING or (state == STARTING and not again):
                again += self._unstarted_jobs()
            self._requeue(again)
            if state == STARTING and self._waiting:  # avoid restarting it forever
                lost = self._waiting.popleft()
            if lost is not None:
                self._report_lost(lost, death)

    def _terminate_orphan(self, worker: Worker) -> None:
        """End a worker after its fork server was killed; multiprocessing assumes that it ended, but it may be alive."""
        if self.start_method == "forkserver" and worker.process.exitcode == _NO_EXIT_CODE:
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(worker.process_id) == os.getpgid(0):
                    os.kill(worker.process_id, signal.SIGKILL)

    def _requeue(self, jobs: list[_Job]) -> None:
        """Put submitted tasks back before the waiting ones."""
        jobs.sort(key=lambda job: job.task.number)
        for job in jobs:
            del self._out[job.task.number]
        self._waiting.extendleft(reversed(jobs))

    def _unstarted_jobs(self) -> list[_Job]:
        """Return the shared tasks that no worker has started, and remove them from the pipe.

        A worker that was killed between taking a task and recording it has also lost it. So the result is all submitted
        shared tasks except those that a worker has recorded or completed.
        """
        assert self._shared_out is not None, "dalify bug: workers without a pipe"
        with suppress(BlockingIOError):
            while Task.read_from(self._shared_out.fileno()) is not None:
                pass
        for other in self._workers:
            while other is not None and self._progress[other.number, 0] == READING and not other.has_ended:
                time.sleep(_POLL_S)
        begun = set(self._progress[:, 0].tolist())
        for other in self._workers:
            if other is not None:
                self._take_results(other)
        return [job for number, job in self._out.items() if job.worker is None and number not in begun]

    def close(self) -> None:
        """End the workers; received results stay readable. Can be called repeatedly, and in a forked process."""
        self._closed = True
        if not self._owner.is_this_process:
            return
        with suppress(OSError):
            self._wake_writer.send_bytes(b"")  # a thread that waits for results releases the lock
        with self._collecting, self._submitting:
            self._discard_tasks()
            self._wake_writer.close()
            self._wake_reader.close()

    def _discard_tasks(self) -> None:
        self._waiting.clear()
        self._out.clear()
        self._delivering.clear()
        end_workers(self._workers, self._owner)
        for pipe in (self._shared_tasks, self._shared_out):
            if pipe is not None:
                pipe.close()
        self._shared_tasks = self._shared_out = None
        self._generations, self._progress = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        if self._control is not None:
            self._control.close()
            self._control = None

    def _close_in_child(self) -> None:
        """Close this end of the pipes in a forked process, so that the workers detect the end of their parent."""
        self._collecting, self._submitting = threading.RLock(), threading.RLock()  # the fork may copy them locked
        workers = [worker for worker in self._workers if worker is not None]
        pipes = [pipe for worker in workers for pipe in (worker.own_tasks, worker.results, worker.life)]
        for pipe in [*self._pending, *pipes, self._shared_tasks, self._wake_writer, self._wake_reader]:
            if pipe is not None and not pipe.closed:
                pipe.close()
        for worker in workers:
            # At its end, multiprocessing would terminate or join them, although they are not its children.
            multiprocessing_process._children.discard(worker.process)  # pyright: ignore[reportAttributeAccessIssue]
        self._workers.clear()


def _text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _cannot_start(error: OSError) -> WorkerError:
    return WorkerError(
        f"a worker process cannot be started: {error}.",
        hint="Raise the limit on open files (ulimit -n) or processes (ulimit -u), or use fewer worker processes.",
    )


def _end_of_pool(reference: weakref.ref[WorkerPool], workers: list[Worker | None], owner: Owner) -> None:
    """End the workers of a deleted pool, or of a pool in use at the end of the program."""
    pool = reference()
    if pool is None or was_interrupted():  # no other thread uses the workers, or the program was interrupted
        end_workers(workers, owner)
    else:  # with end_workers, a thread that waits for results would replace the ended workers
        pool.close()


_POOLS: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for pool in list(_POOLS):
        pool._close_in_child()


at_fork(_close_all_in_child)
