"""Memory is reused exactly when nothing refers to it."""

from __future__ import annotations

import gc
import itertools
import random
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dalify.data.pool import BufferPool, pageable, pinned

FLOAT = np.dtype(np.float32)


def test_a_block_is_returned_with_its_last_view() -> None:
    pool = BufferPool()
    array = pool.empty((100, 50), FLOAT)
    start = array.ctypes.data
    view = array[3:, ::2].T
    del array
    assert pool.empty((100, 50), FLOAT).ctypes.data != start
    del view
    assert start in {pool.empty((100, 50), FLOAT).ctypes.data for _ in range(2)}


def test_torch_tensors_and_capsules_keep_it() -> None:
    pool = BufferPool()
    for make in (torch.from_numpy, torch.from_dlpack, lambda array: array.__dlpack__(), memoryview, np.asarray):
        array = pool.empty((64, 64), FLOAT)
        start = array.ctypes.data
        held: Any = make(array)
        del array
        gc.collect()
        assert pool.empty((64, 64), FLOAT).ctypes.data != start
        del held
        gc.collect()
    before = pool.allocations
    pool.empty((64, 64), FLOAT)
    assert pool.allocations == before


def test_sizes_that_are_close_share_blocks() -> None:
    pool = BufferPool()
    for count in range(900, 1000):
        pool.empty((count, 1000), FLOAT)
    assert pool.allocations <= 3


def test_varying_sizes_share_blocks() -> None:
    """Such as the files of a chunk, whose total varies: a pool does not keep a block of each size."""
    pool = BufferPool()
    chooser = random.Random(1)
    held: deque[np.ndarray] = deque(maxlen=4)
    for _ in range(500):
        held.append(pool.empty((chooser.randrange(4 << 20, 6 << 20),), np.dtype(np.uint8)))
    assert pool.allocations <= 3 * len(held)


def test_a_block_of_twice_the_size_is_left_to_those_that_need_it() -> None:
    pool = BufferPool()
    large = pool.empty((1 << 20,), FLOAT)
    start = large.ctypes.data
    del large
    assert pool.empty((1 << 19,), FLOAT).ctypes.data != start
    assert pool.empty((1 << 20,), FLOAT).ctypes.data == start


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30), st.sampled_from(["u1", "<f4", "<i8", "?"])
)
def test_arrays_have_the_requested_type(shapes: list[tuple[int, int]], code: str) -> None:
    pool = BufferPool()
    arrays = [pool.empty(shape, np.dtype(code)) for shape in shapes]
    for array, shape in zip(arrays, shapes, strict=True):
        assert array.shape == shape
        assert array.dtype == np.dtype(code)
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.nbytes <= 1024 or array.ctypes.data % 64 == 0
    assert not any(np.may_share_memory(one, other) for one, other in itertools.combinations(arrays, 2))


def test_room_is_made_from_the_sizes_that_are_not_used() -> None:
    pool = BufferPool(capacity_bytes=8 << 20)
    old = [pool.empty((1 << 19,), FLOAT) for _ in range(3)]  # 2 MiB each
    new = [pool.empty((1 << 18,), FLOAT) for _ in range(4)]  # 1 MiB each
    del old, new  # 10 MiB are free
    pool.empty((1 << 17,), FLOAT)  # a size without free blocks: 2 MiB too much, of which the older size gives one block
    allocated = pool.allocations
    again = [pool.empty((1 << 18,), FLOAT) for _ in range(4)], [pool.empty((1 << 19,), FLOAT) for _ in range(2)]
    assert pool.allocations == allocated
    del again
    again_new = [pool.empty((1 << 18,), FLOAT) for _ in range(4)]  # now the size of 512 KiB is the oldest, then 2 MiB
    del again_new
    pool.empty((1 << 21,), FLOAT)  # 8.5 MiB are free: the block of 512 KiB is enough
    allocated = pool.allocations
    larger = [pool.empty((1 << 19,), FLOAT) for _ in range(2)]
    smaller = [pool.empty((1 << 18,), FLOAT) for _ in range(4)]
    assert pool.allocations == allocated
    assert len(larger) + len(smaller) == 6
    pool.empty((1 << 17,), FLOAT)
    assert pool.allocations == allocated + 1


class _CountedPool(BufferPool):
    """Counts the bytes of its blocks, used and unused."""

    def __init__(self) -> None:
        super().__init__(self._counted)
        self.size_bytes = 0

    def _counted(self, size_bytes: int) -> np.ndarray:
        block = np.empty(size_bytes, np.uint8)
        self.size_bytes += size_bytes
        weakref.finalize(block, self._count_freed, size_bytes)
        return block

    def _count_freed(self, size_bytes: int) -> None:
        self.size_bytes -= size_bytes


def test_blocks_that_are_not_needed_for_some_time_are_freed() -> None:
    pool = _CountedPool()
    held = [pool.empty((size,), FLOAT) for size in (1 << 18, 1 << 18, 1 << 18, 1 << 24)]  # 3 of 1 MiB, one of 64 MiB
    del held
    assert pool.size_bytes == 67 << 20
    for _ in range(300):
        pool.empty((1 << 18,), FLOAT)
    assert pool.size_bytes == 1 << 20
    assert pool.allocations == 4


def test_blocks_that_are_needed_now_and_then_are_kept() -> None:
    pool = _CountedPool()
    for number in range(2000):
        held = [pool.empty((1 << 18,), FLOAT) for _ in range(3 if number % 40 == 0 else 1)]
        del held
    assert pool.allocations == 3
    assert pool.size_bytes == 3 << 20


def test_capacity_bounds_the_kept_memory() -> None:
    pool = BufferPool(capacity_bytes=1 << 20)
    held = [pool.empty((1 << 18,), FLOAT) for _ in range(4)]  # 1 MiB each
    del held
    allocated = pool.allocations
    again = [pool.empty((1 << 18,), FLOAT) for _ in range(4)]
    assert pool.allocations == allocated + len(again) - 1  # one was kept


def test_threads_never_share_a_block() -> None:
    pool = BufferPool()
    failures: list[str] = []

    def work(number: int) -> None:
        chooser = random.Random(number)
        held: list[tuple[np.ndarray, int]] = []
        for step in range(400):
            array = pool.empty((chooser.choice([10, 1000, 5000]),), np.dtype(np.int64))
            mark = number * 1000 + step
            array[...] = mark
            held.append((array, mark))
            if len(held) > 6:
                kept, wanted = held.pop(chooser.randrange(len(held)))
                if not (kept == wanted).all():
                    failures.append(f"thread {number}, step {step}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert pool.allocations < 4 * 400 / 2


def test_a_block_may_outlive_its_pool() -> None:
    pool = BufferPool()
    array = pool.empty((1000,), FLOAT)
    array[...] = 5
    del pool
    gc.collect()
    assert (array == 5).all()


def test_allocators() -> None:
    for allocate in (pageable, pinned):
        memory = allocate(1000)
        assert (memory.dtype, memory.nbytes) == (np.uint8, 1000)
    assert pageable(1).ctypes.data % 64 == 0


def test_blocks_of_previous_sizes_are_freed_to_make_room() -> None:
    pool = BufferPool(capacity_bytes=64 << 10)
    for kilobytes in (16, 24, 40, 48):  # each is freed immediately, and does not fit into earlier blocks
        pool.empty((kilobytes << 10,), np.dtype(np.uint8))
    gc.collect()
    before = pool.allocations
    pool.empty((48 << 10,), np.dtype(np.uint8))
    assert pool.allocations == before
