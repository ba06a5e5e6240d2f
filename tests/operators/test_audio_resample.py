"""fn.audio_resample compared with the real DALI and the windowed sinc in float64, on both devices."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import types
from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each
from tests.helpers.recordings import assert_audio_like_dali, noisy_tones

RECORDINGS = [noisy_tones(samples, samples) for samples in (1500, 1500, 400)]
NAMES = {
    "int8": "INT8", "uint8": "UINT8", "int16": "INT16", "uint16": "UINT16", "int32": "INT32", "uint32": "UINT32",
    "float32": "FLOAT",
}  # fmt: skip


def windowed_sinc(audio, step, results, lobes=16):
    """Return what the filter gives at all multiples of ``step``, in float64."""
    distance = np.arange(len(audio)) - step * np.arange(results)[:, None]
    window = np.where(np.abs(distance) < lobes, 0.5 + 0.5 * np.cos(np.pi * distance / lobes), 0)
    return (np.sinc(distance) * window) @ audio.astype(np.float64)


@pytest.mark.parametrize(
    ("arguments", "ratio"),
    [
        ({"scale": 0.5}, 0.5),
        ({"scale": 1.0}, 1.0),
        ({"scale": 1.3337}, 1.3337),
        ({"in_rate": 16000.0, "out_rate": 22050.0}, 22050 / 16000),
        ({"in_rate": 44100.0, "out_rate": 16000.0}, 16000 / 44100),
        ({"scale": 1.3, "quality": 0.0}, 1.3),
        ({"scale": 1.3, "quality": 100.0}, 1.3),
        ({"scale": 4.0}, 4.0),
    ],
)
def test_formula(device, arguments, ratio):
    lobes = {0.0: 3, 100.0: 64}.get(arguments.get("quality", 50.0), 16)
    for audio, ours in zip(
        RECORDINGS, run_dalify("audio_resample", RECORDINGS, device=device, **arguments), strict=True
    ):
        assert ours.shape == (int(np.ceil(len(audio) * np.float64(np.float32(ratio)) - 1e-9)),)
        # DALI's table and its places in float32 are exact to a thousandth; the next test is stricter.
        np.testing.assert_allclose(ours, windowed_sinc(audio, 1 / ratio, len(ours), lobes), rtol=0, atol=3e-3)
    assert_audio_like_dali("audio_resample", RECORDINGS, device=device, rtol=1e-5, **arguments)


@pytest.mark.parametrize("length", [1, 300, 1500, 5000])
def test_length(device, length):
    results = run_dalify("audio_resample", RECORDINGS, device=device, out_length=length)
    assert [ours.shape for ours in results] == [(length,)] * 3
    assert_audio_like_dali("audio_resample", RECORDINGS, device=device, rtol=1e-5, out_length=length)


def test_a_tone_keeps_its_frequency(device):
    """A tone far below both limits keeps its frequency, phase and loudness."""
    tone = np.sin(2 * np.pi * 440 * np.arange(4000) / 16000).astype(np.float32)
    (ours,) = run_dalify("audio_resample", [tone], device=device, in_rate=16000.0, out_rate=22050.0)
    expected = np.sin(2 * np.pi * 440 * np.arange(len(ours)) / 22050)
    np.testing.assert_allclose(ours[50:-50], expected[50:-50], rtol=0, atol=3e-3)


def test_values_of_each_sample(device):
    scales = Each([np.float32(0.7), np.float32(1.2), np.float32(1.2)])
    results = run_dalify("audio_resample", RECORDINGS, device=device, scale=scales)
    assert [len(ours) for ours in results] == [1050, 1801, 481]
    assert_audio_like_dali("audio_resample", RECORDINGS, device=device, rtol=1e-5, scale=scales)
    rates = Each([np.float32(8000), np.float32(16000), np.float32(44100)])
    assert_audio_like_dali("audio_resample", RECORDINGS, device=device, rtol=1e-5, in_rate=rates, out_rate=16000.0)
    lengths = Each([np.int64(10), np.int64(3000), np.int64(400)])
    assert_audio_like_dali("audio_resample", RECORDINGS, device=device, rtol=1e-5, out_length=lengths)


@pytest.mark.parametrize("channels", [1, 3, 40])
def test_channels(device, channels):
    audio = np.stack([noisy_tones(300, seed) for seed in range(channels)], 1)
    (ours,) = run_dalify("audio_resample", [audio], device=device, scale=0.8)
    for channel in (0, channels - 1):
        (alone,) = run_dalify("audio_resample", [audio[:, channel]], device=device, scale=0.8)
        np.testing.assert_allclose(ours[:, channel], alone, rtol=0, atol=1e-6)
    assert_audio_like_dali("audio_resample", [audio], device=device, rtol=1e-5, scale=0.8)


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("result", NAMES)
def test_types(device, dtype, result):
    """32 bits have more digits than the floats that the filter computes in."""
    recordings = [noisy_tones(200, 3)]
    if dtype != "float32":
        limits = np.iinfo(dtype)
        recordings = [np.random.default_rng(0).integers(limits.min, limits.max, 200, dtype, endpoint=True)]
    recordings.append(np.full(50, recordings[0][0]))
    tolerance = {"rtol": 4e-6, "largest_step": 1} if result != "float32" else {"rtol": 1e-5}
    assert_audio_like_dali("audio_resample", recordings, device=device, scale=1.4, dtype=NAMES[result], **tolerance)


@pytest.mark.parametrize(
    ("source", "target", "values"),
    [
        ([-1, 0, 0.5, 1], types.INT16, [-32767, 0, 16384, 32767]),
        ([-1, 0, 0.5, 1], types.UINT8, [0, 128, 191, 255]),
        ([3, -3, 0, 1], types.INT16, [32767, -32768, 0, 32767]),
        (np.array([0, 128, 255], np.uint8), types.INT16, [-32767, 128, 32767]),
        (np.array([-127, 0, 127], np.int8), types.FLOAT, [-1, 0, 1]),
        (np.array([-32767, 0, 32767], np.int16), types.UINT8, [0, 128, 255]),
    ],
)
def test_ranges(device, source, target, values):
    """Copies at the places of the samples: what conversion alone does. Long steps keep neighbors apart."""
    audio = np.zeros(
        len(values) * 1, np.asarray(source, np.float32).dtype if isinstance(source, list) else source.dtype
    )
    audio[:] = source
    (ours,) = run_dalify("audio_resample", [audio], device=device, scale=1.0, dtype=target)
    np.testing.assert_allclose(ours, values, rtol=0, atol=1e-5 if target == types.FLOAT else 1)


@pytest.mark.parametrize("samples", [1, 2, 5])
def test_short_audio(device, samples):
    assert_audio_like_dali("audio_resample", [RECORDINGS[0][:samples]], device=device, rtol=1e-5, scale=1.5)
    (ours,) = run_dalify("audio_resample", [RECORDINGS[0][:samples]], device=device, scale=1.5)
    np.testing.assert_allclose(ours, windowed_sinc(RECORDINGS[0][:samples], 1 / 1.5, len(ours)), rtol=0, atol=1e-3)


def test_nothing(device):
    empty = np.zeros(0, np.float32)
    assert run_dalify("audio_resample", [empty], device=device, scale=2.0)[0].shape == (0,)
    assert run_dalify("audio_resample", RECORDINGS[:1], device=device, scale=0.0)[0].shape == (0,)
    assert run_dalify("audio_resample", [np.zeros((9, 0), np.float32)], device=device, scale=2.0)[0].shape == (18, 0)
    with pytest.raises(ShapeError, match=r"(?s)empty.*sample 0"):
        run_dalify("audio_resample", [empty], device=device, out_length=3)


def test_values_that_are_not_finite_change_only_their_neighbors(device):
    spoiled = RECORDINGS[0].copy()
    spoiled[700] = np.nan
    clean, ours = (
        run_dalify("audio_resample", [audio], device=device, scale=1.0)[0] for audio in (RECORDINGS[0], spoiled)
    )
    hit = np.flatnonzero(np.isnan(ours))
    assert hit.min() >= 700 - 16
    assert hit.max() <= 700 + 16
    np.testing.assert_array_equal(np.delete(ours, hit), np.delete(clean, hit))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "specify exactly one of these"),
        ({"scale": 1.0, "out_length": 3}, "specify exactly one of these"),
        ({"in_rate": 3.0}, "must be specified together"),
        ({"scale": -1.0}, "scale must not be negative; got -1"),
        ({"in_rate": 0.0, "out_rate": 1.0}, "in_rate must be positive; got 0"),
        ({"in_rate": 1.0, "out_rate": -2.0}, "out_rate must not be negative"),
        ({"out_length": -3}, "out_length must not be negative"),
        ({"scale": 1.0, "quality": 101.0}, "quality must be between 0 and 100"),
        ({"scale": Each([np.float32(1), np.float32(-1), np.float32(1)])}, r"(?s)must not be negative.*sample 1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentValueError, match=message):
        run_dalify("audio_resample", RECORDINGS, **arguments)


def test_wrong_audio():
    with pytest.raises(DTypeError, match="INT8"):
        run_dalify("audio_resample", [np.zeros(9)], scale=1.0)
    with pytest.raises(DTypeError, match="dtype must be one of"):
        run_dalify("audio_resample", RECORDINGS, scale=1.0, dtype=types.INT64)
    with pytest.raises(ShapeError, match="3 dimensions"):
        run_dalify("audio_resample", [np.zeros((9, 2, 2), np.float32)], scale=1.0)
