"""The Fourier transform of sixteen signals compared with NumPy's, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.kernels.audio.fourier import LANES, Transform, spectrum_of_lanes, transform_of


def aligned(rows: int) -> np.ndarray:
    raw = np.empty((rows + 1) * LANES, np.float32)
    first = -(raw.ctypes.data // 4) % LANES
    return raw[first : first + rows * LANES].reshape(rows, LANES)


def fill_spectrum(out: np.ndarray, rows: np.ndarray, plan: Transform, is_magnitude: bool) -> None:
    spare = aligned(len(rows))
    spectrum_of_lanes(
        out.ctypes.data, rows.ctypes.data, spare.ctypes.data, len(rows) // 2, *plan, is_magnitude
    )  # fmt: skip


def is_smooth(number: int) -> bool:
    for factor in (2, 3, 5):
        while number % factor == 0:
            number //= factor
    return number == 1


@pytest.mark.parametrize("is_magnitude", [False, True])
def test_all_lengths(is_magnitude):
    for length in [*range(2, 700, 2), 720, 750, 1000, 1024, 1250, 2048]:
        plan = transform_of(length)
        assert (plan is not None) == is_smooth(length)
        if plan is None:
            continue
        signals = np.random.default_rng(length).normal(0, 1, (length, LANES)).astype(np.float32)
        rows, out = aligned(length), aligned(length // 2 + 1)
        rows[:] = signals
        fill_spectrum(out, rows, plan, is_magnitude)
        expected = np.abs(np.fft.rfft(signals.astype(np.float64), axis=0)) ** (1 if is_magnitude else 2)
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-6 * expected.max())


def test_lanes_are_independent():
    signals = np.random.default_rng(0).normal(0, 1, (60, LANES)).astype(np.float32)
    results, plan = [], transform_of(60)
    assert plan is not None
    for others in (signals, np.full_like(signals, np.nan)):
        rows, out = aligned(60), aligned(31)
        rows[:] = others
        rows[:, 5] = signals[:, 5]
        fill_spectrum(out, rows, plan, False)
        results.append(out[:, 5].copy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("length", [0, 1, 3, 601, 14, 2 * 7 * 11, 1 << 15])
def test_lengths_that_need_numpy(length):
    assert transform_of(length) is None
