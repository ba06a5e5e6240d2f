"""Ctrl-C: it never comes in the middle of bookkeeping, and ends the process soon and with the status of SIGINT."""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]
import _thread
import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

# The module ``signal`` wraps the functions of ``_signal`` in conversions to enumerations, which take ten times as long.

__all__ = [
    "PATIENCE_S",
    "CallAtEnd",
    "Completion",
    "deferred_interrupts",
    "kept_interrupts",
    "leave_running",
    "was_interrupted",
]

# How long a process that ends after Ctrl-C waits for its threads.
PATIENCE_S = 0.15


class _Watch:
    """Context manager: watches SIGINT while the main thread is in its block. Other threads get no signals."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        """Begin to watch."""
        self._before: Any = None
        if threading.get_ident() == threading.main_thread().ident:
            before = _signal.getsignal(signal.SIGINT)
            if callable(before):
                self._before = before
                _signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Take a signal."""

    def _end(self) -> Any:
        """Put the handler back that was there before, and return it; None where nothing was watched."""
        before = self._before
        if before is not None:
            _signal.signal(signal.SIGINT, before)  # handles what is pending first, by ours, which still needs `_before`
            self._before = None
        return before


class deferred_interrupts(_Watch):  # noqa: N801 -- a context manager, used like a function
    """Context manager: a SIGINT in its block is handled at the end of the block, which must be brief."""

    __slots__ = ("_noted",)

    def __init__(self) -> None:
        self._noted: tuple[int, FrameType | None] | None = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame

    def __exit__(self, *_: object) -> None:
        """Handle the signal that was noted."""
        before = self._end()
        if before is not None and self._noted is not None:
            before(*self._noted)


class kept_interrupts(_Watch):  # noqa: N801
    """Context manager: a KeyboardInterrupt in its block leaves it, whatever libraries make of it.

    Python ignores exceptions in callbacks of compiled code, and modules that are interrupted while they are imported
    raise ImportError. The block must not call the user's code, which may handle the interrupt.
    """

    __slots__ = ("_raised",)

    def __init__(self) -> None:
        self._raised: BaseException | None = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        before = self._before
        # Where this happens on the way into the block or out of it, nobody else puts the handler back.
        _signal.signal(signal.SIGINT, before)
        try:
            before(number, frame)
        except BaseException as error:
            self._raised = error
            raise
        finally:
            if _signal.getsignal(signal.SIGINT) != before:  # the user's handler has set another one
                self._before = None
        if self._before is not None:
            _signal.signal(signal.SIGINT, self._note)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Raise what was lost."""
        self._end()
        raised, self._raised = self._raised, None
        if raised is not None and raised is not error:
            raise raised from None


class CallAtEnd(partial[Any]):
    """A call that is made when the object ends: ``CallAtEnd(free.append, memory)``.

    All of it is C if what is called is. A ``__del__`` in Python is where Ctrl-C is lost: Python prints the
    KeyboardInterrupt, ignores it, and the program goes on.
    """

    __del__ = partial.__call__


class Completion:
    """An event that happens once, and whose ``wait`` Ctrl-C can interrupt anywhere.

    ``threading.Event`` cannot be used where the main thread waits: a KeyboardInterrupt in the middle of its ``wait``
    releases the event's lock although another thread holds it, and ``set`` fails in that thread.
    """

    __slots__ = ("_lock", "_unset")

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._unset = [True]

    def set(self) -> None:
        """Let all go on that wait. Again, it does nothing."""
        with suppress(IndexError):
            self._unset.pop()  # one thread only gets it
            self._lock.release()

    def is_set(self) -> bool:
        """Tell whether it has happened."""
        return not self._unset

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has happened.

        Args:
            timeout_s: in seconds; None for any time.

        Returns:
            whether it has happened.
        """
        if self._unset:
            if timeout_s is None:
                with self._lock:  # released again for the next thread that waits
                    return True
            if not self._lock.acquire(timeout=timeout_s):
                return False
            self._lock.release()
        return True


_has_left_threads = False


def was_interrupted() -> bool:
    """Tell, while the interpreter ends, whether it does so since nobody handled a KeyboardInterrupt."""
    is_interactive = hasattr(sys, "ps1")  # there, an interrupt of long ago is still the last error
    return getattr(sys, "last_type", None) is KeyboardInterrupt and not is_interactive


def leave_running() -> None:
    """Note that threads run on after Ctrl-C: the process must end before the interpreter is taken down under them."""
    global _has_left_threads
    _has_left_threads = True


@atexit.register  # early, and so called late
def _end_as_interrupted() -> None:
    if not was_interrupted():
        return
    if not _has_left_threads:
        # CPython notes that a KeyboardInterrupt ends the program, but forgets it when any thread calls exec() with a
        # text afterwards, as compilers do; then the status is 1, and a shell loop goes on.
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
