"""Detects pipelines whose functions wait for each other."""

from __future__ import annotations

import threading
from collections import defaultdict
from types import TracebackType
from typing import Protocol

from dalify.base.errors import PipelineStateError
from dalify.base.fork_lock import ForkLock


class Awaited(Protocol):
    """A pipeline for which threads wait."""

    def computes_in(self, thread: threading.Thread) -> bool:
        """Return whether a thread computes batches of the pipeline."""
        ...


# For each thread of a pipeline, the pipelines for which the function that it calls waits.
_awaited: defaultdict[threading.Thread, list[Awaited]] = defaultdict(list)
_guard = ForkLock()


def _waits_for(pipeline: Awaited, thread: threading.Thread, visited: set[int]) -> bool:
    """Return whether a pipeline waits for a thread, perhaps because of other pipelines."""
    if pipeline.computes_in(thread):
        return True
    visited.add(id(pipeline))
    following = [each for other, found in _awaited.items() if pipeline.computes_in(other) for each in found]
    return any(id(each) not in visited and _waits_for(each, thread, visited) for each in following)


class WaitingLock:
    """The lock of a pipeline, for a thread that computes a batch of another pipeline.

    Args:
        lock: the lock.
        pipeline: the pipeline to which it belongs.
        thread: the calling thread.
    """

    def __init__(self, lock: ForkLock, pipeline: Awaited, thread: threading.Thread) -> None:
        self._lock = lock
        self._pipeline = pipeline
        self._thread = thread

    def __enter__(self) -> None:
        """Acquire the lock.

        Raises:
            PipelineStateError: the pipeline waits for this thread.
        """
        # The thread is recorded before it waits: of threads that would wait for each other, the last one raises.
        with _guard:
            if _waits_for(self._pipeline, self._thread, set()):
                raise PipelineStateError(
                    "the function uses a pipeline that waits for this function: they would wait for each other.",
                    hint="Functions of two pipelines must not run each other's pipeline. Use a third pipeline, or call "
                    "the method between batches.",
                )
            _awaited[self._thread].append(self._pipeline)
        try:
            self._lock.__enter__()
        except BaseException:
            self._forget()
            raise

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self._lock.__exit__(exception_type, exception_value, traceback)
        self._forget()

    def _forget(self) -> None:
        with _guard:
            pipelines = _awaited[self._thread]
            pipelines.pop()
            if not pipelines:
                del _awaited[self._thread]
