"""Delays forks until no thread is in a block that may hold locks.

A fork copies the memory of the process and one of its threads. In the child, locks that other threads hold (of imports,
compilers and libraries) are never released. So threads compute in ``working()`` blocks, which take milliseconds except
in the first batch, and a fork waits for their end.

It also waits for ending threads: libraries free thread-local data while they hold locks, after Python has finished the
thread. With a fork at that time, the child would hang in the first OpenCV function that a new thread calls. OpenCV's
own threads are stopped before a fork; OpenCV starts them again when it needs them.

`forked_processes` is told of each fork here, because forks of several threads are consecutive here, and because an
interrupt is raised after the fork.
"""

from __future__ import annotations

import logging  # noqa: F401  # pyright: ignore[reportUnusedImport] -- its hook before a fork takes a lock: hooks run in reverse order, so ours must come later
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from dalify.base.fork_hook import at_fork
from dalify.base.forked_processes import forked_processes

# Compiling the first batch takes seconds. The limit avoids a deadlock if the work itself waits for the fork.
_LONGEST_WAIT_S = 60.0
_REPEAT_INTERRUPT_S = 0.01
# After Python has finished it, a thread ends within microseconds, or when it is scheduled next.
_LONGEST_END_S = 1.0
_POLL_S = 0.0002
_MAX_ENDING = 100


class _State:
    """The locks of all threads that have been in a ``working()`` block, where each holds its lock.

    Attributes:
        ending: native ids of threads that Python has finished; most of them have ended.
    """

    def __init__(self) -> None:
        self.forking = threading.RLock()
        self.locks: set[weakref.ref[Any]] = set()
        self.held: list[Any] = []
        self.ending: set[int] = set()
        self.opencv_threads = 0  # restored after the current fork
        self.is_interrupted = False
        self.has_missed = False  # the current fork did not wait for a thread
        self.is_clean = True


_state = _State()
_here = threading.local()


class _Presence:
    """Referenced only by thread-local data, so it is deleted when the thread ends."""

    def __init__(self) -> None:
        self._thread = threading.get_native_id()

    def __del__(self) -> None:
        """Record that the thread is ending, or wait for a current fork."""
        state = _state
        with state.forking:
            state.ending.add(self._thread)
            if len(state.ending) > _MAX_ENDING:
                state.ending = {thread for thread in state.ending if _exists(thread)}


def _exists(thread: int) -> bool:
    return Path("/proc/self/task", str(thread)).exists()  # without this folder, forks do not wait


def working() -> AbstractContextManager[Any]:
    """Return a context manager; forks of other threads wait until its block has ended.

    The block must not wait for another thread of the program, and must not call user code, which may wait. It is
    reentrant.
    """
    # The lock itself is returned, because its methods are in C: Ctrl-C cannot interrupt between acquiring it and the
    # block.
    return getattr(_here, "lock", None) or _new_lock()


def _new_lock() -> Any:
    lock = threading.RLock()
    with _state.forking:  # a fork in progress would not wait for this lock
        _register(lock)
        _here.lock = lock
        if threading.current_thread() is not threading.main_thread():
            _here.presence = _Presence()
    return lock


def _register(lock: Any) -> None:
    _state.locks.add(weakref.ref(lock, _state.locks.discard))


def is_clean_fork() -> bool:
    """Return whether no thread of the parent was working during the fork, so that its objects are usable."""
    return _state.is_clean


def _before_fork() -> None:
    state = _state
    try:
        state.forking.acquire()
        state.has_missed = False
        deadline = time.monotonic() + _LONGEST_WAIT_S
        for reference in list(state.locks):
            lock = reference()
            if lock is None:
                continue
            if lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                state.held.append(lock)
            else:
                state.has_missed = True
        deadline = time.monotonic() + _LONGEST_END_S
        while state.ending and time.monotonic() < deadline:
            state.ending = {thread for thread in state.ending if _exists(thread)}
            if state.ending:
                time.sleep(_POLL_S)
        state.ending.clear()  # ids of ended threads may have been reused
        _end_opencv_threads(state)
        forked_processes.before_fork()
    except KeyboardInterrupt:  # Python would only print it here
        state.is_interrupted = True
        state.has_missed = True
        forked_processes.add_without_pipe()


def _end_opencv_threads(state: _State) -> None:
    opencv = sys.modules.get("cv2")
    with suppress(Exception):  # another module named cv2, or one that is being imported
        count = opencv.getNumThreads()  # pyright: ignore[reportOptionalMemberAccess]
        if count > 1:
            opencv.setNumThreads(1)  # pyright: ignore[reportOptionalMemberAccess]
            state.opencv_threads = count


def _allow_opencv_threads(state: _State) -> None:
    count, state.opencv_threads = state.opencv_threads, 0
    if count:
        sys.modules["cv2"].setNumThreads(count)


def _continue_in_parent() -> None:
    """Continue in the parent after the fork."""
    state = _state
    try:
        forked_processes.continue_in_parent()
        _allow_opencv_threads(state)
    except KeyboardInterrupt:
        state.is_interrupted = True
    while state.held:
        state.held.pop().release()
    is_interrupted, state.is_interrupted = state.is_interrupted, False
    with suppress(RuntimeError):  # interrupted before it was acquired
        state.forking.release()
    if is_interrupted:  # raise it after the fork
        repeat = threading.Timer(_REPEAT_INTERRUPT_S, _interrupt_again)
        repeat.daemon = True
        repeat.start()


def _interrupt_again() -> None:
    main = threading.main_thread().ident
    while next(_frames_here(main), None) is not None:  # Python would ignore it again inside this module
        time.sleep(_REPEAT_INTERRUPT_S)
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)


def _frames_here(thread: int | None) -> Iterator[FrameType]:
    """Yield the frames of a thread that belong to this module."""
    frame = None if thread is None else sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] -- documented
    while frame is not None:
        if frame.f_code.co_filename == __file__:
            yield frame
        frame = frame.f_back


def _begin_child() -> None:
    global _state
    forked_processes.begin_child()
    is_clean = _state.is_clean and not _state.has_missed
    _allow_opencv_threads(_state)
    own = getattr(_here, "lock", None)
    is_held = any(lock is own for lock in _state.held)
    _state = _State()
    _state.is_clean = is_clean
    if own is not None:
        _register(own)
        if is_held:
            own.release()


at_fork(_begin_child, before=_before_fork, in_parent=_continue_in_parent)
