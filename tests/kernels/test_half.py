"""All 16-bit floats, compared with a search among all of them and with torch's conversion."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dalify.kernels.arrays.half import bfloat16_bits, float16_bits, float32_of_float16

# Ties, minimum and maximum numbers, values that round to infinity, NaN with and without a high bit.
HARD = np.array(
    [
        *(0, 1, 0x3300_0000, 0x3300_0001, 0x3880_0000, 0x387F_FFFF, 0x387F_F000, 0x477F_EFFF, 0x477F_F000),
        *(0x477F_E000, 0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FC0_0000, 0x3F80_1000, 0x3F80_3000, 0x3F80_8000),
    ],
    np.uint32,
)


def numbers() -> np.ndarray:
    """Return floats of all magnitudes and both signs."""
    bits = np.concatenate([np.arange(0, 2**31, 7919, dtype=np.uint32), HARD])
    return np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)


def nearest(x: np.ndarray) -> np.ndarray:
    """Return the nearest float16 of each number, halves away from zero: all of them are compared, in float64."""
    every = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (every + np.append(every[1:], 65536)) / 2  # exact
    bits = np.searchsorted(middles, np.abs(x.astype(np.float64)), side="right").astype(np.uint16)
    return (bits | (np.signbit(x).astype(np.uint16) << 15)).view(np.float16)


def test_float16_is_the_nearest() -> None:
    x = numbers()
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(np.inf))])
    found = np.empty(x.shape, np.uint16)
    float16_bits(found, x)
    is_nan = np.isnan(x)
    np.testing.assert_array_equal(found[~is_nan], nearest(x[~is_nan]).view(np.uint16))
    assert np.isnan(found.view(np.float16)[is_nan]).all()


def test_halves_are_rounded_away_from_zero() -> None:
    every = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (every + np.append(every[1:], np.float32(65536))) / 2
    for x, to in ((middles, 1), (np.nextafter(middles, np.float32(0)), 0)):
        found = np.empty(x.shape, np.uint16)
        float16_bits(found, x)
        np.testing.assert_array_equal(found, np.arange(0x7C00) + to)


def test_bfloat16_equals_torch() -> None:
    x = numbers()
    found = np.empty(x.shape, np.uint16)
    bfloat16_bits(found, x)
    wanted = torch.from_numpy(x).bfloat16()
    is_nan = wanted.isnan().numpy()
    np.testing.assert_array_equal(found[~is_nan], wanted.view(torch.uint16).numpy()[~is_nan])
    assert torch.from_numpy(found).view(torch.bfloat16).isnan().numpy()[is_nan].all()


def test_every_float16_is_restored() -> None:
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    found = np.empty(x.shape, np.float32)
    float32_of_float16(found, x)
    np.testing.assert_array_equal(found.view(np.uint32), x.astype(np.float32).view(np.uint32))


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 0, 4), (2, 17, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    halves, words = np.empty(shape, np.float16), np.empty(shape, np.uint16)
    float16_bits(halves.view(np.uint16), x)
    bfloat16_bits(words, x)
    np.testing.assert_array_equal(halves, nearest(x))
    np.testing.assert_array_equal(words, torch.from_numpy(x).bfloat16().view(torch.uint16).numpy())
