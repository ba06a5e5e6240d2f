"""fn.mfcc compared with the real DALI and scipy.fft.dct, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.recordings import assert_audio_like_dali, assert_close

RANDOM = np.random.default_rng(0)
SPECTRA = [RANDOM.normal(0, 20, (65, frames)).astype(np.float32) for frames in (37, 200, 20)]
TYPES = [(1, False), *((kind, normalize) for kind in (2, 3, 4) for normalize in (False, True))]


def coefficients(x, axis, count, dct_type, normalize, lifter):
    if dct_type == 4 or normalize:
        result = scipy.fft.dct(x, dct_type, axis=axis, norm="ortho" if normalize else None)
    else:
        result = scipy.fft.dct(x, dct_type, axis=axis)
    result = np.moveaxis(result if normalize else result / 2, axis, 0)[:count]
    if lifter:
        k = np.arange(len(result)).reshape(-1, *[1] * (x.ndim - 1))
        result = result * (1 + lifter / 2 * np.sin(np.pi * (k + 1) / lifter))
    return np.moveaxis(result, 0, axis)


@pytest.mark.parametrize(("dct_type", "normalize"), TYPES)
@pytest.mark.parametrize(("axis", "count", "lifter"), [(0, 20, 0.0), (1, 7, 22.0), (0, 100, -3.5)])
def test_scipy(device, dct_type, normalize, axis, count, lifter):
    arguments = {"dct_type": dct_type, "normalize": normalize, "axis": axis, "n_mfcc": count, "lifter": lifter}
    for spectrum, ours in zip(SPECTRA, run_dalify("mfcc", SPECTRA, device=device, **arguments), strict=True):
        expected = coefficients(spectrum.astype(np.float64), axis, count, dct_type, normalize, lifter)
        assert_close(ours, expected, 2e-6)
    assert_audio_like_dali("mfcc", SPECTRA, device=device, rtol=1e-5, **arguments)


def test_dimensions(device):
    block = RANDOM.normal(0, 1, (3, 40, 5)).astype(np.float32)
    (ours,) = run_dalify("mfcc", [block], device=device, axis=1, n_mfcc=13)
    assert_close(ours, coefficients(block.astype(np.float64), 1, 13, 2, False, 0.0), 2e-6)
    (row,) = run_dalify("mfcc", [block[0, :, 0]], device=device, n_mfcc=13)
    np.testing.assert_allclose(row, ours[0, :, 0], rtol=0, atol=1e-5)


def test_samples_with_few_elements(device):
    (ours,) = run_dalify("mfcc", [SPECTRA[0][:1]], device=device)
    np.testing.assert_array_equal(ours, SPECTRA[0][:1])
    assert run_dalify("mfcc", [SPECTRA[0][:0]], device=device)[0].shape == (0, 37)
    assert run_dalify("mfcc", [SPECTRA[0][:, :0]], device=device)[0].shape == (20, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dct_type": 5}, "dct_type must be 1, 2, 3 or 4"),
        ({"dct_type": 1, "normalize": True}, "no orthonormal basis"),
        ({"n_mfcc": 0}, "n_mfcc must be at least 1"),
        ({"axis": -1}, "axis must not be negative"),
        ({"lifter": float("nan")}, "lifter must be finite"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentValueError, match=message):
        run_dalify("mfcc", SPECTRA, **arguments)


def test_wrong_data():
    with pytest.raises(IndexingError, match="axis 2"):
        run_dalify("mfcc", SPECTRA, axis=2)
    with pytest.raises(DTypeError, match="float32"):
        run_dalify("mfcc", [np.zeros((20, 3))])
    with pytest.raises(ShapeError, match="at least two"):
        run_dalify("mfcc", [SPECTRA[0][:1]], dct_type=1)
