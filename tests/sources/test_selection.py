"""Samplers: weights, balance, subsets and torch's samplers, with any number of shards and resumed anywhere."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.utils.data import DistributedSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

from dalify import samplers
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, SourceError
from dalify.sources.sampler import Sampler
from dalify.sources.sampler_options import SamplerOptions
from dalify.sources.selection import bind_sampler


class Index(list):
    """Entries 0 to n - 1 with labels."""

    def __init__(self, labels: Any, sources: Any = None) -> None:
        super().__init__(range(len(labels)))
        self.labels = labels
        self.sources = sources


def epoch_of(sampler: Any, index: Index, epoch: int = 0) -> np.ndarray:
    bound = bind_sampler(sampler, index)
    return bound.entries(epoch, np.arange(bound.size))


def test_weights_are_the_frequencies() -> None:
    weights = np.array([1, 0, 3, 6])
    drawn = epoch_of(samplers.Weighted(weights=weights, num_samples=20_000), Index([0] * 4))
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], 20_000 * np.array([0.1, 0.3, 0.6])).pvalue > 1e-4
    again = epoch_of(samplers.Weighted(weights=weights, num_samples=20_000), Index([0] * 4), epoch=1)
    assert (drawn != again).any()


def test_weights_without_replacement() -> None:
    """Frequencies of first positions are equal to the weights, by definition of this sampling."""
    index, weights = Index([0] * 4), [1.0, 0.0, 3.0, 6.0]
    bound = bind_sampler(samplers.Weighted(weights=weights, num_samples=3, replacement=False), index)
    drawn = np.array([bound.entries(epoch, np.arange(3)) for epoch in range(4000)])
    assert all(sorted(row) == [0, 2, 3] for row in drawn.tolist())
    counts = np.bincount(drawn[:, 0], minlength=4)
    assert stats.chisquare(counts[[0, 2, 3]], 4000 * np.array([0.1, 0.3, 0.6])).pvalue > 1e-4


@pytest.mark.parametrize(
    ("temperature", "expected"), [(1, [100, 10, 1]), (math.inf, [37, 37, 37]), (2, [71, 23, 17 - 10])]
)
def test_fractions_by_temperature(temperature: float, expected: list[int]) -> None:
    labels = np.repeat([5, 7, 9], [100, 10, 1])
    drawn = labels[epoch_of(samplers.Mixture(by="label", temperature=temperature), Index(labels))]
    shares = np.array([100, 10, 1]) ** (1 / temperature)
    counts = np.array([(drawn == label).sum() for label in (5, 7, 9)])
    assert counts.sum() == 111
    assert np.abs(counts - 111 * shares / shares.sum()).max() < 1
    if temperature != 2:
        assert counts.tolist() == expected


def test_sources_by_fraction() -> None:
    index = Index([0] * 100, sources=np.repeat(["web", "books"], [90, 10]))
    sampler = samplers.Mixture(by="source", weights={"web": 1, "books": 3}, num_samples=40)
    drawn = epoch_of(sampler, index)
    assert Counter(index.sources[drawn].tolist()) == {"web": 10, "books": 30}
    # All ten books are used before one is repeated, so each occurs three times in thirty.
    assert set(Counter(entry for entry in drawn.tolist() if entry >= 90).values()) == {3}


def test_groups_continue_across_epochs() -> None:
    labels = np.repeat([0, 1], [30, 10])
    sampler = samplers.ClassBalanced(num_samples=20)
    seen = np.concatenate([epoch_of(sampler, Index(labels), epoch) for epoch in range(3)])
    assert sorted(entry for entry in seen.tolist() if entry < 30) == list(range(30))
    assert set(Counter(entry for entry in seen.tolist() if entry >= 30).values()) == {3}


def test_an_order_that_is_not_sorted_by_class() -> None:
    labels = np.repeat([0, 1], [500, 500])
    drawn = labels[epoch_of(samplers.ClassBalanced(), Index(labels))]
    changes = int((np.diff(drawn) != 0).sum())
    assert 400 < changes < 600


def test_subset_keeps_its_order() -> None:
    assert epoch_of(samplers.Subset([4, 1, 1, 0]), Index([0] * 5)).tolist() == [4, 1, 1, 0]


@given(
    st.integers(1, 5),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from(["weighted", "mixture", "subset", "torch"]),
    st.integers(0, 3),
)
def test_shards_share_the_epoch(num_shards: int, size: int, shuffle: bool, kind: str, epoch: int) -> None:
    """All shards together read each sample of the epoch once; and resuming changes nothing."""
    size += num_shards
    index = Index(np.arange(size) % 3)
    sampler = {
        "weighted": samplers.Weighted(weights=np.arange(1, size + 1)),
        "mixture": samplers.Mixture(by="label", temperature=2),
        "subset": samplers.Subset(np.arange(size)[::-1]),
        "torch": RandomSampler(range(size)),
    }[kind]
    read = []
    for shard in range(num_shards):
        bound = bind_sampler(sampler, index)
        options = SamplerOptions(bound.size, shard, num_shards, random_shuffle=shuffle, stick_to_shard=True, seed=shard)
        whole = Sampler(options, bound)
        whole.start_epoch(epoch)
        start, stop = options.window(epoch)
        mine = whole.next_batch(stop - start)
        half = (stop - start) // 2
        before = Sampler(options, bound)
        before.start_epoch(epoch)
        if half:
            before.next_batch(half)
        after = Sampler(options, bind_sampler(sampler, index))
        after.restore(before.state())
        assert after.next_batch(stop - start - half).tolist() == mine[half:].tolist()
        read += mine.tolist()
    assert Counter(read) == Counter(epoch_of(sampler, index, epoch).tolist())


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomSampler(range(50)),
        lambda: RandomSampler(range(50), generator=torch.Generator().manual_seed(3)),
        lambda: RandomSampler(range(50), replacement=True, num_samples=80),
        lambda: SubsetRandomSampler(range(10, 30)),
        lambda: WeightedRandomSampler([0.1, 0.9, 0.5], 40),
        lambda: DistributedSampler(range(50), num_replicas=3, rank=1, seed=4),
        lambda: [3, 1, 2],
    ],
)
def test_any_sampler_of_torch(make: Any) -> None:
    """The order of an epoch does not depend on earlier calls; torch's random state is not changed."""
    index = Index([0] * 50)
    before = torch.get_rng_state()
    first, second = bind_sampler(make(), index), bind_sampler(make(), index)
    places = np.arange(first.size)
    epochs = [first.entries(epoch, places).tolist() for epoch in range(4)]
    assert second.entries(2, places).tolist() == epochs[2]
    assert second.entries(0, places).tolist() == epochs[0]
    assert torch.equal(torch.get_rng_state(), before)
    if not isinstance(make(), list):
        assert len({tuple(epoch) for epoch in epochs}) == 4


