"""With 10,000 ranks and 1e9 samples, the cost per rank of order, shuffling and resuming is independent of both numbers.

Costs are counted, not timed: calls of functions, and bytes that are held at a time.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalify.sources.sampler as sampler_module
from dalify.base.errors import CheckpointError
from dalify.plugin.epochs import LastBatchPolicy, ReaderEpochs
from dalify.sources.sampler import Sampler
from dalify.sources.sampler_options import SamplerOptions

RANKS, FEWER = 10_000, 7_777
SAMPLES = 10**9
BATCH_SIZE = 64
# A block of 4,096 entries is computed at a time, in temporaries of 32 kB.
MAX_BYTES = 500_000
MAX_CALLS = 2_000

MODES: list[dict[str, Any]] = [
    {},
    {"random_shuffle": True},
    {"random_shuffle": True, "stick_to_shard": True, "pad_last_batch": True},
    {"shuffle_after_epoch": True},
    {"shuffle_after_epoch": True, "pad_last_batch": True},
]
# Modes in which the state of one rank determines those of all others.
COMMON_ORDERS = [mode for mode in MODES if "random_shuffle" not in mode]


def rank_of(mode: dict[str, Any], shard: int, count: int = RANKS, size: int = SAMPLES) -> Sampler:
    return Sampler(SamplerOptions(size, shard, count, seed=3, shuffle_after_epoch_seed=3, **mode))


def cost(action: Callable[[], object]) -> tuple[int, int]:
    """Return the number of calls of Python and C functions, and the peak memory in bytes."""
    action()
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    gc.collect()
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        action()
        most = tracemalloc.get_traced_memory()[1] - held
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return calls, most


def first_batch(mode: dict[str, Any], shard: int, count: int, size: int) -> None:
    rank_of(mode, shard, count, size).next_batch(BATCH_SIZE)


def late_epoch(mode: dict[str, Any], shard: int, count: int, size: int) -> None:
    sampler = rank_of(mode, shard, count, size)
    sampler.start_epoch(12_345)
    sampler.next_batch(BATCH_SIZE)


def end_of_epoch(mode: dict[str, Any], shard: int, count: int, size: int) -> None:
    sampler = rank_of(mode, shard, count, size)
    sampler.restore({**sampler.state(), "position": size // count - 5})
    sampler.next_batch(BATCH_SIZE)
    assert sampler.epoch == 1 or mode.get("pad_last_batch")


def resume(mode: dict[str, Any], shard: int, count: int, size: int) -> None:
    saved = rank_of(mode, shard, count, size).state() | {"epoch": 7, "position": size // count // 2}
    sampler = rank_of(mode, shard, count, size)
    sampler.restore(json.loads(json.dumps(saved)))
    sampler.next_batch(BATCH_SIZE)
    assert len(json.dumps(sampler.state())) < 200


def other_world(mode: dict[str, Any], shard: int, count: int, size: int) -> None:
    """Resume with fewer ranks, and then with more."""
    saved = rank_of(mode, shard, count, size).state() | {"epoch": 7, "position": size // count // 2}
    for now in (count * 7 // 9, count * 8 // 9):
        sampler = rank_of(mode, shard % now, now, size)
        sampler.restore(json.loads(json.dumps(saved)))
        sampler.next_batch(BATCH_SIZE)
        saved = sampler.state()
        assert len(json.dumps(saved)) < 250
        assert sampler.epoch_of(saved, 3) in (7, 8)


ACTIONS = [(action, mode) for action in (first_batch, late_epoch, end_of_epoch, resume) for mode in MODES]
ACTIONS += [(other_world, mode) for mode in COMMON_ORDERS]


@pytest.mark.parametrize(
    ("action", "mode"), ACTIONS, ids=[f"{action.__name__}-{'-'.join(mode) or 'in_order'}" for action, mode in ACTIONS]
)
def test_the_cost_of_a_rank_does_not_grow_with_their_number(
    action: Callable[[dict[str, Any], int, int, int], None], mode: dict[str, Any]
) -> None:
    few = cost(lambda: action(mode, 5, 10, 10**6))
    many = cost(lambda: action(mode, RANKS // 2, RANKS, SAMPLES))
    assert many[0] <= min(MAX_CALLS, 2 * few[0]), (many, few)
    assert many[1] <= min(MAX_BYTES, 2 * few[1]), (many, few)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_the_next_batch_takes_little_time(mode: dict[str, Any]) -> None:
    sampler = rank_of(mode, 17)
    sampler.next_batch(BATCH_SIZE)
    calls, most = cost(lambda: sampler.next_batch(BATCH_SIZE))
    assert calls < 50
    assert most < 5_000


@pytest.mark.parametrize("mode", [{}, {"shuffle_after_epoch": True}], ids=str)
def test_all_ranks_together_read_each_sample_once(mode: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch of 10,000 ranks, and the first one of 7,777 that resume from the state of one of them."""
    monkeypatch.setattr(sampler_module, "_BLOCK", BATCH_SIZE)  # no rank computes more than it reads
    ranks = [rank_of(mode, shard) for shard in range(RANKS)]
    read = [sampler.next_batch(BATCH_SIZE) for sampler in ranks]
    state = ranks[-1].state()
    for shard in range(FEWER):
        sampler = rank_of(mode, shard, FEWER)
        sampler.restore(state)
        read.append(sampler.next_batch(BATCH_SIZE))
    together = np.concatenate(read)
    assert together.min() >= 0
    assert together.max() < SAMPLES
    assert len(np.unique(together)) == (RANKS + FEWER) * BATCH_SIZE


