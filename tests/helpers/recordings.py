"""Generated audio for tests, compared relative to its maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import run_dali


def noisy_tones(samples: int, seed: int = 0) -> np.ndarray:
    """Return a few tones with noise, float32 [samples]."""
    random = np.random.default_rng(seed)
    time = np.arange(samples) / 16000
    tones = sum(np.sin(2 * np.pi * f * time + p) for f, p in zip(random.uniform(80, 6000, 4), range(4), strict=True))
    return (0.15 * tones + random.normal(0, 0.05, samples)).astype(np.float32)


def assert_close(ours: np.ndarray, expected: np.ndarray, rtol: float, *, largest_step: float = 0) -> None:
    """Check shape and values.

    Args:
        ours: result.
        expected: expected values of any dtype.
        rtol: maximum difference relative to the largest value.
        largest_step: difference that is always allowed, for integers.
    """
    assert ours.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected))
    scale = np.abs(expected[finite], dtype=np.float64).max(initial=0)
    difference = np.abs(ours[finite].astype(np.float64) - expected[finite].astype(np.float64))
    assert difference.max(initial=0) <= max(rtol * scale, largest_step)


def assert_audio_like_dali(
    name: str,
    *inputs: Sequence[np.ndarray],
    rtol: float,
    largest_step: float = 0,
    device: str = "cpu",
    **arguments: Any,
) -> None:
    """Run an operator here and in DALI; see `run_dali` for the arguments and `assert_close` for tolerances."""
    theirs, ours = run_dali(name, *inputs, **arguments), run_dalify(name, *inputs, device=device, **arguments)
    pairs = zip(theirs, ours, strict=True) if isinstance(theirs, tuple) else [(theirs, ours)]
    for expected, results in pairs:
        for one, other in zip(results, expected, strict=True):
            assert one.dtype == other.dtype
            assert_close(one, other, rtol, largest_step=largest_step)
