"""A worker process of a pool, and the end of the processes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from dalify.base.fork_hook import Owner
from dalify.base.interrupts import was_interrupted

__all__ = ["TERMINATION_S", "PoolWorker", "end_workers"]

# Time in seconds for a worker to finish its task when the pool is closed; then it gets SIGTERM.
_GRACE_S = 0.2
# Time in seconds for a worker to end after SIGTERM; then it gets SIGKILL.
TERMINATION_S = 1.0


class PoolWorker:
    """A worker process with its pipes.

    Args:
        number: index of the worker.
        process: its process.
        own_tasks: end of the pipe for tasks of this worker alone.
        results: end of the pipe for its results.
        life: end of a pipe that the worker detects as closed when this process ends.

    Attributes:
        process_id: id of the process.
        call: task and call that were seen last; None before the first.
        call_since: when that call was first seen.
        is_overdue: whether it was ended because of the time limit.
    """

    def __init__(self, number: int, process: Any, own_tasks: Connection, results: Connection, life: Connection) -> None:
        self.number = number
        self.process = process
        self.process_id: int = process.pid
        self.own_tasks = own_tasks
        self.results = results
        self.life = life
        self.call: tuple[int, int] | None = None  # task and call that were seen last
        self.call_since = 0.0
        self.is_overdue = False

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        if not self.process.is_alive():
            return True
        try:
            os.kill(self.process_id, 0)
        except ProcessLookupError:  # other code has reaped it
            return True
        return False

    def close(self) -> None:
        """Close the pipes, and release the process."""
        for pipe in (self.own_tasks, self.results, self.life):
            pipe.close()
        with suppress(ValueError):  # it is still running, for example because it waits for a disk
            self.process.close()


def end_workers(workers: list[PoolWorker | None], owner: Owner) -> None:
    """End the processes and empty the list; does nothing in a forked process.

    Args:
        workers: the workers; None for one that could not be replaced.
        owner: the process that has started them.
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
