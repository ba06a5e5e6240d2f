"""The distributions compared with SciPy's, and CPU and GPU kernels with each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special, stats

from dalify.kernels.random.distributions import (
    choice,
    choice_torch,
    coin_flip,
    coin_flip_torch,
    column,
    column_torch,
    flip_few,
    standard_normal,
    standard_normal_torch,
    uniform,
    uniform_few,
    uniform_torch,
)
from dalify.kernels.random.philox import Draws, SampleDraws


def group(samples: int = 4, seed: int = 1) -> SampleDraws:
    return Draws(seed, 2, 3).at(np.arange(samples))


def test_normal_is_the_inverse_distribution_function_of_a_word() -> None:
    draws = group()
    words = draws.bits(50_001).astype(np.int64)
    sign = np.where(words >> 31, -1, 1)
    expected = sign * special.ndtri(((words & 0x7FFFFFFF) + 0.5) / 2.0**32)
    got = standard_normal(draws, 50_001)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=5e-7)
    assert stats.kstest(got.ravel(), "norm").pvalue > 1e-4
    np.testing.assert_array_equal(standard_normal_torch(draws, 50_001, "cpu").numpy(), got)


def test_normal_reaches_far_into_the_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    magnitudes = np.concatenate([np.arange(200), 2 ** np.arange(31), 2 ** np.arange(1, 32) - 1])
    words = np.concatenate([magnitudes, magnitudes | 2**31])
    monkeypatch.setattr(SampleDraws, "bits_torch", lambda self, count, device: torch.as_tensor(words)[None])
    got = standard_normal_torch(group(1), len(words), "cpu").numpy()[0]
    expected = special.ndtri((magnitudes + 0.5) / 2.0**32)
    np.testing.assert_allclose(got, np.concatenate([expected, -expected]), rtol=2e-7, atol=2e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_covers_its_range_without_its_end(dtype: type[np.floating]) -> None:
    low, high = np.array([-1, 0, 1e6, 5]), np.array([1, 255, 1e6 + 0.25, 5.000001])
    got = uniform(group(), 20_000, low, high, dtype)
    assert got.dtype == dtype
    first, end = low.astype(dtype), high.astype(dtype)
    assert (got.min(axis=1) >= first).all()
    assert (got.max(axis=1) < end).all()
    assert stats.kstest(got[0], stats.uniform(-1, 2).cdf).pvalue > 1e-4
    assert stats.kstest(got[1], stats.uniform(0, 255).cdf).pvalue > 1e-4
    np.testing.assert_array_equal(uniform_torch(group(), 20_000, low, high, "cpu", dtype).numpy(), got)


def test_coin_flip_has_its_probability() -> None:
    probability = np.array([0.0, 0.25, 1.0, 2.0])
    got = coin_flip(group(), 20_000, probability)
    assert got.dtype == np.bool_
    means = got.mean(axis=1)
    assert means[[0, 2, 3]].tolist() == [0, 1, 1]
    assert abs(means[1] - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)
    np.testing.assert_array_equal(coin_flip_torch(group(), 20_000, probability, "cpu").numpy(), got)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_few_numbers_equal_those_of_the_general_functions(shape: tuple[int, ...]) -> None:
    draws, count = group(30), int(np.prod(shape))
    low = np.linspace(-1e6, 1e-6, 30, dtype=np.float32)
    high = np.nextafter(low, np.float32(np.inf)) + np.linspace(0, 3, 30, dtype=np.float32)
    out = np.empty((30, *shape), np.float32)
    assert uniform_few(out, draws, np.stack([low, high], axis=1))
    np.testing.assert_array_equal(out.reshape(30, -1), uniform(draws, count, low, high))
    flips, probability = np.empty((30, *shape), np.int32), np.linspace(-0.1, 1.1, 30, dtype=np.float32)
    assert flip_few(flips, draws, probability)
    np.testing.assert_array_equal(flips.reshape(30, -1), coin_flip(draws, count, probability))


def test_few_numbers_are_refused_where_the_general_functions_are_needed() -> None:
    draws, limits = group(), np.array([[0, 1]] * 4, np.float32)
    assert not uniform_few(np.empty(4, np.float64), draws, limits)
    assert not uniform_few(np.empty((4, 2000), np.float32), draws, limits)
    assert not uniform_few(np.empty(8, np.float32)[::2], draws, limits)
    assert not uniform_few(np.empty(4, np.float32), draws, limits[:, ::-1])
    assert not flip_few(np.empty(4, np.int64), draws, limits[:, 0])
    assert not flip_few(np.empty(4, np.int32), draws, np.full(4, np.nan, np.float32))


def test_choice_is_even_without_probabilities() -> None:
    size = np.array([1, 2, 7, 2**31 - 1])
    got = choice(group(), 14_000, size)
    assert (got.min(axis=1) >= 0).all()
    assert (got.max(axis=1) < size).all()
    assert stats.chisquare(np.bincount(got[2], minlength=7)).pvalue > 1e-4
    np.testing.assert_array_equal(choice_torch(group(), 14_000, size, "cpu").numpy(), got)


def test_choice_follows_its_probabilities() -> None:
    p = np.array([[0.5, 0.25, 0.25, 0], [0, 0, 0, 1], [1, 1, 2, 4], [1, 0, 0, 0]])
    got = choice(group(), 16_000, 4, p)
    assert (got[1] == 3).all()
    assert (got[3] == 0).all()
    assert stats.chisquare(np.bincount(got[0], minlength=3), [8000, 4000, 4000]).pvalue > 1e-4
    assert stats.chisquare(np.bincount(got[2], minlength=4), [2000, 2000, 4000, 8000]).pvalue > 1e-4
    np.testing.assert_array_equal(choice_torch(group(), 16_000, 4, "cpu", p).numpy(), got)


def test_column_lets_parameters_broadcast_against_values() -> None:
    assert column(np.array([1, 2])).shape == (2, 1)
    assert column(3).shape == ()
    assert column_torch([1, 2], "cpu").shape == (2, 1)
