"""A cache in memory: stored samples, its limit, and eviction."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify.base.errors import ArgumentValueError
from dalify.data.sample_memory import SampleMemory, StoredSample, check_cache_options, shared_memory_of


def _sample(size: int, value: int = 1) -> StoredSample:
    return StoredSample((np.full(size, value, np.uint8), np.array([value], np.int32)), ("", "N"))


def _value(found: StoredSample | None) -> int | None:
    return None if found is None else int(found.arrays[1][0])


def test_what_comes_back() -> None:
    memory = SampleMemory(1 << 20)
    given_one = _sample(100, 7)
    assert memory.put("a", "1", given_one)
    given_one.arrays[0][:] = 0  # the cache has a copy
    found = memory.get("a", "1")
    assert found is not None
    assert found.arrays[0].tolist() == [7] * 100
    assert found.layouts == ("", "N")
    assert memory.has("a", "1")


def test_another_state_is_another_sample() -> None:
    memory = SampleMemory(1 << 20)
    memory.put("a", "1", _sample(100, 1))
    assert memory.get("a", "2") is None
    before = memory.size_bytes
    memory.put("a", "2", _sample(100, 2))
    assert _value(memory.get("a", "2")) == 2
    assert memory.get("a", "1") is None
    assert memory.size_bytes == before  # it took the place of the other one


def test_a_full_cache_keeps_its_samples() -> None:
    memory = SampleMemory(10_000)
    kept = [number for number in range(20) if memory.put(str(number), "", _sample(2000, number))]
    assert kept == [0, 1, 2]
    assert [_value(memory.get(str(number), "")) for number in kept] == kept
    assert memory.put("small", "", _sample(100))  # what fits still comes in


def test_the_largest_blocks_are_kept() -> None:
    memory = SampleMemory(10_000, keeps_largest=True)
    for size in (1000, 2000, 500, 2500, 3000, 400, 1500):
        memory.put(str(size), "", _sample(size))
    assert {size for size in (1000, 2000, 500, 2500, 3000, 400, 1500) if memory.has(str(size), "")} >= {2500, 3000}
    assert not memory.has("400", "")
    assert not memory.put("too large", "", _sample(20_000))
    assert memory.has("3000", "")  # nothing was dropped for it


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from("ab"), st.integers(0, 4000)), max_size=60),
    st.booleans(),
)
def test_bound_and_model(puts: list[tuple[int, str, int]], keeps_largest: bool) -> None:
    """Never more than the bound; what is there is what was put last under its key and state."""
    memory = SampleMemory(9000, keeps_largest)
    last: dict[tuple[int, str], int] = {}
    for number, (key, state, size) in enumerate(puts):
        was_there = memory.has(str(key), state)
        if memory.put(str(key), state, _sample(size, number)) and not was_there:
            last[key, state] = number
        elements = sum(entry[1].size_bytes for entry in memory._entries.values())
        assert elements < memory.size_bytes <= 9000 or not len(memory)
        for other in {key for key, _, _ in puts}:
            for each in "ab":
                found = memory.get(str(other), each)
                assert found is None or _value(found) == last[other, each]


def test_threads_keep_the_bound() -> None:
    memory = SampleMemory(200_000, keeps_largest=True)
    most: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(300):
            number = int(random.integers(0, 60))
            found = memory.get(str(number), "")
            assert found is None or (found.arrays[0] == number).all()
            memory.put(str(number), "", _sample(number * 200, number))
            most.append(memory.size_bytes)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 200_000
    assert memory.size_bytes == sum(size for _, _, size in memory._entries.values())


def test_equal_caches_are_shared() -> None:
    one, same = (shared_memory_of("digest", 1000, False) for _ in range(2))
    assert one is same
    assert shared_memory_of("digest", 2000, False) is not one
    assert shared_memory_of("other", 1000, False) is not one
    one.put("a", "", _sample(10))
    del one, same
    assert len(shared_memory_of("digest", 1000, False)) == 0  # no reference was left


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("most", 1, 0, ""), "cache_type must be one of"),
        (("threshold", -1, 0, ""), "cache_size must not be negative"),
        (("threshold", 1, -1, ""), "cache_threshold must not be negative"),
        (("largest", 1, 0, "folder"), "cannot be combined with cache_folder"),
    ],
)
def test_options(arguments: tuple[str, int, int, str], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        check_cache_options(*arguments)
