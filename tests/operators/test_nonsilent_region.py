"""fn.nonsilent_region compared with the real DALI and exact sums, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import run_dali

RANDOM = np.random.default_rng(0)
SPEECH = np.concatenate(
    [RANDOM.normal(0, s, n) for s, n in ((1e-4, 5000), (0.1, 9000), (1e-3, 4000), (0.3, 3000), (1e-5, 20000))]
).astype(np.float32)


def regions(samples, run=run_dalify, **arguments):
    begin, length = run("nonsilent_region", samples, **arguments)
    assert all(one.dtype == np.int32 and one.shape == () for one in [*begin, *length])
    return [(int(one), int(other)) for one, other in zip(begin, length, strict=True)]


def exact(audio, window, cutoff_db, reference_power=0.0):
    """Return begin and length by the mean squares of all windows in float64."""
    window = min(window, len(audio))
    sums = np.concatenate([[0.0], np.cumsum(audio.astype(np.float64) ** 2)])
    powers = (sums[window:] - sums[:-window]) / window
    loud = np.flatnonzero(powers >= (reference_power or powers.max()) * 10 ** (cutoff_db / 10))
    return (int(loud[0]), int(loud[-1] - loud[0] + window)) if len(loud) else (0, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cutoff_db": -30.0},
        {"cutoff_db": -10.0},
        {"cutoff_db": -20.0, "window_length": 64, "reset_interval": 256},
        {"cutoff_db": -20.0, "window_length": 64, "reset_interval": 64},
        {"cutoff_db": 0.0, "reference_power": 1e-3},
        {"cutoff_db": -3.0, "window_length": 1},
    ],
    ids=str,
)
def test_exact_sums(device, arguments):
    samples = [SPEECH, SPEECH[3000:], SPEECH[:1500]]
    expected = [
        exact(audio, arguments.get("window_length", 2048), arguments["cutoff_db"], arguments.get("reference_power", 0))
        for audio in samples
    ]
    assert regions(samples, device=device, **arguments) == expected


@pytest.mark.parametrize("loudest", ["first", "last"])
def test_any_number_of_intervals(loudest):
    """Intervals are summed four at a time; the last ones are fewer or shorter."""
    samples = []
    for size in range(1, 80):
        audio = np.arange(1, size + 1, dtype=np.float32)  # exact squares
        samples.append(audio if loudest == "last" else audio[::-1])
    for interval in (4, 8, 12):
        ours = regions(samples, window_length=4, reset_interval=interval, cutoff_db=-3.0)
        assert ours == [exact(audio, 4, -3.0) for audio in samples]


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([1, 64, 256, 2048]), st.sampled_from([-1, 1, 4, 8]), st.floats(-75, -55))
def test_rounding_equals_dali(seed, window, factor, cutoff_db):
    """Far below the loudest window what remains of float32 sums decides: it has to be DALI's remainder."""
    random = np.random.default_rng(seed)
    parts = [random.normal(0, loudness, 3000) for loudness in (1e-4, 0.1, 1e-3, 0.3, 1e-5)]
    arguments = {
        "window_length": window, "reset_interval": -1 if factor < 0 else factor * window, "cutoff_db": cutoff_db,
    }  # fmt: skip
    samples = [np.concatenate(parts).astype(np.float32)]
    assert regions(samples, **arguments) == regions(samples, run=run_dali, **arguments)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers(device, dtype):
    loudest = 100 if dtype.endswith("8") else 30000
    audio = (SPEECH * loudest).clip(0 if dtype[0] == "u" else -127 * loudest, None).astype(dtype)
    ours = regions([audio], device=device, cutoff_db=-20.0)
    assert ours == [exact(audio, 2048, -20.0)]
    assert ours == regions([audio], run=run_dali, cutoff_db=-20.0)


@pytest.mark.parametrize("place", [0, 1, 3, 4, 19, 36, 39])
def test_one_nonzero_value(device, place):
    click = np.zeros(40, np.float32)
    click[place] = 1
    first, last = max(0, place - 3), min(39, place + 3)
    assert regions([click], device=device, window_length=4) == [(first, last - first + 1)]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(device, value):
    audio = SPEECH.copy()
    audio[9000] = value
    assert regions([audio], device=device) == regions([audio], run=run_dali)


def test_very_short_audio(device):
    silence, short = np.zeros(100, np.float32), np.ones(3, np.float32)
    assert regions([silence, short, short[:1]], device=device) == [(0, 100), (0, 3), (0, 1)]
    assert regions([silence], device=device, reference_power=1.0) == [(0, 0)]
    assert regions([np.zeros(0, np.float32)], device=device) == [(0, 0)]  # DALI crashes
    assert regions([SPEECH], device=device, cutoff_db=1.0) == [(0, 0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window_length": 0}, "window_length must be at least 1"),
        ({"window_length": 100}, "multiple of window_length, 100; got 8192"),
        ({"reset_interval": 0}, "reset_interval must be -1"),
        ({"reset_interval": -2}, "reset_interval must be -1"),
        ({"reference_power": -1.0}, "reference_power must be finite and not negative"),
        ({"cutoff_db": float("nan")}, "cutoff_db must be a number"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentValueError, match=message):
        regions([SPEECH], **arguments)


def test_wrong_audio():
    with pytest.raises(DTypeError, match="float32 or integers"):
        regions([np.zeros(3000)])
    with pytest.raises(ShapeError, match="one axis"):
        regions([np.zeros((3000, 2), np.float32)])
