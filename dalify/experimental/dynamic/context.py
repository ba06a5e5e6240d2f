"""How calls run: ``EvalContext``, the threads, deferred calls and a checkpoint, and ``EvalMode``, when they compute."""

from __future__ import annotations

import os
import threading
from enum import Enum
from typing import Any
from weakref import WeakSet

from dalify.base.context_stack import ContextStack
from dalify.base.errors import ArgumentValueError
from dalify.base.narrow import is_integer
from dalify.base.processors import available_processors
from dalify.base.threads import HelperThreads
from dalify.experimental.dynamic.devices import Device
from dalify.experimental.dynamic.states import Checkpoint
from dalify.experimental.dynamic.streams import Stream, get_current_stream, stream

_MAX_THREADS_PER_CPU = 100
_VARIABLE = "DALI_NUM_THREADS"
_local = threading.local()
_contexts: ContextStack[EvalContext] = ContextStack()
_modes: ContextStack[EvalMode] = ContextStack()
_chosen: list[int] = []
_pools: list[ThreadPool] = []


def get_num_threads() -> int:
    """Return the default number of threads of contexts.

    It is the value of ``set_num_threads``, otherwise that of the environment variable ``DALI_NUM_THREADS``, otherwise
    the number of CPUs of this process.

    Raises:
        ArgumentValueError: the variable is not a positive integer.
    """
    if _chosen:
        return _chosen[0]
    text = os.environ.get(_VARIABLE)
    if not text:
        return available_processors()
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentValueError(f"the environment variable {_VARIABLE} must be a positive integer; got {text!r}.")
    return int(text)


def set_num_threads(n: int | None) -> None:
    """Set the default number of threads of contexts.

    Args:
        n: 1 to 100 per CPU; None for the default.

    Raises:
        ArgumentValueError: ``n`` is out of range.
    """
    if n is None:
        _chosen.clear()
        return
    maximum = _MAX_THREADS_PER_CPU * (os.cpu_count() or 1)
    if not is_integer(n) or not 1 <= n <= maximum:
        raise ArgumentValueError.here(f"the number of threads must be in [1, {maximum}]; got {n!r}.")
    _chosen[:] = [n]


class ThreadPool(HelperThreads):
    """Threads that contexts may share; they divide the samples of a batch.

    Args:
        num_threads: number of threads including the caller's; default ``get_num_threads()``.
        device_id: index of the accelerator, -1 for the current one; only the property `device_id` uses it.

    Raises:
        ArgumentValueError: ``num_threads`` is not positive.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = -1) -> None:
        count = get_num_threads() if num_threads is None else num_threads
        if not is_integer(count) or count < 1:
            raise ArgumentValueError.here(f"num_threads must be a positive integer; got {count!r}.")
        super().__init__(count, "dalify-dynamic")
        self._device = device_id

    @property
    def device_id(self) -> int | None:
        """The specified index, or the index of the current accelerator; None without an accelerator."""
        return Device.current().device_id if self._device == -1 else self._device

    @property
    def num_threads(self) -> int:
        """Number of threads, including the caller's."""
        return self.count


def _default_pool() -> ThreadPool:
    """Return the threads of all contexts without a number, created again if the default has changed."""
    count = get_num_threads()
    if not _pools or _pools[0].num_threads != count:
        _pools[:] = [ThreadPool(count)]
    return _pools[0]


class EvalContext:
    """Threads, accelerator and stream of calls; a ``with`` block applies it to the calls of this thread.

    Args:
        num_threads: number of threads that compute and read; default ``get_num_threads()``.
        device_id: index of the accelerator; by default the current one.
        cuda_stream: CUDA stream for work on the accelerator; by default torch's current one.
        thread_pool: threads to use instead of ``num_threads``.

    Attributes:
        pending: deferred calls that are not computed yet.

    Raises:
        ArgumentValueError: both ``num_threads`` and ``thread_pool``, or a number that is not positive.
    """

    def __init__(
        self,
        *,
        num_threads: int | None = None,
        device_id: int | None = None,
        cuda_stream: Any = None,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        if num_threads is not None and thread_pool is not None:
            raise ArgumentValueError.here("specify either num_threads or thread_pool, not both.")
        self._pool = ThreadPool(num_threads) if num_threads is not None else thread_pool
        self._device_id = device_id
        self._stream = None if cuda_stream is None else stream(stream=cuda_stream)
        self.pending: WeakSet[Any] = WeakSet()
        self._checkpoint = Checkpoint()

    @staticmethod
    def default() -> EvalContext:
        """Return the context of this thread outside all ``with`` blocks."""
        found = getattr(_local, "default", None)
        if found is None:
            found = _local.default = EvalContext()
        return found

    @staticmethod
    def current() -> EvalContext:
        """Return the context of the innermost ``with`` block of this thread, or the default one."""
        return _contexts.innermost or EvalContext.default()

    @property
    def num_threads(self) -> int:
        """Number of threads."""
        return self.thread_pool.num_threads

    @property
    def thread_pool(self) -> ThreadPool:
        """The threads."""
        return self._pool or _default_pool()

    @property
    def device_id(self) -> int | None:
        """Index of the accelerator; None without one."""
        return Device.current().device_id if self._device_id is None else self._device_id

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the states that are registered in this context."""
        return self._checkpoint

    @property
    def cuda_stream(self) -> Stream | None:
        """The stream for work on the accelerator; None for torch's current one."""
        return self._stream if self._stream is not None else get_current_stream()

    def evaluate_all(self) -> None:
        """Compute the deferred calls of this context whose results are still referenced.

        Raises:
            DalifyError: the first error of a call.
        """
        for call in list(self.pending):
            self.pending.discard(call)
            call.result(0)

    def cached_results(self, invocation: Any) -> None:
        """Return None: results are not cached."""

    def cache_results(self, invocation: Any, results: Any) -> None:
        """Do nothing, see ``cached_results``."""

    def __enter__(self) -> EvalContext:
        """Make this the context of the thread."""
        _contexts.chosen.append(self)
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        """Compute deferred calls, unless the block failed, and restore the previous context."""
        try:
            if exc_type is None:
                self.evaluate_all()
        finally:
            _contexts.chosen.pop()


class EvalMode(Enum):
    """When the operators of dynamic mode compute; a ``with`` block sets the mode of its thread.

    Attributes:
        deferred: when a result is accessed. Unused results are not computed. Errors that need data are raised then,
            and name the line of the call.
        eager: before the call returns. DALI computes such calls in another thread.
        sync_cpu: like eager.
        sync_full: before the call returns, including work on the accelerator.
        default: eager.
    """

    deferred = 1
    eager = 2
    sync_cpu = 3
    sync_full = 4
    default = 2

    @staticmethod
    def current() -> EvalMode:
        """Return the mode of this thread."""
        return _modes.innermost or EvalMode.eager

    def __enter__(self) -> EvalMode:
        """Make this the mode of the thread."""
        _modes.chosen.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous mode."""
        _modes.chosen.pop()
