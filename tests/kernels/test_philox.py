"""Philox compared with its published vectors and a Python implementation; CPU and GPU kernels are bit-identical."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from dalify.kernels.random.philox import Draws
from dalify.kernels.random.philox_words import philox4x32


def reference(counter: list[int], key: list[int]) -> list[int]:
    """Return Philox4x32-10 in Python integers, from the paper's formula."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & 0xFFFFFFFF, (p >> 32) ^ d ^ m, p & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return [a, b, c, d]


@njit
def one_block(counter: np.ndarray, key: np.ndarray) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    return philox4x32(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # the known-answer vectors of the Random123 distribution
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_known_answers(counter: list[int], key: list[int], expected: list[int]) -> None:
    assert reference(counter, key) == expected
    assert [int(word) for word in one_block(np.array(counter, np.uint64), np.array(key, np.uint64))] == expected


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(-(2**63), 2**64),
    operator=st.integers(0, 2**32 - 1),
    step=st.integers(0, 2**64 - 1),
    samples=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3),
    count=st.integers(0, 9),
    first_block=st.integers(0, 2**32 - 1),
)
def test_words_follow_the_counter(
    seed: int, operator: int, step: int, samples: list[int], count: int, first_block: int
) -> None:
    draws = Draws(seed, operator, step)
    got = draws.bits(np.array(samples), count, first_block=first_block)
    assert got.dtype == np.uint32
    assert got.shape == (len(samples), count)
    for sample, row in zip(samples, got, strict=True):
        expected = [
            word
            for block in range(3)
            for word in reference([(first_block + block) % 2**32, sample, step % 2**32, step >> 32], list(draws.key))
        ]
        assert row.tolist() == expected[:count]
    twin = draws.bits_torch(np.array(samples), count, "cpu", first_block=first_block)
    np.testing.assert_array_equal(twin.numpy(), got)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_is_in_range_flat_and_equal_on_torch(dtype: type[np.floating]) -> None:
    draws, samples = Draws(7, 3, 11), np.arange(50)
    values = draws.uniform(samples, 2001, dtype)
    assert values.dtype == dtype
    assert values.min() >= 0
    assert values.max() < 1
    counts = np.histogram(values, bins=100, range=(0, 1))[0]
    assert np.square(counts - counts.mean()).sum() / counts.mean() < 150  # chi-square, 99 degrees of freedom: p < 1e-3
    kind = torch.float64 if dtype is np.float64 else torch.float32
    np.testing.assert_array_equal(draws.uniform_torch(samples, 2001, "cpu", kind).numpy(), values)


def test_a_number_depends_on_its_position_only() -> None:
    draws = Draws(1, 2, 3)
    whole = draws.bits(np.arange(10), 40)
    np.testing.assert_array_equal(draws.bits(np.arange(4, 7), 40), whole[4:7])
    np.testing.assert_array_equal(draws.bits(np.arange(10), 12, first_block=5), whole[:, 20:32])
    np.testing.assert_array_equal(draws.uniform(np.arange(10), 40), (whole >> 8) / np.float32(2**24))


def test_every_coordinate_changes_the_numbers() -> None:
    rows = {
        tuple(Draws(*place).bits(np.array([sample]), 4)[0].tolist())
        for place in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (2**63, 0, 0), (0, 0, 2**40)]
        for sample in (0, 1, 2)
    }
    assert len(rows) == 21


def test_draws_of_a_group_equal_those_of_its_samples() -> None:
    draws, samples = Draws(9, 8, 7), np.array([5, 2, 11])
    group = draws.at(samples)
    assert len(group) == 3
    np.testing.assert_array_equal(group.bits(6, first_block=2), draws.bits(samples, 6, first_block=2))
    np.testing.assert_array_equal(group.uniform(6), draws.uniform(samples, 6, np.float64))
    np.testing.assert_array_equal(group.uniform(6, np.float32), draws.uniform(samples, 6))
    np.testing.assert_array_equal(group.bits_torch(6, "cpu").numpy(), group.bits(6))
    np.testing.assert_array_equal(group.uniform_torch(6, "cpu").numpy(), group.uniform(6))


def test_repr() -> None:
    assert repr(Draws(1, 2, 3)) == "Draws(seed=1, operator=2, step=3)"
