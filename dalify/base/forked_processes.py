"""The processes that were forked from this one, and whether they may be running.

A forked process has the views of shared memory that this process had at the fork, so the memory must not be used again
while it runs. Each fork has a pipe, which only the forked process and its own children keep open for writing. So the
pipe reports its end when all of them have ended, or have replaced their memory by exec.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from dalify.base.fork_lock import ForkLock

# Each pipe needs a file descriptor as long as the forked process runs.
_MAX_PIPES = 64


class ForkedProcesses:
    """The forks of this process since the first call of `observe`, numbered from 0.

    Ctrl-C may end the methods that are called at a fork at any point. Then it may be unknown whether a process runs.

    Attributes:
        begun: number of forks that have begun.
        finished: number of forks after which this process has continued.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.finished = 0
        self._pipes: dict[int, int] = {}  # ends for reading, by number of the fork
        self._without_pipe: list[range] = []  # other forks
        self._inherited: list[int] = []  # ends for writing, of the forks that created this process
        self._writer = -1  # of the fork in progress
        self._polling = ForkLock()
        self._prepare: Callable[[], object] | None = None
        self._here = threading.local()

    def observe(self, prepare: Callable[[], object]) -> None:
        """Observe the forks of this process from now on, and call a function before each."""
        self._prepare = prepare

    @contextmanager
    def ignored(self) -> Generator[None]:
        """Return a context manager; forks of this thread in its block are not counted.

        The forked processes must not read memory of this process.
        """
        self._here.is_ignored = True
        try:
            yield
        finally:
            self._here.is_ignored = False

    # -- called at a fork, after other threads have been stopped from forking

    def before_fork(self) -> None:
        """Create the pipe."""
        if self._prepare is None or getattr(self._here, "is_ignored", False):
            return
        self._prepare()
        number = self.begun
        try:
            self._close_ended()
            if len(self._pipes) < _MAX_PIPES:
                reader, self._writer = os.pipe()
                os.set_blocking(reader, False)
                self._pipes[number] = reader
        except OSError:  # too many open files
            pass
        if number in self._pipes:
            self.begun += 1
        else:
            self.add_without_pipe()

    def add_without_pipe(self) -> None:
        """Count a fork without a pipe, because `before_fork` was interrupted, or no further file can be opened."""
        if self._prepare is None or getattr(self._here, "is_ignored", False):
            return
        number = self.begun
        self.begun += 1
        known = self._without_pipe
        start = known.pop().start if known and known[-1].stop == number else number
        known.append(range(start, number + 1))

    def continue_in_parent(self) -> None:
        """Close the end for writing in the parent."""
        self._close_writer()
        self.finished = self.begun

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, -1
        if writer >= 0:
            os.close(writer)

    def begin_child(self) -> None:
        """Keep only the end for writing in the child."""
        for reader in self._pipes.values():
            os.close(reader)
        self._pipes.clear()
        if self._writer >= 0:
            self._inherited.append(self._writer)
            self._writer = -1
        self._without_pipe.clear()
        self._here.is_ignored = False
        self.finished = self.begun

    def may_run(self, first: int, end: int) -> bool:
        """Return whether a process of the forks from `first` to `end` (exclusive) may be running."""
        if first >= end:
            return False
        self._close_ended()
        return any(each.start < end and first < each.stop for each in self._without_pipe) or any(
            number in self._pipes for number in range(first, end)
        )

    def _close_ended(self) -> None:
        with self._polling:
            for number, reader in list(self._pipes.items()):
                with suppress(BlockingIOError):  # running
                    os.read(reader, 1)
                    del self._pipes[number]  # first, because Ctrl-C must not leave a closed file
                    os.close(reader)

    def leave(self) -> None:
        """Declare that this process does not read memory of the processes from which it was forked."""
        while self._inherited:
            os.close(self._inherited.pop())


forked_processes = ForkedProcesses()
