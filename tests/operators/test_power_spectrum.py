"""fn.power_spectrum compared with the real DALI and NumPy's transform in float64, on both devices."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.recordings import assert_audio_like_dali, assert_close, noisy_tones

SIGNALS = [noisy_tones(400, 1), noisy_tones(390, 2)]
BLOCKS = [noisy_tones(400, seed).reshape(5, 20, 4) for seed in (1, 2)]


@pytest.mark.parametrize("arguments", [{}, {"power": 1}, {"nfft": 20}, {"nfft": 1000}, {"nfft": 41}, {"nfft": 0}])
def test_signals(device, arguments):
    results = run_dalify("power_spectrum", SIGNALS, device=device, **arguments)
    for signal, ours in zip(SIGNALS, results, strict=True):
        spectrum = np.fft.rfft(signal.astype(np.float64), arguments.get("nfft") or None)
        assert_close(ours, np.abs(spectrum) ** arguments.get("power", 2), 2e-6)
    assert_audio_like_dali("power_spectrum", SIGNALS, device=device, rtol=2e-6, **arguments)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_axes(device, axis):
    results = run_dalify("power_spectrum", BLOCKS, device=device, axis=axis, nfft=12)
    for block, ours in zip(BLOCKS, results, strict=True):
        assert_close(ours, np.abs(np.fft.rfft(block.astype(np.float64), 12, axis=axis)) ** 2, 2e-6)
    assert_audio_like_dali("power_spectrum", BLOCKS, device=device, rtol=2e-6, axis=axis, nfft=12)


def test_one_sample(device):
    (ours,) = run_dalify("power_spectrum", [np.array([3], np.float32)], device=device)
    np.testing.assert_allclose(ours, [9], rtol=1e-6)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="power must be 1"):
        run_dalify("power_spectrum", SIGNALS, power=3)
    with pytest.raises(ArgumentValueError, match="axis must be -1"):
        run_dalify("power_spectrum", BLOCKS, axis=-2)
    with pytest.raises(IndexingError, match="axis 3 does not exist"):
        run_dalify("power_spectrum", BLOCKS, axis=3)
    with pytest.raises(DTypeError, match="float32"):
        run_dalify("power_spectrum", [np.zeros(8)])
    with pytest.raises(ShapeError, match="at least one sample"):
        run_dalify("power_spectrum", [np.zeros(0, np.float32)])
