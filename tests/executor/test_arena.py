"""Scratch memory is lent to one chunk at a time, and reused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify import fn, pipeline_def
from dalify.executor.arena import Arena, Arenas
from dalify.pipeline.pipeline import parts_of

FLOAT = np.dtype(np.float32)


@given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=8))
def test_arrays_of_a_chunk_do_not_overlap(sizes: list[int]) -> None:
    arena = Arena()
    for _ in range(2):
        arrays = [arena.empty((size,), FLOAT) for size in sizes]
        for number, array in enumerate(arrays):
            array[:] = number
        assert all((array == number).all() for number, array in enumerate(arrays))
        assert all(array.ctypes.data % 64 == 0 for array in arrays if array.size)
        arena.reset()


def test_an_arena_belongs_to_one_chunk() -> None:
    arenas = Arenas()
    first, second = arenas.borrow(), arenas.borrow()
    assert first is not second
    address = first.empty((5,), FLOAT).ctypes.data
    arenas.take_back(second)
    arenas.take_back(first)
    assert arenas.borrow() is first
    assert first.empty((5,), FLOAT).ctypes.data == address
    assert arenas.borrow() is second
    assert arenas.borrow() not in (first, second)


def test_unused_arenas_are_freed() -> None:
    arenas = Arenas()
    many = [arenas.borrow() for _ in range(10)]
    for arena in many:
        arenas.take_back(arena)
    for _ in range(600):
        for arena in [arenas.borrow(), arenas.borrow()]:
            arenas.take_back(arena)
    assert sum(arenas.borrow() in many for _ in many) == 2


def _used(arenas: Arenas, *sizes: int) -> Arena:
    arena = arenas.borrow()
    for size in sizes:
        arena.empty((size,), FLOAT)
    arenas.take_back(arena)
    return arena


def test_an_arena_that_was_enlarged_for_an_unusual_sample_is_freed() -> None:
    arenas = Arenas()
    small = _used(arenas, 10).size_bytes
    assert _used(arenas, 1 << 24).size_bytes == 1 << 26
    for _ in range(600):
        _used(arenas, 10)
    assert arenas.borrow().size_bytes == small


@given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=8))
def test_an_arena_of_the_needed_size_is_kept(sizes: list[int]) -> None:
    arenas = Arenas()
    arena = _used(arenas, *sizes)
    for _ in range(2):  # all arrays are in one block
        _used(arenas, *sizes)
    size_bytes = arena.size_bytes
    for _ in range(600):
        assert _used(arenas, *sizes) is arena
    assert arena.size_bytes == size_bytes


@pytest.mark.parametrize("depth", [1, 2])
def test_there_are_no_more_arenas_than_chunks_at_a_time(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Arena] = []

    class Counted(Arena):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr("dalify.executor.arena.Arena", Counted)

    @pipeline_def(batch_size=4, num_threads=16, prefetch_queue_depth=depth)
    def pipeline() -> Any:
        images = fn.external_source(lambda: np.zeros((4, 50, 50, 3), np.uint8), layout="HWC")
        return fn.flip(fn.resize(images, size=20))

    with pipeline() as pipe:
        states = parts_of(pipe).builder.engine().stages
        for _ in range(30):
            for state in states:
                state.seconds_per_sample = 0.0  # one chunk
            pipe.run()
    assert 1 <= len(made) <= depth
