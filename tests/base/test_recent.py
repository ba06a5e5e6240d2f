"""The LRU cache."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify.base.recent import Recent


@given(st.integers(1, 12), st.lists(st.tuples(st.booleans(), st.integers(0, 15)), max_size=60))
def test_the_recently_used_values_stay(limit: int, accesses: list[tuple[bool, int]]) -> None:
    cache: Recent[str] = Recent(limit)
    model: OrderedDict[int, str] = OrderedDict()
    for is_put, key in accesses:
        if is_put:
            cache.put(key, str(key))
            model[key] = str(key)
            model.move_to_end(key)
            if len(model) > limit:
                for _ in range(len(model) - limit + limit // 8):
                    model.popitem(last=False)
        else:
            assert cache.get(key) == model.get(key)
            if key in model:
                model.move_to_end(key)
        assert len(cache) == len(model)
    assert [cache.get(key) for key in range(16)] == [model.get(key) for key in range(16)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 60)), max_size=60))
def test_the_sum_of_the_sizes_is_limited(values: list[tuple[int, int]]) -> None:
    cache: Recent[int] = Recent(100, size=lambda value: value)
    model: OrderedDict[int, int] = OrderedDict()
    for key, size in values:
        cache.put(key, size)
        model[key] = size
        model.move_to_end(key)
        if sum(model.values()) > 100:
            while sum(model.values()) > 88:
                model.popitem(last=False)
        assert len(cache) == len(model)
        assert all(cache.get(each) == model[each] for each in model)


def test_values_are_made_once() -> None:
    cache: Recent[list[int]] = Recent(4)
    made, was_there = cache.get_or_make("a", lambda: [1])
    assert (made, was_there) == ([1], False)
    again, was_there = cache.get_or_make("a", lambda: [2])
    assert again is made
    assert was_there
    assert cache.get_or_make(None, lambda: [3]) == ([3], False)
    assert len(cache) == 1


def test_removed_values_are_dropped() -> None:
    dropped: list[str] = []
    cache = Recent(2, dropped.append)
    for key in "abc":
        cache.put(key, key)
    assert dropped == ["a"]
    cache.remove("b")
    cache.remove("missing")
    assert dropped == ["a", "b"]
    cache.clear()
    assert dropped == ["a", "b", "c"]
    assert len(cache) == 0


def test_threads_may_share_it() -> None:
    dropped: list[int] = []
    cache = Recent(16, dropped.append)
    errors: list[BaseException] = []

    def use(first: int) -> None:
        try:
            for number in range(first, first + 2000):
                cache.put(number % 100, number)
                found = cache.get((number * 7) % 100)
                assert found is None or found % 100 == (number * 7) % 100
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(start,)) for start in (0, 1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(cache) <= 16


def test_an_unhashable_key_is_an_error() -> None:
    with pytest.raises(TypeError):
        Recent(2).put([], 1)
