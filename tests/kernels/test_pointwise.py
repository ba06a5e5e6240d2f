"""Multiply-and-add and tables compared with exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dalify.data.samples import Samples
from dalify.kernels.arrays import pointwise


@given(st.floats(-4, 4, width=32), st.floats(-300, 300, width=32))
def test_bytes_are_rounded_half_away_and_saturated(factor, summand):
    x = np.arange(256, dtype=np.uint8)[None]
    out = np.empty_like(x)
    pointwise.scale_shift(
        Samples.of_dense(out), Samples.of_dense(x), np.array([factor], np.float32), np.array([summand], np.float32)
    )
    value = x.astype(np.float32) * np.float32(factor) + np.float32(summand)
    np.testing.assert_array_equal(out, np.floor(np.clip(value, 0, 255).astype(np.float64) + 0.5))


@pytest.mark.parametrize("source", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("target", [np.uint8, np.int32, np.float32])
def test_every_sample_has_its_own_numbers(source, target):
    x = np.random.default_rng(0).integers(0, 100, (3, 4, 5)).astype(source)
    factor, summand = np.array([1, 0.5, 2], np.float32), np.array([0, 10.25, -7], np.float32)
    exact = x * factor[:, None, None].astype(np.float64) + summand[:, None, None]
    if target == np.uint8:
        exact = np.clip(exact, 0, 255)
    out = np.empty(x.shape, target)
    pointwise.scale_shift(Samples.of_dense(out), Samples.of_dense(x), factor, summand)
    np.testing.assert_allclose(out, exact, rtol=1e-6, atol=0 if target == np.float32 else 0.5)
    out_torch = torch.from_numpy(np.empty_like(out))
    pointwise.scale_shift_torch(out_torch, torch.from_numpy(x), factor, summand)
    np.testing.assert_array_equal(out_torch.numpy(), out)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_tables(dtype):
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (2, 9, 4), dtype=np.uint8)
    table = random.integers(0, 256, (2, 256)).astype(dtype)
    expected = np.stack([table[n][x[n]] for n in range(2)])
    out = np.empty(x.shape, dtype)
    pointwise.apply_table(out, x, table)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("source", [np.int8, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("target", [np.bool_, np.float32])
def test_keys_outside_of_the_table_select_the_last_entry(source, target):
    limits = np.iinfo(source)
    x = np.array([[0, 1, 2, limits.max - 1], [3, limits.min, 127, limits.max]], source)
    table = np.arange(301).astype(target)
    out = np.empty(x.shape, target)
    pointwise.look_up(out, x, table)
    expected = [table[value if 0 <= value < 300 else 300] for value in x.ravel().tolist()]
    np.testing.assert_array_equal(out.ravel(), expected)
