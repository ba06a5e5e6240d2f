"""The smaller and the larger of two numbers in compiled functions."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.compiling import njit
from dalify.base.extremes import larger_of, smaller_of


@njit()
def both(a: float, b: float) -> tuple[float, float]:
    return smaller_of(a, b), larger_of(a, b)  # pyright: ignore[reportCallIssue]


@njit()
def at_least_one(a: int) -> int:
    return larger_of(a, 1)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float32, np.float64])
@pytest.mark.parametrize(("a", "b"), [(3, 5), (5, 3), (-3, 2), (-3, -5), (4, 4)])
def test_numbers(kind: type, a: int, b: int) -> None:
    assert both(kind(a), kind(b)) == (min(a, b), max(a, b))


def test_literal() -> None:
    assert [at_least_one(np.int64(value)) for value in (-2, 0, 1, 7)] == [1, 1, 1, 7]


def test_the_second_number_is_returned_if_one_is_nan() -> None:
    assert both(np.nan, 2.0) == (2.0, 2.0)
    assert np.isnan(both(2.0, np.nan)).all()
