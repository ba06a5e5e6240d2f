"""fn.mel_filter_bank compared with the real DALI and the written-out triangles in float64, on both devices."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError
from tests.helpers.one_operator import run_dalify
from tests.helpers.recordings import assert_audio_like_dali, assert_close

RANDOM = np.random.default_rng(0)
SPECTRA = [np.abs(RANDOM.normal(0, 1, (65, frames))).astype(np.float32) for frames in (37, 37, 20)]
ARGUMENTS = [
    {},
    {"nfilter": 10},
    {"normalize": False, "nfilter": 40},
    {"mel_formula": "htk"},
    {"mel_formula": "htk", "normalize": False, "freq_low": 300.0, "freq_high": 7000.0, "sample_rate": 16000.0},
    {"freq_high": 30000.0, "nfilter": 23},
    {"freq_low": 1000.0, "freq_high": 8000.0, "sample_rate": 16000.0, "nfilter": 13},
    {"freq_high": -1.0, "nfilter": 1},
]


def to_mel(hertz: float, formula: str) -> float:
    if formula == "htk":
        return 2595 * np.log10(1 + hertz / 700)
    return hertz * 3 / 200 if hertz < 1000 else 15 + np.log(hertz / 1000) * 27 / np.log(6.4)


def to_hertz(mel: float, formula: str) -> float:
    if formula == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def triangles(
    bins, *, nfilter=128, mel_formula="slaney", normalize=True, sample_rate=44100.0, freq_low=0.0, freq_high=0.0
):
    """Return the filters, [nfilter, bins], one weight at a time."""
    high = freq_high if freq_high > 0 else sample_rate / 2
    mels = np.linspace(to_mel(freq_low, mel_formula), to_mel(high, mel_formula), nfilter + 2)
    corners = [to_hertz(mel, mel_formula) for mel in mels]
    weights = np.zeros((nfilter, bins))
    for m in range(nfilter):
        left, top, right = corners[m : m + 3]
        for k in range(bins):
            hertz = k * sample_rate / 2 / (bins - 1)
            weights[m, k] = max(0, min((hertz - left) / (top - left), (right - hertz) / (right - top)))
        if normalize:
            weights[m] *= 2 / (right - left)
    return weights


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_formula(device, arguments):
    weights = triangles(65, **arguments)
    for layout in ("ft", "tf"):
        turned = [spectrum if layout == "ft" else spectrum.T for spectrum in SPECTRA]
        results = run_dalify("mel_filter_bank", turned, layouts=layout, device=device, **arguments)
        for spectrum, ours in zip(SPECTRA, results, strict=True):
            assert_close(ours if layout == "ft" else ours.T, weights @ spectrum, 2e-6)


# DALI computes the corners in float32: with 128 narrow filters that is a difference of a hundred-thousandth.
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_parity(device, arguments):
    assert_audio_like_dali("mel_filter_bank", SPECTRA, layouts="ft", device=device, rtol=2e-5, **arguments)
    if arguments.get("freq_high", 0) < 22050:  # beyond the spectrum DALI sums up what lies behind it, in this layout
        turned = [spectrum.T for spectrum in SPECTRA]
        assert_audio_like_dali("mel_filter_bank", turned, layouts="tf", device=device, rtol=2e-5, **arguments)


@pytest.mark.parametrize(("shape", "layout"), [((65,), ""), ((65, 4), ""), ((3, 65, 4), ""), ((65, 6, 2), "ftC")])
def test_axes(device, shape, layout):
    spectrum = np.abs(RANDOM.normal(0, 1, shape)).astype(np.float32)
    (ours,) = run_dalify("mel_filter_bank", [spectrum], layouts=layout, device=device, nfilter=9)
    axis = 0 if layout or len(shape) < 3 else 1
    expected = np.moveaxis(np.tensordot(triangles(65, nfilter=9), spectrum, axes=(1, axis)), 0, axis)
    assert_close(ours, expected, 2e-6)
    assert_audio_like_dali("mel_filter_bank", [spectrum], layouts=layout, device=device, rtol=2e-5, nfilter=9)


@pytest.mark.parametrize("bins", [0, 1])
def test_spectra_of_few_bins(device, bins):
    (ours,) = run_dalify("mel_filter_bank", [SPECTRA[0][:bins]], device=device, nfilter=4)
    np.testing.assert_array_equal(ours, np.zeros((4, 37), np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mel_formula": "HTK"}, "slaney, htk; got 'HTK'"),
        ({"nfilter": 0}, "nfilter must be at least 1"),
        ({"sample_rate": 0.0}, "sample_rate must be positive"),
        ({"freq_low": -5.0}, "freq_low must not be negative"),
        ({"freq_low": 8000.0, "freq_high": 100.0}, "freq_high must be between"),
        ({"freq_low": 30000.0}, "half the sample rate"),
        ({"freq_high": 50000.0}, "freq_high must be between"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentValueError, match=message):
        run_dalify("mel_filter_bank", SPECTRA, **arguments)


def test_wrong_spectra():
    with pytest.raises(DTypeError, match="float32"):
        run_dalify("mel_filter_bank", [np.zeros((65, 3))])
    with pytest.raises(LayoutError, match="frequency axis"):
        run_dalify("mel_filter_bank", SPECTRA, layouts="xy")
    with pytest.raises(LayoutError, match="got scalars"):
        run_dalify("mel_filter_bank", [np.float32(3)])
