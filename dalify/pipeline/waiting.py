"""Detects pipelines whose functions wait for each other."""

from __future__ import annotations

import threading
from collections import defaultdict
from types import TracebackType
from typing import Protocol

from dalify.base.errors import PipelineStateError
from dalify.base.fork_lock import ForkLock
from dalify.base.threads import Thread as PoolThread


class Awaited(Protocol):
    """A pipeline for which threads wait."""

    def computes_in(self, thread: threading.Thread) -> bool:
        """Return whether a thread computes batches of the pipeline."""
        ...


# For each thread that calls a function of a pipeline, the pipelines for which the function waits.
_awaited: defaultdict[threading.Thread, list[Awaited]] = defaultdict(list)
# For each thread of the program, the pipelines whose functions it is calling: sources, and the functions of debug mode.
_calling: dict[threading.Thread, list[Awaited]] = {}
_guard = ForkLock()


def calls_functions(thread: threading.Thread) -> bool:
    """Return whether a thread may be calling a function of a pipeline."""
    return thread in _calling or isinstance(thread, PoolThread)


class Calling:
    """Context manager in which a thread of the program calls functions of a pipeline, whose lock it holds."""

    __slots__ = ("_pipeline",)

    def __init__(self, pipeline: Awaited) -> None:
        self._pipeline = pipeline

    def __enter__(self) -> None:
        """Record the thread."""
        _calling.setdefault(threading.current_thread(), []).append(self._pipeline)

    def __exit__(self, *_: object) -> None:
        """Remove the thread."""
        thread = threading.current_thread()
        pipelines = _calling[thread]
        pipelines.pop()
        if not pipelines:
            del _calling[thread]


def _needs(pipeline: Awaited, thread: threading.Thread) -> bool:
    """Return whether a pipeline can continue only after the function that a thread is calling."""
    return pipeline.computes_in(thread) or pipeline in _calling.get(thread, ())


def _waits_for(pipeline: Awaited, thread: threading.Thread, visited: set[int]) -> bool:
    """Return whether a pipeline waits for a thread, perhaps because of other pipelines."""
    if _needs(pipeline, thread):
        return True
    visited.add(id(pipeline))
    following = [each for other, found in _awaited.items() if _needs(pipeline, other) for each in found]
    return any(id(each) not in visited and _waits_for(each, thread, visited) for each in following)


class WaitingLock:
    """The lock of a pipeline, for a thread that calls a function of another pipeline.

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
            is_own = self._pipeline in _calling.get(self._thread, ())  # the thread holds the lock already
            if not is_own and _waits_for(self._pipeline, self._thread, set()):
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