@pytest.mark.parametrize(
    "sampler", [samplers.Weighted(weights=np.ones(50), replacement=False), RandomSampler(range(50))]
)
def test_threads_may_ask_for_several_epochs(sampler: Any) -> None:
    """The order of an epoch is cached; prefetched batches must not replace it for a batch that is requested again."""
    bound = bind_sampler(sampler, range(50))
    expected = [bound.entries(epoch, np.arange(50)).tolist() for epoch in range(2)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: bound.entries(number % 2, np.arange(50)).tolist(), range(400)))
    assert all(found[number] == expected[number % 2] for number in range(400))


def test_distributed_sampler_keeps_its_part() -> None:
    sampler = DistributedSampler(range(50), num_replicas=5, rank=2, shuffle=False)
    assert epoch_of(sampler, Index([0] * 50)).tolist() == list(range(2, 50, 5))


@pytest.mark.parametrize(
    ("sampler", "kind", "message"),
    [
        (samplers.Weighted(weights=[1, 2]), ArgumentValueError, r"weights must have shape \(6,\)"),
        (samplers.Weighted(weights=[1, 2, -1, 1, 1, 1]), ArgumentValueError, "not negative"),
        (samplers.Weighted(weights=[0] * 6), ArgumentValueError, "not all 0"),
        (samplers.Weighted(weights=[1, 0, 0, 0, 0, 0], replacement=False), ArgumentValueError, "without replacement"),
        (samplers.Weighted(weights=[1] * 6, num_samples=0), ArgumentValueError, "num_samples must be at least 1"),
        (samplers.Mixture(by="color"), ArgumentValueError, "'label', 'source' or an array"),
        (samplers.Mixture(by="source"), ArgumentValueError, "does not know the source"),
        (samplers.Mixture(by=[1, 2]), ArgumentValueError, r"by must have shape \(6,\)"),
        (samplers.Mixture(temperature=0), ArgumentValueError, "temperature must be positive"),
        (samplers.Mixture(weights={7: 1.0}), ArgumentValueError, "unknown groups: 7"),
        (samplers.Subset([0, 6]), ArgumentValueError, "the index 6; valid indices are 0 to 5"),
        (samplers.Subset([]), ArgumentValueError, "non-empty 1-D list"),
        (samplers.Subset([0.5]), ArgumentTypeError, "indices of entries"),
        (["a", "b"], ArgumentTypeError, "indices of entries"),
        (samplers.Weighted, ArgumentTypeError, "must be one of dalify.samplers"),
        (3, ArgumentTypeError, "must be one of dalify.samplers"),
    ],
)
def test_mistakes(sampler: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        epoch_of(sampler, Index([0, 0, 1, 1, 2, 2]))


def test_a_sampler_does_not_end_the_epoch() -> None:
    """Otherwise a loop over the batches would end without a batch and without an error."""

    class Ending(RandomSampler):
        def __iter__(self) -> Any:
            return iter([next(iter([]))])

    with pytest.raises(SourceError, match="the sampler raised StopIteration"):
        epoch_of(Ending(range(4)), Index([0] * 4))


def test_sampler_of_another_length_than_it_says() -> None:
    class Short:
        def __iter__(self):
            return iter([1, 2])

        def __len__(self):
            return 5

    with pytest.raises(ArgumentValueError, match="has length 5 but yielded 2 items in epoch 0"):
        epoch_of(Short(), Index([0] * 6))


@pytest.mark.timeout(60)
def test_a_sampler_that_never_ends() -> None:
    class Endless:
        def __iter__(self):
            return itertools.repeat(1)

        def __len__(self):
            return 5

    with pytest.raises(ArgumentValueError, match="has length 5 but yielded more items in epoch 0"):
        epoch_of(Endless(), Index([0] * 6))
