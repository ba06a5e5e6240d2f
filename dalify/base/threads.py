"""Threads that compute: threads of pipelines, and threads that help the calling thread.

Tasks of earlier batches have priority. Threads that would be idle at the end of a batch run tasks of the next one.
"""

from __future__ import annotations

import atexit
import heapq
import itertools

# Imported first: Python calls exit handlers in reverse order, and its handler must be called after dalify's.
import multiprocessing.util  # noqa: F401  # pyright: ignore[reportUnusedImport]
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Self, TypeVar, cast

from dalify.base.errors import PipelineStateError, WorkerError
from dalify.base.first_error import FirstError
from dalify.base.fork_hook import Owner, at_fork
from dalify.base.fork_lock import ForkLock
from dalify.base.interrupts import (
    PATIENCE_S,
    Completion,
    deferred_interrupts,
    is_main_thread,
    leave_running,
    was_interrupted,
)
from dalify.base.processors import available_processors

_T = TypeVar("_T")
Task = Callable[[], None]
OnFailure = Callable[[BaseException], None]

# Several threads also on small machines, because opening a remote file is mostly waiting.
_MIN_SHARED_THREADS = 16
# Interval of checks whether a thread that has not begun still exists.
_CHECK_S = 0.05


class _Begun(threading.Event):
    """The event for which ``Thread.start`` waits; raises MemoryError if the thread ends without setting it."""

    function: weakref.ref[Any] | None = None  # only the thread refers to the function that it calls first

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the thread has begun."""
        while not super().wait(_CHECK_S):
            if self.function is not None and self.function() is None and not self.is_set():
                raise MemoryError("there is no memory for it")
        return True


class Thread(threading.Thread):
    """A daemon thread: a pipeline that was not closed must not prevent the interpreter from ending.

    If the new thread has no memory for its first function, Python's ``start`` would wait forever.

    Args:
        target: the function.
        name: name of the thread.
        args: arguments of the function.
    """

    def __init__(self, target: Callable[..., object], name: str, args: tuple[Any, ...] = ()) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)
        self._started = _Begun()

    @property
    def _bootstrap(self) -> Callable[[], None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        function: Callable[[], None] = partial(cast("Any", threading.Thread)._bootstrap, self)
        self._started.function = weakref.ref(function)
        return function

    def start(self) -> None:
        """Start the thread.

        Raises:
            WorkerError: the system allows no more threads, or there is no memory.
        """
        try:
            super().start()
        except (RuntimeError, MemoryError) as error:
            getattr(threading, "_limbo", {}).pop(self, None)  # where Python keeps threads that have not begun
            raise WorkerError(
                f"a thread cannot be started: {error}.",
                hint="Raise the limits on memory (ulimit -v) or on processes and threads (ulimit -u), or those of the "
                "container, or use fewer threads and worker processes.",
            ) from error


class _Queue:
    """The shared state of threads, without a reference to the pool, so that unused pipelines can be collected."""

    def __init__(self) -> None:
        self.condition = threading.Condition()  # reentrant: garbage collection may end a pool while its lock is held
        self.heap: list[tuple[int, int, int, Task, OnFailure]] = []
        self.closed = False


def _work(queue: _Queue) -> None:
    condition, heap = queue.condition, queue.heap
    while True:
        task = on_failure = None
        try:
            with condition:
                while not heap:
                    if queue.closed:
                        return
                    condition.wait()
                *_, task, on_failure = heapq.heappop(heap)
            task()
            # Free its data before waiting for the next task.
            del task, on_failure
        except BaseException as error:  # out of memory, for example; the thread continues with the next task
            if on_failure is not None:
                on_failure(error)


class ThreadPool:
    """Threads that run tasks in the order of batch, stage and submission.

    Args:
        size: number of threads, at least 1.
        name: prefix of the threads' names.

    Raises:
        WorkerError: the system allows no more threads.
    """

    def __init__(self, size: int, name: str) -> None:
        self.size = size
        self.name = name
        self._queue = _Queue()
        self._numbers = itertools.count()
        self._threads = [Thread(_work, f"{name}-{number}", (self._queue,)) for number in range(size)]
        _pools.add(self)
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # the last thread may have started if the user interrupts
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self.close()
            raise

    def renewed(self) -> Self:
        """Return an equal pool for a forked process, which has no copies of the threads."""
        return type(self)(self.size, self.name)

    def submit(self, batch: int, stage: int, tasks: list[Task], on_failure: OnFailure) -> None:
        """Queue tasks.

        Args:
            batch: number of the batch.
            stage: number of the stage in the plan.
            tasks: functions to run, in any order and in parallel.
            on_failure: called with the error of a task that raises, in its thread; the caller may be waiting for the
                task. Tasks handle their errors themselves, so this happens only if there is no memory, for example.

        Raises:
            PipelineStateError: the threads have ended.
        """
        self.check_open()
        queue = self._queue
        with deferred_interrupts(), queue.condition:
            for task in tasks:
                heapq.heappush(queue.heap, (batch, stage, next(self._numbers), task, on_failure))
            queue.condition.notify(len(tasks))

    def __contains__(self, thread: threading.Thread) -> bool:
        """Return whether a thread is one of these threads."""
        return thread in self._threads

    def check_open(self) -> None:
        """Raise an error in the main thread if the threads have ended, because it would wait forever.

        Raises:
            PipelineStateError: the threads have ended.
        """
        if self._queue.closed and is_main_thread():
            raise PipelineStateError(
                "the pipeline's threads have ended: the program is ending, or another thread closed the pipeline.",
                hint="To use the pipeline at the end of the program, build it first and then register a function with "
                "atexit: the function is called before the threads end.",
            )

    def close(self, *, wait: bool = True) -> None:
        """Drop queued tasks and end the threads after their current tasks.

        Args:
            wait: return only after the threads have ended.
        """
        queue = self._queue
        with deferred_interrupts(), queue.condition:
            queue.closed = True
            queue.heap.clear()
            queue.condition.notify_all()
        _ending.update(self._threads)
        if wait:
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join()


_pools: weakref.WeakSet[ThreadPool] = weakref.WeakSet()
_ending: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_others: weakref.WeakKeyDictionary[threading.Thread, Callable[[], Any]] = weakref.WeakKeyDictionary()


def ends_with_program(thread: threading.Thread, close: Callable[[], Any]) -> None:
    """Register a thread outside of pools to end with the program, or to be abandoned if Ctrl-C ends it.

    Args:
        thread: a daemon thread.
        close: requests its end; may be called repeatedly.
    """
    _others[thread] = close


@atexit.register
def _end_threads() -> None:
    # Threads that run compiled code while the interpreter is finalized would crash it.
    deadline = time.monotonic() + PATIENCE_S if was_interrupted() else None
    for pool in list(_pools):
        pool.close(wait=False)
    for thread, close in list(_others.items()):
        close()
        _ending.add(thread)
    for thread in list(_ending):
        if thread.ident is None:
            continue  # not started because of Ctrl-C
        thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            leave_running()


at_fork(lambda: (_pools.clear(), _others.clear()))  # they exist only in the parent


class AwaitedThreads(ThreadPool):
    """Threads for callers that wait for each batch; a single task runs in the calling thread.

    Args:
        size: number of threads, at least 1.
        name: prefix of thread names.
    """

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size if size > 1 else 0, name)
        self.size = size
        self._here = threading.local()

    def submit(self, batch: int, stage: int, tasks: list[Task], on_failure: OnFailure) -> None:
        """Queue several tasks, or run them here."""
        if self.size > 1 and len(tasks) > 1:
            super().submit(batch, stage, tasks, on_failure)
            return
        waiting: deque[Task] | None = getattr(self._here, "waiting", None)
        if waiting is not None:  # called by a task in this thread; the outer loop runs the tasks
            waiting.extend(tasks)
            return
        self._here.waiting = waiting = deque(tasks)
        try:
            while waiting:
                waiting.popleft()()
        finally:
            self._here.waiting = None


class HelperThreads:
    """Threads that run the tasks of a call together with the calling thread; started at first use.

    The caller runs every task that no thread has started. So a call ends even if all threads are busy, or have ended
    with the program, and tasks may make calls themselves.

    Args:
        count: number of threads, including the caller's.
        name: prefix of thread names.
    """

    def __init__(self, count: int, name: str) -> None:
        self.count = count
        self._name = name
        self._pool: ThreadPool | None = None
        self._finalizer: weakref.finalize[..., HelperThreads] | None = None
        self._owner = Owner()
        self._lock = ForkLock()

    def _started(self) -> ThreadPool:
        with self._lock:
            if self._owner.take_over():  # a forked process has no threads
                self._pool = None
                if self._finalizer is not None:
                    self._finalizer.detach()
            if self._pool is None:
                self._pool = ThreadPool(self.count - 1, self._name)
                self._finalizer = weakref.finalize(self, self._pool.close, wait=False)
                self._finalizer.atexit = False
            return self._pool

    def run(self, tasks: Sequence[Callable[[], _T]]) -> list[_T]:
        """Run tasks in parallel in the caller's context, and return their results; Ctrl-C drops tasks not started.

        Raises:
            Exception: the error of the first task that failed.
        """
        results: list[Any] = [None] * len(tasks)
        left = deque(enumerate(tasks))
        ended = [Completion() for _ in tasks]
        failure, lock = FirstError(), threading.Lock()
        caller = threading.get_ident()

        def work() -> None:
            while True:
                try:
                    number, task = left.popleft()
                except IndexError:
                    return
                try:
                    if not failure:
                        results[number] = task()
                except BaseException as error:
                    if threading.get_ident() == caller and not isinstance(error, Exception):
                        raise
                    with lock:
                        failure.record(error, number)
                finally:
                    ended[number].set()

        def release_caller(error: BaseException) -> None:
            with lock:
                failure.record(error)
            for completion in ended:
                completion.set()

        helpers = min(self.count, len(tasks)) - 1
        if helpers > 0:
            with suppress(WorkerError):  # without threads, the caller runs all tasks
                copies = [partial(copy_context().run, work) for _ in range(helpers)]
                self._started().submit(0, 0, copies, release_caller)
        try:
            work()
            for completion in ended:
                completion.wait()
        finally:
            left.clear()
        failure.raise_first()
        return results


_shared = HelperThreads(max(_MIN_SHARED_THREADS, available_processors()), "dalify-shared")


def in_parallel(tasks: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run tasks in parallel on shared threads of the process, for callers without threads; see `HelperThreads.run`."""
    return _shared.run(tasks)
