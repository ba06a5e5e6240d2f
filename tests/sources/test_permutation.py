"""The keyed permutation is a permutation, depends on its key, and is uniform down to tiny sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.sources.permutation import mixed_key, permute

KEYS = st.integers(0, 2**64 - 1)


@given(size=st.integers(1, 700), key=KEYS)
def test_every_entry_occurs_once(size, key):
    np.testing.assert_array_equal(np.sort(permute(np.arange(size), size, key)), np.arange(size))


@settings(max_examples=30)
@given(size=st.integers(2**30, 2**62), key=KEYS)
def test_huge_sizes_stay_in_range_without_collisions(size, key):
    values = permute(np.arange(size - 500, size), size, key)
    assert values.min() >= 0
    assert values.max() < size
    assert len(np.unique(values)) == 500


def test_values_do_not_depend_on_other_requested_values():
    whole = permute(np.arange(1000), 1000, 5)
    for position in (0, 3, 999):
        assert permute(np.array([position]), 1000, 5)[0] == whole[position]


@pytest.mark.parametrize("size", [3, 4, 5, 7, 8, 13])
def test_every_entry_is_equally_likely_at_every_position(size):
    draws = 4000
    counts = np.zeros((size, size))
    for number in range(draws):
        counts[np.arange(size), permute(np.arange(size), size, mixed_key(number))] += 1
    expected = draws / size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = (size - 1) ** 2
    # Five standard deviations of the chi-square distribution: mean f, variance 2 f.
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("size", [3, 4])
def test_all_orders_of_few_entries_are_equally_likely(size):
    draws = 6000
    orders, counts = np.unique(
        [permute(np.arange(size), size, mixed_key(number)) for number in range(draws)], axis=0, return_counts=True
    )
    expected_orders = int(np.prod(np.arange(1, size + 1)))
    assert len(orders) == expected_orders
    chi_square = ((counts - draws / expected_orders) ** 2 / (draws / expected_orders)).sum()
    assert chi_square < expected_orders + 5 * np.sqrt(2 * expected_orders)


def test_adjacent_values_are_separated():
    size = 10_000
    steps = np.diff(permute(np.arange(size), size, 99))
    # The mean distance of two random numbers below n is n / 3.
    assert abs(np.abs(steps).mean() - size / 3) < size / 50
    assert (np.abs(steps) == 1).sum() < 20


def test_adjacent_keys_give_independent_orders():
    first, second = (permute(np.arange(1000), 1000, mixed_key(7, epoch)) for epoch in (0, 1))
    assert (first == second).sum() < 10


def test_mixed_key_depends_on_order_count_and_sign():
    keys = {mixed_key(*parts) for parts in [(), (0,), (0, 0), (1, 2), (2, 1), (-1,), (1,), (2**63,), (1, 2, 0)]}
    assert len(keys) == 9
