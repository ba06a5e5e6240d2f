"""Finds the non-silent part of a recording by its power in a sliding window.

The sliding sum is bit-exact with DALI's, because the rounding of the sum affects where the power crosses the threshold.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.data.samples import Samples

_SINGLE, _DOUBLE, _INT64 = np.empty(0, np.float32), np.empty(0, np.float64), np.empty(0, np.int64)


@njit(nogil=True, inline="always")
def _larger(power: Any, largest: Any) -> Any:
    """Return the larger number; the second number if the first is NaN."""
    return power if power > largest else largest


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _four_intervals(out_at: Any, squares: np.ndarray, window: int, first: int, size: int, interval: int) -> Any:
    """Process up to four intervals in parallel, so that additions do not wait for each other; see `_powers`.

    The first interval takes the place of missing intervals, and of the last one after its end.
    """
    out, scale = array_at(out_at, (size,), _SINGLE), np.float32(1) / np.float32(window)
    # Unsigned, because numba tests whether signed indices are negative.
    step, rest = np.uintp(interval), np.uintp(size - first)
    start = second = third = fourth = np.uintp(first)
    if rest > step:
        second, rest = start + step, rest - step
    if rest > step:
        third, rest = second + step, rest - step
    if rest > step:
        fourth, rest = third + step, rest - step
    a = b = c = d = squares[0]
    for i in range(np.uintp(1), np.uintp(window + 1)):
        a, b, c, d = a + squares[start + i], b + squares[second + i], c + squares[third + i], d + squares[fourth + i]
    largest_a = largest_b = largest_c = largest_d = np.float32(0)
    ahead = np.uintp(window)
    for i in range(rest if second == start else step):
        if i == rest:
            if fourth != start:
                fourth, d = start, a
            elif third != start:
                third, c = start, a
            else:
                second, b = start, a
        if i:  # subtract first, as in DALI: the rounding error after a loud part depends on the order
            a, b = a - squares[start + i], b - squares[second + i]
            c, d = c - squares[third + i], d - squares[fourth + i]
            a, b = a + squares[start + i + ahead], b + squares[second + i + ahead]
            c, d = c + squares[third + i + ahead], d + squares[fourth + i + ahead]
        power_a, power_b = np.float32(a) * scale, np.float32(b) * scale
        power_c, power_d = np.float32(c) * scale, np.float32(d) * scale
        out[start + i], out[second + i], out[third + i], out[fourth + i] = power_a, power_b, power_c, power_d
        largest_a, largest_b = _larger(power_a, largest_a), _larger(power_b, largest_b)
        largest_c, largest_d = _larger(power_c, largest_c), _larger(power_d, largest_d)
    return _larger(_larger(largest_a, largest_b), _larger(largest_c, largest_d))


@njit(nogil=True, inline="always")
def _powers(out_at: Any, x: np.ndarray, window: int, interval: int, squares: np.ndarray) -> Any:
    """Fill out [n] with the mean squares of the windows that end with each sample, and return the maximum.

    The signal is preceded by zeros. Squares are stored in ``squares`` and added in its dtype; at every multiple of
    ``interval`` the sum is recomputed, which limits the error.
    """
    for i in range(window):
        squares[i] = 0
    after = squares[window:]
    for i in range(x.size):
        after[i] = x[i]
        after[i] *= after[i]
    largest = np.float32(0)
    for first in range(0, x.size, 4 * interval):
        largest = _larger(_four_intervals(out_at, squares, window, first, x.size, interval), largest)
    return largest


@njit(nogil=True, inline="always")
def _region(powers: np.ndarray, threshold: Any, window: int) -> tuple[int, int]:
    """Return the start of the first loud window, and the number of samples to the end of the last one."""
    first, last = 0, powers.size - 1
    while first < powers.size and not powers[first] >= threshold:
        first += 1
    if first == powers.size:
        return 0, 0
    while not powers[last] >= threshold:
        last -= 1
    begin = first - window + 1 if first >= window else 0
    return begin, last + 1 - begin


@njit(nogil=True, cache=True)
def _regions(begins, lengths, x_at, x_shapes, x_like, ratio, reference, window_length, reset_interval, like):
    longest = np.int64(0)
    for n in range(len(x_at)):
        longest = max(longest, x_shapes[n, 0])
    squares, memory = new_array((longest + min(longest, window_length),), like), new_array((longest,), _SINGLE)
    for n in range(len(x_at)):
        size = x_shapes[n, 0]
        begins[n] = lengths[n] = 0
        if size == 0:
            continue
        x = array_at(x_at[n], (size,), x_like)
        window = window_length if window_length < size else size
        interval = size if reset_interval < 0 else reset_interval
        largest = _powers(np.int64(memory.ctypes.data), x, window, interval, squares)
        threshold = (reference if reference != 0 else largest) * ratio
        begins[n], lengths[n] = _region(memory[:size], threshold, window)


@lru_cache(64)  # a cache access is faster than NumPy
def _power_ratio(decibels: float) -> np.float32:
    return np.float32(np.power(10.0, decibels / 10))


def nonsilent_regions(
    begins: np.ndarray,
    lengths: np.ndarray,
    x: Samples,
    *,
    cutoff_db: float,
    reference_power: float,
    window_length: int,
    reset_interval: int,
) -> None:
    """Find the non-silent part of each recording.

    Args:
        begins: output, int32 [N]: first sample of the first loud window, 0 if there is none.
        lengths: output, int32 [N]: number of samples from there to the end of the last loud window, 0 if there is none.
        x: N recordings, [samples] of any integer type or FLOAT.
        cutoff_db: windows are loud if their power is at least ``10 ** (cutoff_db / 10)`` times the reference.
        reference_power: mean square that is the reference; 0 for the maximum of the windows of each recording.
        window_length: samples of a window; shorter recordings are one window.
        reset_interval: samples after which the sliding sum of floats is recomputed; -1 for never.
    """
    like = _SINGLE
    if x.dtype != np.float32:
        # Sums of squares of 16-bit integers are exact in 64 bits, so any interval gives the same result.
        like, reset_interval = (_INT64, 4 * window_length) if x.dtype.itemsize <= 2 else (_DOUBLE, -1)
    ratio = _power_ratio(cutoff_db)
    options = np.float32(reference_power), window_length, reset_interval
    _regions(begins, lengths, *x.compiled, ratio, *options, like)
