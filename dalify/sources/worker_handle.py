"""The worker processes of a pool, with the pipes to them; how they are ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from dalify.base.fork_hook import Owner
from dalify.base.interrupts import was_interrupted

# Time in seconds for a worker to finish its task when the pool is closed; then it gets SIGTERM.
_GRACE_S = 0.2
TERMINATION_S = 1.0
"""Time in seconds for a worker to end after SIGTERM; then it gets SIGKILL."""


class Worker:
    """A worker process, with the pool's ends of its pipes.

    Args:
        number: index of the worker.
        process: the process of ``multiprocessing``, which has been started.
        own_tasks: pipe for tasks that only this worker can execute.
        results: pipe for its results.
        life: pipe that the system closes when this process ends; then the worker ends.

    Attributes:
        number: see above, like `process`, `own_tasks`, `results` and `life`.
        process_id: its process id, also after the process has been closed.
        call: task and call that were seen last.
        call_since: when they were seen first.
        is_overdue: whether it was ended because a call took too long.
    """

    def __init__(self, number: int, process: Any, own_tasks: Connection, results: Connection, life: Connection) -> None:
        self.number = number
        self.process = process
        self.process_id: int = process.pid
        self.own_tasks = own_tasks
        self.results = results
        self.life = life
        self.call: tuple[int, int] | None = None
        self.call_since = 0.0
        self.is_overdue = False

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, also if other code has reaped it."""
        if not self.process.is_alive():
            return True
        try:
            os.kill(self.process_id, 0)
        except ProcessLookupError:
            return True
        return False

    def close(self) -> None:
        """Close the pipes, and release the process."""
        for pipe in (self.own_tasks, self.results, self.life):
            pipe.close()
        with suppress(ValueError):  # it is still running, for example because it waits for a disk
            self.process.close()


def end_workers(workers: list[Worker | None], owner: Owner) -> None:
    """End worker processes and wait for their end.

    Args:
        workers: the workers, which are removed from the list.
        owner: process that has started them; another one leaves them running.
    """
    if not owner.is_this_process:
        return
    living = [worker for worker in workers if worker is not None]
    for worker in living:
        worker.own_tasks.close()
    deadline = time.monotonic() + (0.0 if was_interrupted() else _GRACE_S)
    for worker in living:
        # Results are read, because a worker blocked by a full pipe does not detect that its task pipe is closed.
        while worker.process.is_alive() and time.monotonic() < deadline:
            ready = connection.wait([worker.results, worker.process.sentinel], deadline - time.monotonic())
            if worker.results in ready:
                try:
                    worker.results.recv_bytes()
                except (EOFError, OSError, MemoryError):
                    worker.process.join(max(0.0, deadline - time.monotonic()))
                    break
    for end_process in ("terminate", "kill"):
        ended = [worker for worker in living if worker.process.is_alive()]
        for worker in ended:
            getattr(worker.process, end_process)()
        deadline = time.monotonic() + TERMINATION_S
        for worker in ended:
            worker.process.join(max(0.0, deadline - time.monotonic()))
    for worker in living:
        worker.close()
    workers.clear()
