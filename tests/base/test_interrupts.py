"""SIGINT is handled at the right time, and never lost."""

# ruff: noqa: PT012 -- what is tested is where in a block the exception is raised

from __future__ import annotations

import ctypes
import gc
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dalify.base.interrupts import CallAtEnd, deferred_interrupts, kept_interrupts, was_interrupted
from tests.helpers.programs import finished

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on POSIX")


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_deferred_to_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        press()
        press()
        done.append("all")
    assert done == ["all"]


def test_deferred_in_blocks_inside_each_other() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        with deferred_interrupts():
            press()
        done.append("all")
    assert done == ["all"]


def test_deferred_and_an_error() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, deferred_interrupts():
        press()
        raise ValueError
    assert isinstance(caught.value.__context__, ValueError)


def test_kept_at_once() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        press()
        done.append("nothing")
    assert done == []


def in_a_callback_of_c() -> None:
    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        press()

    callback()


class Interrupted:
    def __del__(self) -> None:
        press()


def in_a_destructor() -> None:
    Interrupted()
    gc.collect()


def as_another_error() -> None:
    try:
        press()
    except KeyboardInterrupt:
        raise ImportError("numpy failed to import") from None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("lose", [in_a_callback_of_c, in_a_destructor, as_another_error])
def test_kept_where_it_would_be_lost(lose: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    with pytest.raises(KeyboardInterrupt) as caught, kept_interrupts():
        lose()
    assert caught.value.__suppress_context__  # one traceback


def test_kept_with_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match="mine"), kept_interrupts():
        raise ValueError("mine")


def test_handlers_of_the_user() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with kept_interrupts():
        press()
    assert seen == [signal.SIGINT]
    with deferred_interrupts():
        press()
        assert seen == [signal.SIGINT]
    assert seen == [signal.SIGINT] * 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with kept_interrupts(), deferred_interrupts():
        press()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_leave_the_handler_alone() -> None:
    found: list[Any] = []

    def run() -> None:
        with kept_interrupts(), deferred_interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_call_at_the_end() -> None:
    ended: deque[int] = deque()
    made = CallAtEnd(ended.append, 5)
    made.note = "attributes are kept"
    assert not ended
    del made
    gc.collect()
    assert list(ended) == [5]


def test_this_process_was_not_interrupted() -> None:
    assert not was_interrupted()


STATUS = """
    import atexit, os, signal, sys, threading, time
    atexit.register(lambda: print("at exit", flush=True))
    from dalify.base.interrupts import leave_running
    atexit.register(lambda: print("earlier at exit", flush=True))

    def compile_all():
        inside.set()
        while not ends.is_set():
            exec("1 + 1")  # as compilers do

    inside, ends = threading.Event(), threading.Event()
    threading.Thread(target=compile_all, daemon=True).start()
    inside.wait()
    {before}
    signal.raise_signal(signal.SIGINT)
"""


def test_the_status_is_that_of_sigint_though_threads_run_texts() -> None:
    """CPython forgets the KeyboardInterrupt then, and the status is 1."""
    program = STATUS.format(before="atexit.register(ends.set); atexit.register(time.sleep, 0.1)")
    for _ in range(3):
        code, out, errors = finished(program)
        assert (code, out) == (-signal.SIGINT, "earlier at exit\nat exit\n")
        assert errors.count("Traceback") == 1


def test_threads_that_run_on_do_not_keep_the_process() -> None:
    code, out, errors = finished(STATUS.format(before="leave_running()"))
    assert (code, out) == (-signal.SIGINT, "earlier at exit\n")
    assert errors.count("Traceback") == 1


def test_a_handled_interrupt_changes_nothing() -> None:
    program = """
        import os, signal
        import dalify
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            pass
        raise SystemExit(5)
    """
    assert finished(program) == (5, "", "")


def test_ctrl_c_during_imports() -> None:
    """Where compiled modules make an ImportError of it, too."""
    program = """
        import os, random, signal, sys, threading, time
        from dalify import eager
        import numpy as np

        threading.Timer(float(sys.argv[1]), os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            eager.rotate(np.zeros((4, 4, 3), np.uint8), angle=3.0, fill_value=0)
    """
    for number in range(6):
        code, _, errors = finished(program, 0.05 * number)
        assert code == -signal.SIGINT
        assert errors.rstrip().endswith("KeyboardInterrupt")
