"""Where a recording is not silent: its power in a sliding window.

Alone in a file because the sliding sum is DALI's to the last bit: where the power crosses the threshold must not
depend on who added it up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["nonsilent_regions"]


@njit(nogil=True, cache=True)
def _powers(out: np.ndarray, x: np.ndarray, window: int, interval: int, zero: Any) -> Any:
    """Fill out [n] with the mean squares of the windows that end with each sample, and return the largest one.

    What a window lacks at the beginning is 0. Squares are added to the type of ``zero``; at every multiple of
    ``interval`` the sum begins anew, so that errors stay small.
    """
    scale, largest = np.float32(1) / np.float32(window), np.float32(0)
    for begin in range(0, x.size, interval):
        total = zero
        for i in range(max(0, begin - window + 1), begin + 1):
            value = zero + x[i]
            total += value * value
        for last in range(begin, min(begin + interval, x.size)):
            if last > begin:
                new = zero + x[last]
                old = zero + x[last - window] if last >= window else zero
                total -= old * old  # first, as in DALI: what is left of a loud part depends on the order
                total += new * new
            power = np.float32(total) * scale
            out[last] = power
            largest = power if power > largest else largest
    return largest


@njit(nogil=True, cache=True)
def _region(powers: np.ndarray, threshold: Any, window: int) -> tuple[int, int]:
    """Return where the first window begins that is loud, and how many samples later the last one ends."""
    first, last = 0, powers.size - 1
    while first < powers.size and not powers[first] >= threshold:
        first += 1
    if first == powers.size:
        return 0, 0
    while not powers[last] >= threshold:
        last -= 1
    begin = max(0, first - window + 1)
    return begin, last + 1 - begin


def nonsilent_regions(
    begin: np.ndarray,
    length: np.ndarray,
    x: np.ndarray,
    *,
    cutoff_db: float,
    reference_power: float,
    window_length: int,
    reset_interval: int,
) -> None:
    """Find the part of each recording that is not silent.

    Args:
        begin: int32 [N], to fill: first sample of the first window that is loud enough; 0 where none is.
        length: int32 [N], to fill: samples from there to the end of the last such window; 0 where none is.
        x: [N, samples] of any integer type or FLOAT.
        cutoff_db: windows are loud enough from ``10 ** (cutoff_db / 10)`` of the reference.
        reference_power: 0 for the largest power of a window.
        window_length: samples of a window; the whole recording is one where it is shorter.
        reset_interval: samples after which the sliding sum of floats begins anew; -1 for never.
    """
    samples = x.shape[1]
    if samples == 0:
        begin[...] = length[...] = 0
        return
    if x.dtype == np.float32:
        zero, interval = np.float32(0), samples if reset_interval < 0 else reset_interval
    else:
        # Squares of 16 bits add up exactly in 64; wider ones do not fit.
        is_exact = x.dtype.itemsize <= 2
        zero, interval = (np.int64(0), samples) if is_exact else (np.float64(0), samples)
    window = min(window_length, samples)
    powers = np.empty(samples, np.float32)
    ratio = np.float32(np.power(10.0, cutoff_db / 10))
    for n, recording in enumerate(x):
        largest = _powers(powers, recording, window, interval, zero)
        threshold = np.float32((reference_power or largest) * ratio)
        begin[n], length[n] = _region(powers, threshold, window)
