"""Slots are used again when neither this process nor a forked one can read them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dalify.base import forked_processes as forks
from dalify.base.forked_processes import forked_processes
from dalify.data.shared_memory import FreeSlots, Slot
from tests.helpers.platforms import needs_posix

pytestmark = [needs_posix, pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]

COUNT = 4


@pytest.fixture
def slots() -> list[Slot]:
    return [Slot() for _ in range(COUNT)]


@pytest.fixture
def free() -> FreeSlots:
    return FreeSlots(COUNT)


@contextmanager
def forked(work: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Fork a process that runs until the end of the block."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(writer)
            work()
            os.read(reader, 1)
        finally:
            os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.close(writer)
        os.waitpid(process, 0)


def test_a_slot_is_free_after_its_last_view(free: FreeSlots, slots: list[Slot]) -> None:
    assert sorted(free) == [0, 1, 2, 3]
    number = free.take()
    view = free.reserve(slots[number], number)[10:20]
    assert number not in free
    del view
    assert len(free) == COUNT
    assert free.take() == number


def test_a_fork_while_a_slot_is_viewed(free: FreeSlots, slots: list[Slot]) -> None:
    number = free.take()
    view = free.reserve(slots[number], number)
    with forked():
        assert number not in free
        del view
        assert number not in free
        assert len(free) == COUNT - 1
    assert number in free


def test_a_fork_before_or_after_the_views(free: FreeSlots, slots: list[Slot]) -> None:
    with forked():
        number = free.take()
        view = free.reserve(slots[number], number)
        del view
        with forked():
            assert number in free


def test_children_of_the_forked_process(free: FreeSlots, slots: list[Slot]) -> None:
    """The fork ends immediately; its child has the views, too."""
    reader, writer = os.pipe()
    number = free.take()
    view = free.reserve(slots[number], number)
    process = os.fork()
    if not process:
        if not os.fork():
            os.close(writer)
            os.read(reader, 1)
        os._exit(0)
    del view
    os.waitpid(process, 0)
    assert number not in free
    os.close(writer)
    while number not in free:
        pass
    os.close(reader)


def test_processes_that_cannot_read_the_slots(free: FreeSlots, slots: list[Slot]) -> None:
    number = free.take()
    view = free.reserve(slots[number], number)
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, preexec_fn=lambda: None) as program,
        forked(forked_processes.leave),
    ):
        del view
        while number not in free:
            pass
        assert program.poll() is None
        assert program.stdin is not None
        program.stdin.write(b"\n")


@pytest.mark.parametrize("limit", [0, 2])
def test_more_processes_than_pipes(
    limit: int, free: FreeSlots, slots: list[Slot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pipe, it is unknown whether a process runs, so its slot is not used again."""
    monkeypatch.setattr(forks, "_MAX_PIPES", limit)
    taken = [free.take() for _ in range(3)]
    views = {number: free.reserve(slots[number], number) for number in taken}
    with forked():
        del views[taken[0]]
        with forked():
            del views[taken[1]]
            with forked():
                del views[taken[2]]
                assert len(free) == COUNT - 3
    assert sorted({*free} & {*taken}) == sorted(taken[:limit])
    monkeypatch.undo()
    number = next(iter(free))
    with forked():
        assert number in free


def test_forks_that_are_ignored(free: FreeSlots, slots: list[Slot]) -> None:
    begun = forked_processes.begun
    number = free.take()
    view = free.reserve(slots[number], number)
    with forked_processes.ignored(), forked():
        assert forked_processes.begun == begun
        del view
        assert number in free
    with forked():
        assert forked_processes.begun == begun + 1


def test_pipes_are_closed() -> None:
    _ = FreeSlots(1)
    with forked():
        pass
    first = forked_processes.begun
    assert not forked_processes.may_run(0, 0)
    forked_processes.may_run(first - 1, first)
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(10):
        with forked():
            pass
    with forked():
        assert not forked_processes.may_run(first, first + 10)
        assert forked_processes.may_run(first, first + 11)
    assert not forked_processes.may_run(first, first + 11)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_many_threads(free: FreeSlots, slots: list[Slot]) -> None:
    """Threads take, view and release slots while another one forks: none is lost, and none has two owners."""
    owners: list[list[int]] = [[] for _ in range(COUNT)]
    collisions: list[int] = []
    is_over = threading.Event()

    def work(seed: int) -> None:
        draws = random.Random(seed)
        while not is_over.is_set():
            try:
                number = free.take()
            except IndexError:
                continue
            owners[number].append(seed)
            if len(owners[number]) != 1:
                collisions.append(number)
            view = free.reserve(slots[number], number)
            if draws.random() < 0.5:
                is_over.wait(0.001)
            owners[number].remove(seed)
            del view

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with forked():
            pass
    is_over.set()
    for thread in threads:
        thread.join()
    assert not collisions
    assert sorted(free) == [0, 1, 2, 3]
