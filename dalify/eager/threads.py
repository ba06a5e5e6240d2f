"""Threads that divide the samples of one call among them.

Alone because a pipeline's threads take chunks of many batches, and nobody waits for them; here the caller waits, and
takes part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dalify.base.held_error import HeldError

__all__ = ["Threads"]


class Threads:
    """Threads, which are started when they are first needed.

    Args:
        count: how many, the caller's included.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._executor: ThreadPoolExecutor | None = None
        self._process = 0

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks at the same time, the first one here, and wait for all.

        Raises:
            Exception: the error of the first task that failed.
        """
        if self._executor is None or self._process != os.getpid():  # threads do not survive a fork
            self._executor = ThreadPoolExecutor(max(1, self.count - 1), "dalify-dynamic")
            self._process = os.getpid()
        others = [self._executor.submit(task) for task in tasks[1:]]
        failure = HeldError()
        try:
            tasks[0]()
        except Exception as error:
            failure.hold(error)
        while others:
            try:
                others.pop(0).result()
            except Exception as error:
                failure.hold(error)
        failure.release()
