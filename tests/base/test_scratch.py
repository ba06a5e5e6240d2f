"""Scratch memory, which is valid until the same thread requests the same name again."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

from dalify.base.scratch import borrow


def test_one_name_is_one_block_of_memory() -> None:
    first = borrow("test scratch", (20, 30))
    second = borrow("test scratch", (10, 10))
    assert np.shares_memory(first, second)
    assert second.shape == (10, 10)
    assert second.dtype == np.uint8


def test_memory_is_not_shared_between_names_or_threads() -> None:
    mine = borrow("test scratch", (100,))
    assert not np.shares_memory(mine, borrow("test scratch, another", (100,)))
    others: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: others.append(borrow("test scratch", (100,))))
    thread.start()
    thread.join()
    assert not np.shares_memory(mine, others[0])


def test_very_large_blocks_are_not_kept() -> None:
    assert not np.shares_memory(borrow("test large", (80 << 20,)), borrow("test large", (80 << 20,)))


@pytest.mark.parametrize("later", ["test unusual", "test scratch"])
def test_memory_of_an_unusual_size_is_freed_when_it_was_not_needed_for_some_time(later: str) -> None:
    large = borrow("test unusual", (32 << 20,))
    block = weakref.ref(large.base)  # pyright: ignore[reportArgumentType]
    assert block() is not None
    del large
    for _ in range(100):
        borrow(later, (100,))
    assert block() is None


def test_memory_that_is_needed_now_and_then_is_kept() -> None:
    large = borrow("test large now and then", (1 << 20,))
    for number in range(200):
        memory = borrow("test large now and then", (1 << 20 if number % 10 == 0 else 100,))
        assert np.shares_memory(memory, large)
