"""Threads that help a calling thread: results, errors, nested calls, forks and the end of the program."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial

import pytest

from dalify.base.threads import HelperThreads, in_parallel

VALUE: ContextVar[int] = ContextVar("VALUE", default=0)


@pytest.mark.parametrize(("count", "tasks"), [(1, 5), (2, 0), (2, 1), (3, 50)])
def test_results_are_in_order(count: int, tasks: int) -> None:
    helpers = HelperThreads(count, "helping")
    for _ in range(3):
        assert helpers.run([partial(pow, number, 2) for number in range(tasks)]) == [n * n for n in range(tasks)]


def test_the_caller_and_the_helpers_work_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=60)

    def task() -> str:
        together.wait()
        return threading.current_thread().name

    helpers = HelperThreads(3, "helping")
    first, second = (set(helpers.run([task] * 3)) for _ in range(2))
    assert first == second == {threading.current_thread().name, "helping-0", "helping-1"}


def test_tasks_have_the_context_of_the_caller() -> None:
    together = threading.Barrier(4, timeout=60)

    def task() -> int:
        together.wait()
        return VALUE.get()

    token = VALUE.set(7)
    try:
        assert HelperThreads(4, "helping").run([task] * 4) == [7] * 4
    finally:
        VALUE.reset(token)


def test_the_error_of_the_first_task_that_failed() -> None:
    began: list[int] = []

    def task(number: int) -> None:
        began.append(number)
        if number == 1:
            time.sleep(0.05)  # the error of the next task comes first
        if number in (1, 2):
            raise ValueError(number)
        time.sleep(0.01)

    with pytest.raises(ValueError, match=r"^1$"):
        HelperThreads(4, "helping").run([partial(task, number) for number in range(1000)])
    assert len(began) < 1000


def test_nested_calls_end_although_all_threads_wait() -> None:
    helpers = HelperThreads(2, "helping")

    def task(depth: int) -> int:
        return 1 if depth == 0 else sum(helpers.run([partial(task, depth - 1)] * 3))

    assert task(5) == 3**5


def test_ctrl_c_drops_what_is_not_begun() -> None:
    began: list[int] = []
    released = threading.Event()

    def task(number: int) -> None:
        began.append(number)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        released.wait(60)

    with pytest.raises(KeyboardInterrupt):
        HelperThreads(2, "helping").run([partial(task, number) for number in range(100)])
    released.set()
    assert len(began) <= 2


def test_threads_are_freed_with_their_owner(no_collector: None) -> None:
    helpers = HelperThreads(3, "freed")
    helpers.run([int] * 3)
    started = [thread for thread in threading.enumerate() if thread.name.startswith("freed")]
    assert len(started) == 2
    del helpers
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("run", [HelperThreads(3, "forked").run, in_parallel])
def test_a_forked_process_has_its_own_threads(run: Callable[..., list[str]]) -> None:
    together = threading.Barrier(3, timeout=30)

    def task() -> str:
        together.wait()
        return threading.current_thread().name

    def names() -> list[str]:
        found = run([task] * 3)
        assert len(set(found)) == 3
        # Other tests may have started more than two threads, of which any two run the tasks.
        return sorted(name.rstrip("0123456789") for name in found)

    before = names()
    child = os.fork()
    if not child:
        with suppress(Exception):
            os._exit(0 if names() == before else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_calls_while_the_program_ends() -> None:
    program = """
import atexit, threading
from dalify.base import threads
from dalify.base.threads import in_parallel

begin, results = threading.Event(), []

def late():
    begin.wait(60)
    results.append(in_parallel([lambda: 1] * 5))

in_parallel([lambda: 0] * 5)
thread = threading.Thread(target=late, daemon=True)
threads.ends_with_program(thread, begin.set)  # it is joined after the shared threads are closed
thread.start()
atexit.unregister(threads._end_threads)
atexit.register(lambda: print(results))
atexit.register(threads._end_threads)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[[1, 1, 1, 1, 1]]\n", "")
