"""fn.random, fn.noise, permutations: distributions, equal devices, independence of the batch, shapes as in DALI."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

import dalify
from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, LayoutError, ShapeError
from tests.helpers.both import run_both, run_here
from tests.helpers.messages import own_text

COUNT = 4000
ZEROS = [np.zeros(COUNT, np.float32)] * 2


def drawn(call, device="cpu", inputs=ZEROS):
    """Return the numbers of the first sample of each output of ``call(fn, types, x)``."""
    results = run_here(lambda dali, x: call(dali.fn, dali.types, x), inputs, device=device)
    return [samples[0] for _, samples in results]


def test_uniform(device):
    unit, wide, whole, narrow, listed, double = drawn(
        lambda fn, types, x: [
            fn.random.uniform(x),
            fn.random.uniform(x, range=(10, 20)),
            fn.random.uniform(x, range=(0, 9), dtype=types.INT32),
            fn.random.uniform(x, range=(-100, 400), dtype=types.UINT8),
            fn.random.uniform(x, values=[1, 5, 2.5]),
            fn.random.uniform(x, dtype=types.FLOAT64),
        ],
        device,
    )
    assert unit.dtype == np.float32
    assert stats.kstest(unit, stats.uniform(-1, 2).cdf).pvalue > 1e-4
    assert stats.kstest(wide, stats.uniform(10, 10).cdf).pvalue > 1e-4
    assert double.dtype == np.float64
    # Rounding gives both ends half the probability of the numbers between.
    expected = np.array([0.5, *[1] * 8, 0.5]) * COUNT / 9
    assert stats.chisquare(np.bincount(whole, minlength=10), expected).pvalue > 1e-4
    assert narrow.dtype == np.uint8
    assert abs((narrow == 0).mean() - 0.2) < 0.04
    assert abs((narrow == 255).mean() - 0.29) < 0.04
    assert stats.chisquare([(listed == value).sum() for value in (1, 2.5, 5)]).pvalue > 1e-4


def test_normal_and_coin_flip(device):
    standard, shifted, saturated, coins, rare, booleans = drawn(
        lambda fn, types, x: [
            fn.random.normal(x),
            fn.random.normal(x, mean=5.0, stddev=0.5),
            fn.random.normal(x, mean=250.0, stddev=10.0, dtype=types.UINT8),
            fn.random.coin_flip(x),
            fn.random.coin_flip(x, probability=0.1, dtype=types.UINT8),
            fn.random.coin_flip(x, dtype=types.BOOL),
        ],
        device,
    )
    assert stats.kstest(standard, "norm").pvalue > 1e-4
    assert stats.kstest(shifted, stats.norm(5, 0.5).cdf).pvalue > 1e-4
    assert saturated.dtype == np.uint8
    assert abs((saturated == 255).mean() - stats.norm(250, 10).sf(254.5)) < 0.04
    assert coins.dtype == np.int32
    assert abs(coins.mean() - 0.5) < 0.04
    assert abs(rare.mean() - 0.1) < 0.03
    assert booleans.dtype == np.bool_


def test_choice_and_beta(device):
    numbers, elements, weighted, rows, mixed = drawn(
        lambda fn, types, x: [
            fn.random.choice(5, x),
            fn.random.choice([1.5, 2.5], x),
            fn.random.choice(3, x, p=[0.5, 0.25, 0.25]),
            fn.random.choice(dalify.types.Constant(np.arange(6, dtype=np.uint8).reshape(3, 2)), shape=[4]),
            fn.random.beta(x, alpha=2.0, beta=5.0),
        ],
        device,
    )
    assert numbers.dtype == np.int32
    assert stats.chisquare(np.bincount(numbers, minlength=5)).pvalue > 1e-4
    assert set(elements.tolist()) == {1.5, 2.5}
    assert stats.chisquare(np.bincount(weighted), [COUNT / 2, COUNT / 4, COUNT / 4]).pvalue > 1e-4
    assert rows.shape == (4, 2)
    assert (rows[:, 1] == rows[:, 0] + 1).all()
    assert stats.kstest(mixed, stats.beta(2, 5).cdf).pvalue > 1e-4


def test_shapes_types_and_layouts_equal_dali():
    def graph(dali, x, extents):
        random, types = dali.fn.random, dali.types
        return [
            random.uniform(), random.uniform(shape=[]), random.uniform(shape=3), random.uniform(shape=[2, 0]),
            random.uniform(x), random.uniform(x, dtype=types.UINT8), random.uniform(shape=extents), random.normal(),
            random.normal(shape=[4], dtype=types.INT16), random.coin_flip(), random.coin_flip(x), random.choice(7),
            random.choice(7, shape=[2]), random.choice([1.5, 2.5]), random.choice(x), random.choice(x, shape=[2]),
            random.choice(x, shape=[2, 2]), random.beta(), random.beta(x, dtype=types.FLOAT64),
            dali.fn.batch_permutation(), dali.fn.noise.gaussian(x), dali.fn.noise.shot(x),
            dali.fn.noise.salt_and_pepper(x),
        ]  # fmt: skip

    samples = [np.ones((rows, 3), np.uint8) for rows in (2, 4)]
    extents = [np.array([2, 3], np.int32), np.array([1, 5], np.int32)]
    for number, (ours, theirs) in enumerate(run_both(graph, samples, extents, layouts=["HC", ""])):
        assert ours[0] == theirs[0], f"output {number}: layout"
        for one, other in zip(ours[1], theirs[1], strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), f"output {number}"


def everything(dali, x, low):
    random, noise = dali.fn.random, dali.fn.noise
    device = {"device": x.device}
    return [
        random.uniform(range=(0, 5), shape=[7], **device), random.uniform(values=[1, 2, 3], shape=[9], **device),
        random.normal(shape=[33], mean=low, **device), random.coin_flip(shape=[9], probability=0.3, **device),
        random.choice(9, shape=[5], **device), random.beta(alpha=0.3, beta=2.0, shape=[5], **device),
        random.uniform(shape=[3], dtype=dali.types.INT64, range=(0, 1e9), **device),
        noise.gaussian(x, stddev=10.0, mean=low), noise.shot(x), noise.shot(x, factor=0.0),
        noise.salt_and_pepper(x, prob=0.4), noise.salt_and_pepper(x, prob=0.4, per_channel=True),
    ]  # fmt: skip


def everything_on(device):
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 256, (8, 6, 3), dtype=np.uint8) for _ in range(4)]
    lows = [np.float32(number) for number in range(4)]

    def graph(dali, x, low):
        return everything(dali, x, low if device == "cpu" else low.cpu())

    return run_here(graph, images, lows, layouts=["HWC", ""], device=device)


def test_both_devices_draw_the_same_numbers(gpu):
    results = zip(everything_on("cpu"), everything_on(gpu), strict=True)
    for number, ((_, one), (_, other)) in enumerate(results):
        for first, second in zip(one, other, strict=True):
            assert first.dtype == second.dtype
            np.testing.assert_array_equal(first, second, err_msg=f"output {number}")


def test_noise_has_its_distribution(device):
    flat = [np.full((60, 70, 3), 100, np.uint8)]
    normal, counts, untouched, spots, channels, floats = drawn(
        lambda fn, types, x: [
            fn.noise.gaussian(x, mean=3.0, stddev=10.0),
            fn.noise.shot(x, factor=5.0),
            fn.noise.shot(x, factor=0.0),
            fn.noise.salt_and_pepper(x, prob=0.3, salt_vs_pepper=0.25),
            fn.noise.salt_and_pepper(x, prob=0.3, per_channel=True, salt_val=300.0, pepper_val=7.4),
            fn.noise.salt_and_pepper(fn.cast(x, dtype=types.FLOAT), prob=0.5),
        ],
        device,
        flat,
    )
    assert abs(normal.mean() - 103) < 0.5
    assert abs(normal.std() - 10) < 0.3
    assert (counts % 5 == 0).all()
    assert abs(counts.mean() - 100) < 1
    assert abs(counts.std() - np.sqrt(20) * 5) < 1
    assert (untouched == 100).all()
    assert (spots == spots[:, :, :1]).all()
    assert abs((spots == 255).mean() - 0.075) < 0.02
    assert abs((spots == 0).mean() - 0.225) < 0.03
    assert set(np.unique(channels).tolist()) == {7, 100, 255}
    assert not (channels == channels[:, :, :1]).all()
    assert set(np.unique(floats).tolist()) == {-1, 1, 100}


def test_channels_may_come_first(device):
    ((_, samples),) = run_here(
        lambda dali, x: [dali.fn.noise.salt_and_pepper(x, prob=0.5)],
        [np.full((3, 9, 8), 100, np.uint8)],
        layouts="CHW",
        device=device,
    )
    assert (samples[0] == samples[0][:1]).all()
    assert len(np.unique(samples[0])) == 3


def test_numbers_do_not_depend_on_the_batch_size():
    def firsts(count):
        graph = lambda dali, x: [dali.fn.random.uniform(seed=4), dali.fn.random.normal(shape=[3], seed=5)]  # noqa: E731
        return [samples[:2] for _, samples in run_here(graph, [np.float32(0)] * count)]

    for one, other in zip(firsts(2), firsts(5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_batch_permutation():
    def graph(dali, x):
        return [
            dali.fn.batch_permutation(),
            dali.fn.batch_permutation(no_fixed_points=True),
            dali.fn.batch_permutation(allow_repetitions=True),
            dali.fn.batch_permutation(allow_repetitions=True, no_fixed_points=True),
            dali.fn.permute_batch(x, indices=dali.fn.batch_permutation(seed=3)),
            dali.fn.batch_permutation(seed=3),
            dali.fn.permute_batch(x, indices=[1, 1, 0, *range(3, 40)]),
        ]

    samples = [np.full(number % 3 + 1, number, np.int32) for number in range(40)]
    results = [outputs for _, outputs in run_here(graph, samples)]
    order, deranged, repeated, other, permuted, chosen, constant = results
    assert order[0].dtype == np.int32
    assert sorted(int(number) for number in order) == list(range(40))
    assert sorted(int(number) for number in deranged) == list(range(40))
    assert all(int(number) != place for place, number in enumerate(deranged))
    assert len({int(number) for number in repeated}) < 40
    assert all(int(number) != place for place, number in enumerate(other))
    assert [sample[0] for sample in permuted] == [int(number) for number in chosen]
    assert [sample.tolist() for sample in constant[:3]] == [[1, 1], [1, 1], [0]]


@pytest.mark.parametrize("debug", [False, True])
def test_batch_permutation_in_a_branch_permutes_its_samples(debug):
    @dalify.pipeline_def(batch_size=9, num_threads=2, device_id=None, seed=3)
    def define():
        x = dalify.fn.external_source(source=lambda _: list(np.arange(9, dtype=np.int32)))
        others = dalify.fn.batch_permutation()
        if x % 3 == 0:
            y = dalify.fn.permute_batch(x, indices=dalify.fn.batch_permutation(no_fixed_points=True))
        elif x > 2:
            y = dalify.fn.permute_batch(x, indices=dalify.fn.batch_permutation())
        else:
            y = x
        return y, others

    y, others = (np.array(output) for output in define(debug=debug).run())
    assert sorted(others) == list(range(9))
    assert sorted(y[[0, 3, 6]]) == [0, 3, 6]
    assert (y[[0, 3, 6]] != [0, 3, 6]).all()
    assert sorted(y[[4, 5, 7, 8]]) == [4, 5, 7, 8]
    assert list(y[[1, 2]]) == [1, 2]


def test_a_batch_of_one_has_one_order():
    ((_, samples),) = run_here(lambda dali, x: [dali.fn.batch_permutation(no_fixed_points=True)], [np.float32(0)])
    assert samples[0] == 0


def test_permute_batch_on_the_gpu(device):
    ((_, samples),) = run_here(
        lambda dali, x: [dali.fn.permute_batch(x, indices=[2, 0, 0])],
        [np.arange(3) + number for number in range(3)],
        device=device,
    )
    assert [sample[0] for sample in samples] == [2, 0, 0]


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda fn, x: fn.random.uniform(range=(3, 1)), ArgumentValueError, r"range \[3.0, 1.0\] is empty"),
        (lambda fn, x: fn.random.uniform(range=(1, 2, 3)), ArgumentValueError, "two numbers, start and end; got 3"),
        (lambda fn, x: fn.random.uniform(range=x), ArgumentValueError, "two numbers, start and end; got 4"),
        (lambda fn, x: fn.random.uniform(values=[]), ArgumentValueError, "at least one number"),
        (lambda fn, x: fn.random.uniform(x, shape=[3]), ArgumentValueError, "not both"),
        (lambda fn, x: fn.random.uniform(shape=[-3]), ShapeError, "negative extent"),
        (lambda fn, x: fn.random.choice(1.5), DTypeError, "must be an integer, the number of choices; got float32"),
        (lambda fn, x: fn.random.choice(0), ArgumentValueError, "number of elements must be positive; got 0"),
        (lambda fn, x: fn.random.choice(3, p=[0.5, 0.5]), ArgumentValueError, "for each of 3 elements; got 2"),
        (lambda fn, x: fn.random.choice(2, p=[0.5, 0.75]), ArgumentValueError, "the sum is 1.25"),
        (lambda fn, x: fn.random.choice(2, p=[1.5, -0.5]), ArgumentValueError, "must not be negative"),
        (lambda fn, x: fn.random.beta(alpha=0.0), ArgumentValueError, "alpha must be positive"),
        (
            lambda fn, x: fn.random.beta(dtype=dalify.types.UINT8),
            DTypeError,
            "must be a floating-point type, .*; got uint8",
        ),
        (lambda fn, x: fn.random.coin_flip(probability=float("nan")), ArgumentValueError, "from 0 to 1; got nan"),
        (lambda fn, x: fn.noise.salt_and_pepper(x, prob=-0.5), ArgumentValueError, "prob must be a probability"),
        (
            lambda fn, x: fn.noise.salt_and_pepper(x, salt_vs_pepper=2),
            ArgumentValueError,
            "salt_vs_pepper must be a probability",
        ),
        (lambda fn, x: fn.permute_batch(x, indices=[0, 1, 1]), ArgumentValueError, "3 entries; the batch has 2"),
        (lambda fn, x: fn.permute_batch(x, indices=[0, 2]), IndexingError, "indices contains 2"),
        (
            lambda fn, x: fn.noise.salt_and_pepper(fn.reshape(x, shape=[1, 2, 2], layout="HCW")),
            LayoutError,
            "channels must be the first or the last axis",
        ),
    ],
)
def test_mistakes_are_named(mistake, error, message):
    with pytest.raises(error) as caught:
        run_here(lambda dali, x: [mistake(dali.fn, x)], [np.ones(4, np.float32)] * 2)
    assert re.search(message, own_text(caught.value))


def test_lists_of_different_lengths_per_sample(device):
    def graph(dali, x):
        host = x if device == "cpu" else x.cpu()
        return [
            dali.fn.random.uniform(values=host, shape=[50], device=device),
            dali.fn.random.choice(host, shape=[50], p=host / dali.fn.reductions.sum(host)),
        ]

    samples = [np.array([1, 2], np.float32), np.array([5, 6, 7], np.float32)]
    for _, results in run_here(graph, samples, device=device):
        assert [set(result.tolist()) for result in results] == [{1, 2}, {5, 6, 7}]
