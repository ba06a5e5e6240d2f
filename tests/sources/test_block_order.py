"""Shuffling by blocks: every entry once, few blocks at a time, another order in each epoch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.data.entries import Blocks
from dalify.sources.block_order import BlockOrder
from dalify.sources.sampler import Sampler
from dalify.sources.sampler_options import SamplerOptions


def blocks_of(sizes, max_bytes=1 << 60):
    return Blocks(np.array(sizes, np.int64), np.full(len(sizes), 1000, np.int64), max_bytes)


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=20), fill=st.integers(1, 100), data=st.data())
def test_all_parts_have_every_entry_once(sizes, fill, data):
    total = sum(sizes)
    cuts = sorted({0, total, *data.draw(st.lists(st.integers(0, total), max_size=4))})
    order = BlockOrder(blocks_of(sizes), fill)
    found = [order.entries(np.arange(start, stop), start, stop, 7 + start) for start, stop in itertools.pairwise(cuts)]
    assert sorted(np.concatenate(found).tolist()) == list(range(total))


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=20), seed=st.integers(0, 99), data=st.data())
def test_positions_may_be_requested_in_any_order(sizes, seed, data):
    total = sum(sizes)
    whole = BlockOrder(blocks_of(sizes), 30).entries(np.arange(total), 0, total, seed)
    some = np.array(data.draw(st.lists(st.integers(0, total - 1), min_size=1, max_size=10)))
    np.testing.assert_array_equal(BlockOrder(blocks_of(sizes), 30).entries(some, 0, total, seed), whole[some])


def test_a_window_of_few_blocks_is_shuffled_completely():
    entries = BlockOrder(blocks_of([100] * 50), 300).entries(np.arange(5000), 0, 5000, 1)
    for start in range(0, 5000 - 200, 300):
        window = entries[start : start + 300]
        assert len(set((window // 100).tolist())) in (2, 3)
        assert not np.array_equal(window, np.sort(window))
    # All three blocks of a window are mixed, and blocks are not in their stored order.
    assert len(set((entries[:20] // 100).tolist())) == 3
    assert not np.array_equal(entries[::300] // 100, np.sort(entries[::300] // 100))


def test_memory_bounds_a_window():
    entries = BlockOrder(blocks_of([100] * 10, max_bytes=2500), 10_000).entries(np.arange(1000), 0, 1000, 1)
    for start in range(0, 1000, 200):
        assert len(set((entries[start : start + 200] // 100).tolist())) == 2
    # A single block that is too large is a separate window.
    entries = BlockOrder(blocks_of([100] * 10, max_bytes=10), 10_000).entries(np.arange(1000), 0, 1000, 1)
    assert all(len(set((entries[start : start + 100] // 100).tolist())) == 1 for start in range(0, 1000, 100))


@pytest.mark.parametrize("options", [{"random_shuffle": True}, {"shuffle_after_epoch": True}], ids=str)
def test_the_sampler_orders_by_blocks(options):
    """Shards are disjoint, epochs differ, and a state resumes at its position."""
    sizes = [7, 3, 11, 5, 9, 2, 8]
    total = sum(sizes)
    epochs: list[list[int]] = [[], []]
    for shard in range(3):
        given_options = SamplerOptions(total, shard, 3, initial_fill=10, seed=5, **options)
        sampler = Sampler(given_options, None, blocks_of(sizes))
        for epoch in range(2):
            start, stop = given_options.window(epoch)
            epochs[epoch] += sampler.next_batch(stop - start).tolist()
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(total))
    assert epochs[0] != epochs[1]
    sampler = Sampler(SamplerOptions(total, 1, 3, initial_fill=10, **options), None, blocks_of(sizes))
    for _ in range(12):
        state = sampler.state()
        again = Sampler(SamplerOptions(total, 1, 3, initial_fill=10, **options), None, blocks_of(sizes))
        again.restore(state)
        assert sampler.next_batch(4).tolist() == again.next_batch(4).tolist()


def test_the_remaining_data_is_divided_again():
    sizes = [7, 3, 11, 5, 9, 2, 8]
    total = sum(sizes)
    old = [
        Sampler(SamplerOptions(total, shard, 2, random_shuffle=True, seed=shard), None, blocks_of(sizes))
        for shard in range(2)
    ]
    seen = [entry for sampler in old for entry in sampler.next_batch(6).tolist()]
    states = [sampler.state() for sampler in old]
    for shard in range(3):
        sampler = Sampler(SamplerOptions(total, shard, 3, random_shuffle=True, seed=shard), None, blocks_of(sizes))
        sampler.restore({"shards": states})
        left = sampler.left()[0]
        seen += sampler.next_batch(left * (shard + 1) // 3 - left * shard // 3).tolist()
    assert sorted(seen) == list(range(total))
