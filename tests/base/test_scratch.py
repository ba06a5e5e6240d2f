"""Scratch memory, which is valid until the same thread requests the same name again."""

from __future__ import annotations

import threading

import numpy as np

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
