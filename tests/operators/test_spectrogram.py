"""fn.spectrogram compared with the real DALI, SciPy, and the formula in float64, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.recordings import assert_audio_like_dali, assert_close, noisy_tones

RECORDINGS = [noisy_tones(samples, samples) for samples in (1000, 1000, 700)]
ARGUMENTS = [
    {},
    {"nfft": 1024},
    {"nfft": 601, "window_length": 100},
    {"window_length": 101, "layout": "tf"},
    {"window_length": 100, "window_step": 33, "reflect_padding": False},
    {"power": 1},
    {"power": 1, "nfft": 94, "window_length": 60, "layout": "tf"},
    {"window_fn": np.linspace(0, 1, 100).tolist(), "window_length": 100, "nfft": 120},
    {"center_windows": False},
    {"center_windows": False, "window_length": 30, "window_step": 100},
    {"window_length": 2, "nfft": 3},
]


def formula(audio, *, length=512, step=256, nfft=None, power=2, centered=True, reflect=True, window=None):
    """Return [bins, frames] in float64, window by window."""
    nfft = nfft or length
    if window is None:
        window = 0.5 * (1 - np.cos(2 * np.pi * (np.arange(length) + 0.5) / length))
    x, first = audio.astype(np.float64), 0
    if centered:
        before, first = length // 2, 0
        x = np.pad(x, (before, length), mode="reflect" if reflect and len(x) > 1 else "constant")
        frames = len(audio) // step + 1
    else:
        x = np.pad(x, (0, length))
        frames = max(0, len(audio) - length) // step + 1
    cut = np.stack([x[first + t * step : first + t * step + length] * window for t in range(frames)])
    turns = np.exp(-2j * np.pi / nfft * np.outer(np.arange(length), np.arange(nfft // 2 + 1)))
    return np.abs(cut @ turns).T ** power


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_parity(device, arguments):
    assert_audio_like_dali("spectrogram", RECORDINGS, device=device, rtol=2e-6, **arguments)


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_formula(device, arguments):
    names = {
        "window_length": "length",
        "window_step": "step",
        "center_windows": "centered",
        "reflect_padding": "reflect",
        "window_fn": "window",
    }
    own = {names.get(key, key): value for key, value in arguments.items() if key != "layout"}
    for audio, ours in zip(RECORDINGS, run_dalify("spectrogram", RECORDINGS, device=device, **arguments), strict=True):
        expected = formula(audio, **own)
        assert_close(ours, expected.T if arguments.get("layout") == "tf" else expected, 2e-6)


def test_scipy(device):
    window = scipy.signal.get_window("hamming", 200)
    _, _, expected = scipy.signal.stft(
        RECORDINGS[0].astype(np.float64), window=window, nperseg=200, noverlap=120, boundary=None, padded=False
    )
    (ours,) = run_dalify(
        "spectrogram", RECORDINGS[:1], device=device, window_length=200, window_step=80, center_windows=False, power=1,
        window_fn=window.tolist(),
    )  # fmt: skip
    assert_close(ours, np.abs(expected) * window.sum(), 2e-6)


@pytest.mark.parametrize("samples", [1, 2, 3, 10, 255, 256, 257, 511, 512, 513])
@pytest.mark.parametrize("reflect", [True, False])
def test_short_audio(device, samples, reflect):
    audio = noisy_tones(samples)
    (ours,) = run_dalify("spectrogram", [audio], device=device, reflect_padding=reflect)
    assert ours.shape == (257, samples // 256 + 1)
    padded = np.pad(audio.astype(np.float64), (256, 512), mode="reflect" if reflect and samples > 1 else "constant")
    if samples == 1 and reflect:
        padded[:] = audio[0]
    window = 0.5 * (1 - np.cos(2 * np.pi * (np.arange(512) + 0.5) / 512))
    expected = [np.abs(np.fft.rfft(padded[t * 256 : t * 256 + 512] * window)) ** 2 for t in range(ours.shape[1])]
    assert_close(ours, np.stack(expected, 1), 2e-6)
    assert_audio_like_dali("spectrogram", [audio], device=device, rtol=2e-6, reflect_padding=reflect)


def test_only_window_may_lack_less_than_a_step(device):
    audio = noisy_tones(300)
    (ours,) = run_dalify("spectrogram", [audio], device=device, center_windows=False)
    (full,) = run_dalify("spectrogram", [np.pad(audio, (0, 212))], device=device, center_windows=False)
    assert_close(ours, full, 1e-6)
    with pytest.raises(ShapeError, match="too short"):
        run_dalify("spectrogram", [audio[:256]], device=device, center_windows=False)


def test_one_channel_in_any_form(device):
    forms = [RECORDINGS[0][:, None], RECORDINGS[1][:, None]]
    flat = run_dalify("spectrogram", RECORDINGS[:2], device=device)
    for one, other in zip(run_dalify("spectrogram", forms, device=device), flat, strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_that_are_not_finite_change_only_their_windows(device):
    audio = noisy_tones(4000)
    (clean,) = run_dalify("spectrogram", [audio], device=device, window_length=100, window_step=50)
    for wrong in (np.nan, np.inf):
        spoiled = audio.copy()
        spoiled[2000] = wrong
        (ours,) = run_dalify("spectrogram", [spoiled], device=device, window_length=100, window_step=50)
        hit = ~np.isfinite(ours).all(0)
        assert set(np.flatnonzero(hit)) <= {39, 40, 41}
        np.testing.assert_array_equal(ours[:, ~hit], clean[:, ~hit])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layout": "xy"}, "ft, tf"),
        ({"power": 3}, "power must be 1"),
        ({"nfft": 256}, "at least window_length, 512"),
        ({"window_length": 0}, "window_length must be at least 1"),
        ({"window_step": -1}, "window_step must be at least 1"),
        ({"window_fn": [1.0, 2.0]}, "window_length=512 entries; got 2"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentValueError, match=message):
        run_dalify("spectrogram", RECORDINGS, **arguments)


def test_wrong_audio():
    with pytest.raises(DTypeError, match="float32"):
        run_dalify("spectrogram", [np.zeros(600, np.int16)])
    with pytest.raises(ShapeError, match="one channel"):
        run_dalify("spectrogram", [np.zeros((600, 2), np.float32)])
    with pytest.raises(ShapeError, match=r"(?s)empty.*sample 1"):
        run_dalify("spectrogram", [np.zeros(600, np.float32), np.zeros(0, np.float32)])