def test_what_all_states_cost_with_an_order_of_each_rank() -> None:
    """With random_shuffle, the states of all ranks are read; the new state is short if seeds are equal."""
    states = [rank_of({"random_shuffle": True}, shard).state() | {"position": 6400} for shard in range(RANKS)]
    sampler = rank_of({"random_shuffle": True}, 3, FEWER)
    sampler.restore({"shards": states})
    assert len(np.unique(sampler.next_batch(5000))) == 5000
    assert len(json.dumps(sampler.state())) < 250
    _, most = cost(lambda: sampler.restore({"shards": states}))
    assert most < 500 * RANKS


@pytest.mark.parametrize(
    "split",
    [[2, -5, 0], [2, [-1, 3], 0], [2, [1], 0], [2, 1, [0]], [2, None, 0], [2, 1.5, 0], [2, 1, "x"], [10**7, 1, 0]],
)
def test_damaged_splits_are_refused(split: Any) -> None:
    sampler = rank_of({"shuffle_after_epoch": True}, 0, 2, 12)
    with pytest.raises(CheckpointError, match="is damaged"):
        sampler.restore({**sampler.state(), "left": {"0": [split]}})


@pytest.mark.parametrize("policy", LastBatchPolicy)
def test_the_count_of_an_iterator_is_short(policy: LastBatchPolicy) -> None:
    def counted(shards: int) -> ReaderEpochs:
        meta = {"epoch_size": SAMPLES, "number_of_shards": shards, "shard_id": 5, "pad_last_batch": 0}
        return ReaderEpochs([{**meta, "stick_to_shard": 0}], BATCH_SIZE, policy)

    before, after = counted(RANKS), counted(FEWER)
    after.divide(before.state(), 100, {0: SAMPLES - 100 * RANKS * BATCH_SIZE})
    assert len(json.dumps(after.state())) < 200
    again = counted(FEWER)
    again.restore(json.loads(json.dumps(after.state())))
    assert again.batches == after.batches
    assert again.kept(0, 100) == BATCH_SIZE
    calls, most = cost(lambda: again.kept(0, 100))
    assert calls < 20
    assert most < 2_000
