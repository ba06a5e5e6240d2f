"""fn.to_decibels compared with the real DALI and the formula in float64, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.data.samples import Samples
from dalify.kernels.audio import decibels
from tests.helpers.one_operator import run_dalify
from tests.helpers.recordings import assert_audio_like_dali, assert_close

RANDOM = np.random.default_rng(0)
SPECTRA = [np.abs(RANDOM.normal(0, 1, (65, frames))).astype(np.float32) for frames in (37, 37, 20)]


def formula(x, multiplier=10.0, cutoff_db=-200.0, reference=0.0):
    wide = x.astype(np.float64) / (reference or x.max(initial=0) or 1)
    return multiplier * np.log10(np.maximum(wide, 10 ** (cutoff_db / multiplier)))


@pytest.mark.parametrize(
    "arguments",
    [{}, {"reference": 2.0}, {"cutoff_db": -20.0}, {"multiplier": 20.0, "cutoff_db": -60.0}, {"cutoff_db": 10.0}],
    ids=str,
)
def test_formula(device, arguments):
    for spectrum, ours in zip(SPECTRA, run_dalify("to_decibels", SPECTRA, device=device, **arguments), strict=True):
        assert_close(ours, formula(spectrum, **arguments), 1e-6)
    assert_audio_like_dali("to_decibels", SPECTRA, device=device, rtol=1e-6, **arguments)


@pytest.mark.parametrize(
    "values",
    [
        [1, np.nan, np.inf, -np.inf, 0],
        [1, np.nan, 2],
        [np.nan, 1, 2],
        [-1, -2, -3],
        [0, 0],
        [1e-40, 1e-44, 1e38, 3e38, 1e-38],
        [1, np.inf, 2],
    ],
    ids=str,
)
@pytest.mark.parametrize("reference", [0.0, 1.0])
def test_numbers_at_the_limits(device, values, reference):
    samples = [np.array(values, np.float32)]
    arguments = {"cutoff_db": -1e4, **({"reference": reference} if reference else {})}
    assert_audio_like_dali("to_decibels", samples, device=device, rtol=1e-6, **arguments)
    (ours,) = run_dalify("to_decibels", samples, device=device, cutoff_db=-90.0, reference=1.0)
    x = np.nan_to_num(samples[0].astype(np.float64), nan=0.0, posinf=np.inf, neginf=0.0)
    np.testing.assert_allclose(ours, 10 * np.log10(np.maximum(x, 1e-9)), rtol=1e-6, atol=1e-6)


@settings(max_examples=50)
@given(arrays.arrays(np.float32, st.integers(1, 1500), elements=st.floats(0, 3.4028234663852886e38, width=32)))
def test_the_logarithm_of_the_formula(x):
    out = np.empty((1, len(x)), np.float32)
    decibels.to_decibels(Samples.of_dense(out), Samples.of_dense(x[None]), 10.0, -400.0, 1.0)
    expected = 10 * np.log10(np.maximum(x.astype(np.float64), 1e-40))
    np.testing.assert_allclose(out[0], expected, rtol=4e-7, atol=2e-6)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="reference must be positive"):
        run_dalify("to_decibels", SPECTRA, reference=-1.0)
    with pytest.raises(ArgumentValueError, match="must be finite"):
        run_dalify("to_decibels", SPECTRA, cutoff_db=float("nan"))
    with pytest.raises(DTypeError, match="float32"):
        run_dalify("to_decibels", [np.zeros(3, np.int16)])
