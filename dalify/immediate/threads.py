"""Threads that share the samples of one call with the calling thread, which waits for them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial

from dalify.base.first_error import FirstError
from dalify.base.fork_hook import Owner
from dalify.base.interrupts import Completion
from dalify.executor.threads import ThreadPool

__all__ = ["Threads"]


class _Call:
    """One call that is divided among threads."""

    def __init__(self, count: int) -> None:
        self.lock = threading.Lock()
        self.failure = FirstError()
        self.ended = [Completion() for _ in range(count)]

    def run(self, number: int, task: Callable[[], None]) -> None:
        """Run one of its tasks and store its exception."""
        try:
            task()
        except BaseException as error:
            with self.lock:
                self.failure.record(error, number)
        finally:
            self.ended[number].set()


class Threads:
    """A thread pool, started at first use.

    Args:
        count: number of threads, including the caller's.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPool | None = None
        self._owner = Owner()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks in parallel, the first one in the calling thread, and wait for all.

        Raises:
            Exception: the error of the first task that failed.
        """
        if self._pool is None or not self._owner.is_this_process:  # threads do not survive a fork
            self._pool = ThreadPool(max(1, self.count - 1), "dalify-dynamic")
            self._owner.take_over()
            weakref.finalize(self, self._pool.close, wait=False).atexit = False
        call = _Call(len(tasks))
        self._pool.submit(0, 0, [partial(call.run, number, task) for number, task in enumerate(tasks[1:], 1)])
        try:
            tasks[0]()
        except Exception as error:
            with call.lock:
                call.failure.record(error)
        for ended in call.ended[1:]:
            ended.wait()
        call.failure.raise_first()
