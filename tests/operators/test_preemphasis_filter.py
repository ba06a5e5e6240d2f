"""fn.preemphasis_filter compared with the real DALI, SciPy, and the formula, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from dalify import types
from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data.dtypes import from_numpy
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each
from tests.helpers.recordings import noisy_tones

RECORDINGS = [noisy_tones(samples, samples) * 100 for samples in (400, 400, 170)]
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


def rounded(x, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.trunc(x + np.copysign(0.5, x)), limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("border", ["zero", "clamp", "reflect"])
def test_scipy(device, border):
    for audio, ours in zip(
        RECORDINGS, run_dalify("preemphasis_filter", RECORDINGS, device=device, border=border), strict=True
    ):
        wide = audio.astype(np.float64)
        before = {"zero": 0.0, "clamp": wide[0], "reflect": wide[1]}[border]
        expected, _ = scipy.signal.lfilter([1, -0.97], [1], wide, zi=[-0.97 * before])
        np.testing.assert_allclose(ours, expected, rtol=0, atol=2e-5)
    assert_equals_dali("preemphasis_filter", RECORDINGS, device=device, border=border)


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(device, dtype):
    samples = [np.abs(audio).astype(dtype) for audio in RECORDINGS]
    for sample, ours in zip(samples, run_dalify("preemphasis_filter", samples, device=device), strict=True):
        wide = sample.astype(np.float64)
        np.testing.assert_allclose(ours, wide - 0.97 * np.concatenate([wide[:1], wide[:-1]]), rtol=0, atol=2e-4)
    name = from_numpy(np.dtype(dtype)).name
    assert_equals_dali("preemphasis_filter", samples, device=device)
    assert_equals_dali("preemphasis_filter", samples, device=device, dtype=name)
    assert_equals_dali("preemphasis_filter", RECORDINGS, device=device, dtype=name)


def test_integers_are_rounded_and_saturated(device):
    audio = np.array([0, 100, -100, 30, 30, 200], np.float32)
    (ours,) = run_dalify("preemphasis_filter", [audio], device=device, dtype=types.INT8, preemph_coeff=0.5)
    np.testing.assert_array_equal(ours, rounded(np.array([0, 100, -150, 80, 15, 185.0]), np.int8))


def test_coefficient_of_each_sample(device):
    coefficients = Each([np.float32(0), np.float32(2), np.float32(-1)])
    results = run_dalify("preemphasis_filter", RECORDINGS, device=device, preemph_coeff=coefficients, border="zero")
    np.testing.assert_array_equal(results[0], RECORDINGS[0])
    np.testing.assert_allclose(results[2][1:], RECORDINGS[2][1:] + RECORDINGS[2][:-1], rtol=1e-6, atol=1e-5)
    assert_equals_dali("preemphasis_filter", RECORDINGS, device=device, preemph_coeff=coefficients)


# DALI reads behind audio of one sample with border="reflect", and crashes on an empty one.
@pytest.mark.parametrize("border", ["zero", "clamp", "reflect"])
def test_signals_of_few_values(device, border):
    (ours,) = run_dalify("preemphasis_filter", [np.array([2], np.float32)], device=device, border=border)
    np.testing.assert_allclose(ours, [2 if border == "zero" else 2 * (1 - 0.97)], rtol=1e-5)
    assert run_dalify("preemphasis_filter", [np.zeros(0, np.float32)], device=device, border=border)[0].shape == (0,)


def test_dimensions_are_flattened(device):
    (ours,) = run_dalify("preemphasis_filter", [RECORDINGS[0].reshape(20, 20)], device=device)
    (flat,) = run_dalify("preemphasis_filter", RECORDINGS[:1], device=device)
    np.testing.assert_array_equal(ours.reshape(-1), flat)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="zero, clamp, reflect; got 'edge'"):
        run_dalify("preemphasis_filter", RECORDINGS, border="edge")
    with pytest.raises(DTypeError, match="the input type cannot be"):
        run_dalify("preemphasis_filter", [np.zeros(3, np.float16)])
    with pytest.raises(DTypeError, match="dtype cannot be"):
        run_dalify("preemphasis_filter", RECORDINGS, dtype=types.BOOL)
