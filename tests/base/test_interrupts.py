"""SIGINT is handled at the right time, and never lost."""

# ruff: noqa: PT012 -- what is tested is where in a block the exception is raised

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dalify.base.interrupts import CallAtEnd, deferred_interrupts, is_main_thread, kept_interrupts, was_interrupted
from tests.helpers.platforms import needs_posix
from tests.helpers.programs import finished

pytestmark = needs_posix


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_the_main_thread_of_a_child_is_the_one_that_forked() -> None:
    found: list[bool | int] = []

    def fork() -> None:
        found.append(is_main_thread())
        child = os.fork()
        if not child:
            os._exit(int(is_main_thread() and threading.main_thread() is threading.current_thread()))
        found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert found == [False, 1]
    assert is_main_thread()


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
def test_an_interrupt_that_would_be_lost_is_raised(lose: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    with pytest.raises(KeyboardInterrupt) as caught, kept_interrupts():
        lose()
    assert caught.value.__suppress_context__  # one traceback


def test_errors_of_the_block_are_raised() -> None:
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
    made: Any = CallAtEnd(ended.append, 5)
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


def test_the_status_is_that_of_sigint_while_threads_run_code_strings() -> None:
    """Otherwise CPython resets the record of the KeyboardInterrupt, and the status is 1."""
    program = STATUS.format(before="atexit.register(ends.set); atexit.register(time.sleep, 0.1)")
    for _ in range(3):
        code, out, errors = finished(program)
        assert (code, out) == (-signal.SIGINT, "earlier at exit\nat exit\n")
        assert errors.count("Traceback") == 1


def test_threads_that_do_not_end_do_not_keep_the_process() -> None:
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
    """Also if compiled modules convert it to an ImportError."""
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


# -- in processes of their own


STORM = """
    import signal, sys, threading, time
    from dalify.base import interrupts

    class Pressed(Exception):
        pass

    def handler(number, frame):
        global is_inside, raised
        if is_inside:
            is_inside = False
            raised += 1
            raise Pressed

    def press():
        global ends
        while raised < 200:  # on a busy machine, few of the signals find the main thread in a block
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(1e-4)
        ends = True

    def enter():
        # A function: since Python 3.12 the jump at the end of a loop in a `try` statement, where handlers of signals
        # run, is not always part of the statement.
        global is_inside
        is_inside = True
        with blocks[0](), blocks[-1]():
            pass
        is_inside = False

    blocks = [getattr(interrupts, name) for name in sys.argv[1:]]
    is_inside = ends = False
    raised = caught = 0
    signal.signal(signal.SIGINT, handler)
    main = threading.get_ident()
    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    while not ends:
        try:
            enter()
        except Pressed:
            caught += 1
        assert signal.getsignal(signal.SIGINT) is handler
    thread.join()
    print(raised - caught)
"""


@pytest.mark.parametrize(
    "names",
    [
        ("kept_interrupts",),
        ("deferred_interrupts",),
        ("kept_interrupts", "deferred_interrupts"),
        ("deferred_interrupts", "kept_interrupts"),
    ],
)
def test_interrupts_at_any_time(names: tuple[str, ...]) -> None:
    """Also when entering and leaving blocks: each interrupt is raised once, and the handler is restored."""
    assert finished(STORM, *names) == (0, "0\n", "")


def test_a_handler_that_sets_another_one() -> None:
    """As in programs that end only at the second Ctrl-C."""
    program = """
        import signal
        from dalify.base.interrupts import deferred_interrupts, kept_interrupts

        def first(number, frame):
            print("again to end", flush=True)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        signal.signal(signal.SIGINT, first)
        with {blocks}:
            signal.raise_signal(signal.SIGINT)
            print("goes on", flush=True)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        signal.raise_signal(signal.SIGINT)
    """
    for blocks in ("kept_interrupts()", "kept_interrupts(), kept_interrupts()", "deferred_interrupts()"):
        code, out, errors = finished(program.format(blocks=blocks))
        assert (code, errors) == (-signal.SIGINT, "")
        assert sorted(out.splitlines()) == ["again to end", "goes on"]


@pytest.mark.parametrize("block", ["kept_interrupts", "deferred_interrupts"])
def test_in_a_thread_while_the_main_thread_is_interrupted(block: str) -> None:
    """The thread's block continues; the main thread gets the KeyboardInterrupt immediately."""
    program = f"""
        import os, signal, threading, time
        from dalify.base.interrupts import {block}

        def work():
            with {block}():
                inside.set()
                ends.wait()
                done.append(True)

        inside, ends, done = threading.Event(), threading.Event(), []
        thread = threading.Thread(target=work)
        thread.start()
        inside.wait()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(100)
        except KeyboardInterrupt:
            ends.set()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        print(done)
    """
    assert finished(program) == (0, "[True]\n", "")


def test_an_error_in_a_thread_leaves_the_block_as_it_is() -> None:
    program = """
        import threading
        from dalify.base.interrupts import deferred_interrupts, kept_interrupts

        def work():
            try:
                with kept_interrupts(), deferred_interrupts():
                    raise ValueError("mine")
            except ValueError as error:
                print(error, error.__context__)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """
    assert finished(program) == (0, "mine None\n", "")


def test_a_parent_that_ignores_it() -> None:
    """As in background processes of a shell: nothing is raised, and the signal remains ignored."""
    program = """
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        import os, subprocess, sys
        sys.exit(subprocess.call([sys.executable, "-c", sys.argv[1]]))
    """
    child = (
        "import os, signal\n"
        "from dalify.base.interrupts import deferred_interrupts, kept_interrupts, was_interrupted\n"
        "for block in (deferred_interrupts, kept_interrupts):\n"
        "    with block():\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
        "print(was_interrupted())\n"
    )
    assert finished(program, child) == (0, "False\n", "")


def test_calls_at_the_end_are_made_though_interrupted() -> None:
    """From the main thread during many interrupts, from other threads, in cycles, and at the end of the program."""
    program = """
        import gc, os, signal, sys, threading, time
        from dalify.base.interrupts import CallAtEnd

        ended = []
        made = 0

        def press():
            for _ in range(300):
                signal.pthread_kill(main, signal.SIGINT)
                time.sleep(1e-4)
            ends.set()

        def work():
            for _ in range(100):
                CallAtEnd(ended.append, 1)
                cycle = [CallAtEnd(ended.append, 1)]
                cycle.append(cycle)

        signal.signal(signal.SIGINT, lambda number, frame: None)
        main, ends = threading.get_ident(), threading.Event()
        sys.unraisablehook = lambda _: os._exit(5)
        thread, other = threading.Thread(target=press), threading.Thread(target=work)
        thread.start()
        other.start()
        while not ends.is_set():
            CallAtEnd(ended.append, 1)
            made += 1
        thread.join()
        other.join()
        gc.collect()
        assert len(ended) == made + 200, (len(ended), made)
        left = CallAtEnd(os.write, 1, b"at the end\\n")
    """
    assert finished(program) == (0, "at the end\n", "")


def test_a_call_at_the_end_that_raises_is_reported() -> None:
    def fails() -> None:
        raise ValueError("at the end")

    found: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, found.append
    try:
        CallAtEnd(fails)
        gc.collect()
    finally:
        sys.unraisablehook = before
    assert [str(each.exc_value) for each in found] == ["at the end"]
