"""Threads for waiting callers: a single task runs in the calling thread."""

from __future__ import annotations

import threading

import pytest

from dalify.base.threads import AwaitedThreads


def _no_failure(error: BaseException) -> None:
    raise AssertionError("a task failed in a thread") from error


@pytest.mark.parametrize(("size", "count", "is_here"), [(1, 1, True), (1, 5, True), (3, 1, True), (3, 5, False)])
def test_where_tasks_run(size, count, is_here):
    threads = AwaitedThreads(size, "awaited")
    names: list[str] = []
    done = threading.Semaphore(0)

    def task() -> None:
        names.append(threading.current_thread().name)
        done.release()

    threads.submit(0, 0, [task] * count, _no_failure)
    for _ in range(count):
        assert done.acquire(timeout=20)
    assert len(names) == count
    assert (set(names) == {threading.current_thread().name}) == is_here
    assert all(name.startswith("awaited") for name in names) != is_here
    threads.close()


def test_tasks_that_submit_tasks():
    """Nested submissions to any depth start after the previous task has returned."""
    threads = AwaitedThreads(1, "awaited")
    events: list[tuple[str, int]] = []

    def task(depth: int) -> None:
        events.append(("begin", depth))
        if depth < 5000:
            threads.submit(0, 0, [lambda: task(depth + 1)], _no_failure)
        events.append(("end", depth))

    threads.submit(0, 0, [lambda: task(0)], _no_failure)
    assert events == [(what, depth) for depth in range(5001) for what in ("begin", "end")]


def test_after_an_error():
    threads = AwaitedThreads(1, "awaited")
    done: list[int] = []
    with pytest.raises(ZeroDivisionError):
        threads.submit(0, 0, [lambda: 1 // 0, lambda: done.append(1)], _no_failure)
    threads.submit(0, 0, [lambda: done.append(2)], _no_failure)
    assert done == [2]
