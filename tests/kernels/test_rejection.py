"""Poisson and beta compared with SciPy's distributions, and CPU and GPU kernels with each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from dalify.kernels.random.philox import Draws, SampleDraws
from dalify.kernels.random.rejection import beta, poisson, poisson_torch


def group(samples: int = 1) -> SampleDraws:
    return Draws(4, 5, 6).at(np.arange(samples))


@pytest.mark.parametrize("mean", [0.01, 0.7, 3.0, 9.99, 10.0, 25.5, 300.0, 5000.0])
def test_poisson_has_its_distribution(mean: float) -> None:
    got = poisson(group(2), np.full((2, 20_000), mean, np.float32)).ravel()
    assert (got == np.floor(got)).all()
    distribution = stats.poisson(np.float32(mean))
    limits = np.unique(distribution.ppf(np.linspace(0.02, 0.98, 25)))
    expected = np.diff(np.concatenate([[0], distribution.cdf(limits), [1]])) * got.size
    observed = np.bincount(np.searchsorted(limits, got), minlength=len(limits) + 1)
    likely = expected > 0
    assert (observed[~likely] == 0).all()
    assert stats.chisquare(observed[likely], expected[likely] * got.size / expected.sum()).pvalue > 1e-4


def test_poisson_of_means_that_are_not_positive_is_0() -> None:
    means = np.array([[0, -3, np.nan, -np.inf]], np.float32)
    assert poisson(group(), means).tolist() == [[0, 0, 0, 0]]
    assert poisson_torch(group(), torch.as_tensor(means)).tolist() == [[0, 0, 0, 0]]


def test_poisson_is_the_same_on_torch() -> None:
    means = np.random.default_rng(0).uniform(-1, 40, (3, 3001)).astype(np.float32)
    means[0, :10] = [0, 1e-9, 10, 9.999999, 1000, 1e5, 1e6, 0.5, 64, 63]
    got = poisson(group(3), means)
    np.testing.assert_array_equal(poisson_torch(group(3), torch.as_tensor(means)).numpy(), got)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (0.5, 0.5), (2, 5), (0.05, 3), (100, 0.3), (1e-3, 1e-3)])
def test_beta_has_its_distribution(first: float, second: float) -> None:
    got = beta(group(2), 5000, np.array([first, 1.0]), np.array([second, 1.0]))
    assert got.dtype == np.float64
    assert (got >= 0).all()
    assert (got <= 1).all()
    distribution = stats.beta(first, second)
    if first < 0.01:  # nearly all of it is within rounding of 0 and 1: compare the two halves
        assert abs((got[0] < 0.5).mean() - 0.5) < 0.04
    else:
        assert stats.kstest(got[0], distribution.cdf).pvalue > 1e-4
    assert stats.kstest(got[1], "uniform").pvalue > 1e-4
