"""Handling of Ctrl-C: deferred in critical blocks; the process ends quickly, with the status of SIGINT."""

from __future__ import annotations

import _signal as untyped_signal  # pyright: ignore[reportMissingImports]
import _thread
import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, cast

from dalify.base.fork_hook import at_fork

# The functions of ``signal`` also convert to enumerations, which takes ten times as long.
_signal: Any = untyped_signal

# Maximum time that a process waits for its threads after Ctrl-C, in seconds.
PATIENCE_S = 0.15


# Stored, because ``threading.main_thread().ident`` takes two Python calls.
_main_thread = threading.main_thread().ident


def _begin_child() -> None:
    """Set the main thread of a forked child: the thread that forked."""
    global _main_thread
    _main_thread = _thread.get_ident()


at_fork(_begin_child)


def is_main_thread() -> bool:
    """Return whether this is the thread that receives signals."""
    return _thread.get_ident() == _main_thread


class _Watch:
    """Context manager that handles SIGINT in its block; without effect in other threads than the main thread."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        """Install the handler."""
        self._before: Any = None
        if is_main_thread():
            before = _signal.getsignal(signal.SIGINT)
            if callable(before):
                self._before = before
                _signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""

    def _end(self) -> Any:
        """Restore and return the previous handler; None if none was installed."""
        before = self._before
        if before is not None:
            _signal.signal(signal.SIGINT, before)  # calls `_note` for pending signals first, which uses `_before`
            self._before = None
        return before


class deferred_interrupts(_Watch):  # noqa: N801 -- a context manager, used like a function
    """Context manager: a SIGINT in its block is handled at the end of the block, which must be short."""

    __slots__ = ("_noted",)

    def __init__(self) -> None:
        self._noted: tuple[int, FrameType | None] | None = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame

    def __exit__(self, *_: object) -> None:
        """Handle the recorded signal."""
        before = self._end()
        if before is not None and self._noted is not None:
            before(*self._noted)


def can_be_interrupted() -> bool:
    """Return whether Ctrl-C can interrupt this thread: it receives signals and does not defer them."""
    if not is_main_thread():
        return False
    handler = _signal.getsignal(signal.SIGINT)
    return not isinstance(getattr(handler, "__self__", None), deferred_interrupts)


class kept_interrupts(_Watch):  # noqa: N801
    """Context manager: a KeyboardInterrupt in its block is raised at its end, even if a library suppresses it.

    Python ignores exceptions in callbacks of compiled code, and an interrupted import may raise ImportError. The block
    must not call user code, which may handle the interrupt.
    """

    __slots__ = ("_raised",)

    def __init__(self) -> None:
        self._raised: BaseException | None = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        before = self._before
        # If this happens while the block is entered or left, the handler must be restored here.
        _signal.signal(signal.SIGINT, before)
        try:
            before(number, frame)
        except BaseException as error:
            self._raised = error
            raise
        finally:
            if _signal.getsignal(signal.SIGINT) != before:  # the user's handler has installed another one
                self._before = None
        if self._before is not None:
            _signal.signal(signal.SIGINT, self._note)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Raise an interrupt that was suppressed."""
        self._end()
        raised, self._raised = self._raised, None
        if raised is not None and raised is not error:
            raise raised from None


class CallAtEnd(partial[Any]):
    """Calls a function when the object is deleted: ``CallAtEnd(free.append, memory)``.

    Without Python code if the function is in C: a KeyboardInterrupt in a ``__del__`` in Python is printed and ignored.
    """

    __del__ = cast("type[partial[Any]]", partial).__call__


class Completion:
    """A one-time event whose ``wait`` Ctrl-C can interrupt at any point.

    ``threading.Event`` cannot be used if the main thread waits: a KeyboardInterrupt in its ``wait`` releases the
    event's lock although another thread holds it, and ``set`` fails in that thread.
    """

    __slots__ = ("_lock", "_unset")

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._unset = [True]

    def set(self) -> None:
        """Wake all waiting threads. Further calls have no effect."""
        try:
            self._unset.pop()  # only one thread succeeds
        except IndexError:
            return
        self._lock.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the event.

        Args:
            timeout_s: maximum time in seconds; None for no limit.

        Returns:
            True if the event has been set, False after a timeout.
        """
        if self._unset:
            if timeout_s is None:
                with self._lock:  # released for the next waiting thread
                    return True
            if not self._lock.acquire(timeout=timeout_s):
                return False
            self._lock.release()
        return True


_has_left_threads = False


def was_interrupted() -> bool:
    """Return whether the interpreter ends because of an unhandled KeyboardInterrupt."""
    is_interactive = hasattr(sys, "ps1")  # there, an old interrupt may still be the last error
    return getattr(sys, "last_type", None) is KeyboardInterrupt and not is_interactive


def leave_running() -> None:
    """Record that threads are still running after Ctrl-C: the process must end before the interpreter is finalized."""
    global _has_left_threads
    _has_left_threads = True


@atexit.register  # registered early, so called late
def _end_as_interrupted() -> None:
    if not was_interrupted():
        return
    if not _has_left_threads:
        # CPython records that a KeyboardInterrupt ends the program, but resets this when any thread calls exec() with a
        # string afterwards, as compilers do. The exit status would then be 1, and a shell loop would continue.
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")
        return
    for name, function in (("multiprocessing.util", "_exit_function"), ("logging", "shutdown")):
        if name in sys.modules:
            with suppress(Exception):
                getattr(sys.modules[name], function)()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
