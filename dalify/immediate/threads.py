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
        failure, lock = FirstError(), threading.Lock()
        ended = [Completion() for _ in tasks[1:]]

        def run(number: int) -> None:
            try:
                tasks[number]()
            except BaseException as error:
                with lock:
                    failure.record(error, number)
            finally:
                ended[number - 1].set()

        self._pool.submit(0, 0, [partial(run, number) for number in range(1, len(tasks))])
        try:
            tasks[0]()
        except Exception as error:
            with lock:
                failure.record(error)
        for completion in ended:
            completion.wait()
        failure.raise_first()
