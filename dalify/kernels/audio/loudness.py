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

__all__ = ["nonsilent_regions"]

_SINGLE = np.empty(0, np.float32)


@njit(nogil=True, inline="always")
def _first_sum(x: np.ndarray, last: int, window: int, zero: Any) -> Any:
    """Return the sum of squares of the window that ends with a sample."""
    total, first = zero, last - window + 1
    for i in range(first if first > 0 else 0, last + 1):
        value = zero + x[i]
        total += value * value
    return total


@njit(nogil=True, inline="always")
def _next_sum(x: np.ndarray, last: int, window: int, total: Any, zero: Any) -> Any:
    """Return the sum of squares of the window that ends with a sample, from that of the window before."""
    # Unsigned, because others are checked: negative ones would count from the end.
    new, old = zero + x[np.uintp(last)], zero + x[np.uintp(last - window)] if last >= window else zero
    total -= old * old  # first, as in DALI: the rounding error after a loud part depends on the order
    return total + new * new


@njit(nogil=True, inline="always")
def _larger(power: Any, largest: Any) -> Any:
    """Return the larger one; the second one if the first one is NaN."""
    return power if power > largest else largest


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _last_interval(out_at: Any, x: np.ndarray, window: int, begin: int, zero: Any) -> Any:
    """Fill out[begin:] and return the largest power; see `_powers`."""
    out = array_at(out_at, (x.size,), _SINGLE)
    scale, largest = np.float32(1) / np.float32(window), np.float32(0)
    total = _first_sum(x, begin, window, zero)
    for last in range(begin, x.size):
        if last > begin:
            total = _next_sum(x, last, window, total, zero)
        out[last] = np.float32(total) * scale
        largest = _larger(out[last], largest)
    return largest


@njit(nogil=True, cache=True, no_cpython_wrapper=True)
def _four_intervals(out_at: Any, x: np.ndarray, window: int, first: int, interval: int, zero: Any) -> Any:
    """Process two to four intervals in parallel, so that additions do not wait for each other.

    The first one is processed several times if there are fewer than four, and when the last one has ended.
    """
    out = array_at(out_at, (x.size,), _SINGLE)
    scale, second, third, fourth = np.float32(1) / np.float32(window), first + interval, first, first
    rest = x.size - second
    if rest > interval:
        third, rest = second + interval, rest - interval
        if rest > interval:
            fourth, rest = third + interval, rest - interval
    a, b = _first_sum(x, first, window, zero), _first_sum(x, second, window, zero)
    c, d = _first_sum(x, third, window, zero), _first_sum(x, fourth, window, zero)
    largest_a, largest_b, largest_c, largest_d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for i in range(interval):
        if i == rest:
            if fourth != first:
                fourth, d = first, a
            elif third != first:
                third, c = first, a
            else:
                second, b = first, a
        if i:
            a, b = _next_sum(x, first + i, window, a, zero), _next_sum(x, second + i, window, b, zero)
            c, d = _next_sum(x, third + i, window, c, zero), _next_sum(x, fourth + i, window, d, zero)
        power_a, power_b = np.float32(a) * scale, np.float32(b) * scale
        power_c, power_d = np.float32(c) * scale, np.float32(d) * scale
        out[np.uintp(first + i)], out[np.uintp(second + i)] = power_a, power_b
        out[np.uintp(third + i)], out[np.uintp(fourth + i)] = power_c, power_d
        largest_a, largest_b = _larger(power_a, largest_a), _larger(power_b, largest_b)
        largest_c, largest_d = _larger(power_c, largest_c), _larger(power_d, largest_d)
    return _larger(_larger(largest_a, largest_b), _larger(largest_c, largest_d))


@njit(nogil=True, inline="always")
def _powers(out_at: Any, x: np.ndarray, window: int, interval: int, zero: Any) -> Any:
    """Fill out [n] with the mean squares of the windows that end with each sample, and return the maximum.

    Windows are padded with 0 at the start. Squares are accumulated in the dtype of ``zero``; at every multiple of
    ``interval`` the sum is recomputed, so that errors stay small.
    """
    largest, begin = np.float32(0), int(np.int64(0))  # one type: a literal would be another
    while begin < x.size:
        if begin + interval < x.size:
            found = _four_intervals(out_at, x, window, begin, interval, zero)
        else:
            found = _last_interval(out_at, x, window, begin, zero)
        begin += 4 * interval
        largest = _larger(found, largest)
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
def _regions(begins, lengths, x_at, x_shapes, x_like, ratio, reference, window_length, reset_interval, zero):
    for n in range(len(x_at)):
        size = x_shapes[n, 0]
        begins[n] = lengths[n] = 0
        if size == 0:
            continue
        x = array_at(x_at[n], (size,), x_like)
        window = window_length if window_length < size else size
        powers = new_array((size,), _SINGLE)
        interval = size if reset_interval < 0 else reset_interval
        largest = _powers(np.int64(powers.ctypes.data), x, window, interval, zero)
        threshold = (reference if reference != 0 else largest) * ratio
        begins[n], lengths[n] = _region(powers, threshold, window)


@lru_cache(64)  # for each chunk, calling a function of NumPy takes longer
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
        cutoff_db: windows are loud from ``10 ** (cutoff_db / 10)`` of the reference.
        reference_power: 0 for the maximum power of a window.
        window_length: samples of a window; shorter recordings are one window.
        reset_interval: samples after which the sliding sum of floats is recomputed; -1 for never.
    """
    if x.dtype == np.float32:
        zero = np.float32(0)
    else:
        # Sums of 16-bit squares are exact in 64 bits; wider ones are not.
        zero, reset_interval = np.int64(0) if x.dtype.itemsize <= 2 else np.float64(0), -1
    ratio = _power_ratio(cutoff_db)
    options = np.float32(reference_power), window_length, reset_interval
    _regions(begins, lengths, *x.compiled, ratio, *options, zero)
