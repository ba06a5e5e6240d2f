"""Mel filter banks: triangles of equal width on a scale of perceived pitch.

Each frequency is in at most two triangles, so a bank has two weights per frequency, and is applied in one pass over the
spectrum.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from dalify.base.array_at import array_at, new_array
from dalify.base.compiling import njit
from dalify.data.samples import Samples

MEL_FORMULAS = ("slaney", "htk")
_LANES = 16
_SINGLE = np.empty(0, np.float32)
# Slaney's scale (Auditory Toolbox, 1998): 200/3 Hz for each mel up to 1000 Hz, above it 27 mels for a factor of 6.4.
_SLANEY_STEP_HZ = 200 / 3
_SLANEY_KNEE_HZ = 1000.0
_SLANEY_LOG_STEP = math.log(6.4) / 27


class Bank(NamedTuple):
    """A filter bank for spectra of one length.

    Attributes:
        falling_filter: int32 [bins], the filter with the frequency in its falling half; the next filter has it in its
            rising half. From -1 to the number of filters - 1; -2 outside the range of frequencies.
        falling: float32 [bins], weight in that filter.
        rising: float32 [bins], weight in the next filter.
    """

    falling_filter: np.ndarray
    falling: np.ndarray
    rising: np.ndarray


def _to_mel(hertz: float, mel_formula: str) -> float:
    if mel_formula == "htk":
        return 2595 * math.log10(1 + hertz / 700)
    if hertz < _SLANEY_KNEE_HZ:
        return hertz / _SLANEY_STEP_HZ
    return _SLANEY_KNEE_HZ / _SLANEY_STEP_HZ + math.log(hertz / _SLANEY_KNEE_HZ) / _SLANEY_LOG_STEP


def _to_hertz(mel: np.ndarray, mel_formula: str) -> np.ndarray:
    if mel_formula == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    knee = _SLANEY_KNEE_HZ / _SLANEY_STEP_HZ
    return np.where(
        mel < knee, mel * _SLANEY_STEP_HZ, _SLANEY_KNEE_HZ * np.exp(_SLANEY_LOG_STEP * (np.maximum(mel, knee) - knee))
    )


@functools.lru_cache(maxsize=64)
def bank_of(
    bins: int, nfilter: int, sample_rate: float, freq_low: float, freq_high: float, mel_formula: str, normalize: bool
) -> Bank:
    """Compute a filter bank.

    Args:
        bins: number of frequencies of the spectrum, 0 to ``sample_rate / 2`` in equal steps.
        nfilter: number of filters.
        sample_rate: sampling rate of the audio, in Hz.
        freq_low: start of the first triangle, in Hz.
        freq_high: end of the last triangle, in Hz.
        mel_formula: one of `MEL_FORMULAS`.
        normalize: whether triangles have area 1 (over Hz) instead of height 1.
    """
    falling_filter = np.full(bins, -2, np.int32)
    falling, rising = np.zeros(bins), np.zeros(bins)
    if bins > 1:
        corners = _to_hertz(
            np.linspace(_to_mel(freq_low, mel_formula), _to_mel(freq_high, mel_formula), nfilter + 2), mel_formula
        )
        corners[0], corners[-1] = freq_low, freq_high
        hertz = np.arange(bins) * (sample_rate / (2 * (bins - 1)))
        inside = (hertz >= freq_low) & (hertz <= freq_high)
        interval = np.clip(np.searchsorted(corners, hertz, side="right") - 1, 0, nfilter)
        start, end = corners[interval], corners[interval + 1]
        fraction = (end - hertz) / (end - start)
        heights = 2 / (corners[2:] - corners[:-2]) if normalize else np.ones(nfilter)
        padded = np.concatenate([[0.0], heights, [0.0]])
        falling_filter[inside] = interval[inside] - 1
        falling = np.where(inside, fraction * padded[interval], 0.0)
        rising = np.where(inside, (1 - fraction) * padded[interval + 1], 0.0)
    return Bank(falling_filter, falling.astype(np.float32), rising.astype(np.float32))


def matrix_of(bank: Bank, nfilter: int) -> np.ndarray:
    """Return a bank as a matrix, float32 [filters, bins]."""
    matrix = np.zeros((nfilter, len(bank.falling)), np.float32)
    bins = np.arange(len(bank.falling))
    for shift, weights in ((0, bank.falling), (1, bank.rising)):
        filters = bank.falling_filter + shift
        used = (bank.falling_filter >= -1) & (filters >= 0) & (filters < nfilter)
        matrix[filters[used], bins[used]] = weights[used]
    return matrix


@njit(nogil=True, cache=True, no_cpython_wrapper=True, fastmath={"contract", "nsz"})
def add_bands(out_at, x_at, filters, bins, size, falling_filter, falling, rising):
    """Fill out [filters, size] with the sums of x [bins, size]; the last arguments are a `Bank`."""
    out = array_at(out_at, (filters * size,), _SINGLE)
    for i in range(filters * size):
        out[i] = 0
    for k in range(bins):
        lower = falling_filter[k]
        row = array_at(x_at + 4 * k * size, (size,), _SINGLE)
        if lower >= 0:
            weight, total = falling[k], array_at(out_at + 4 * lower * size, (size,), _SINGLE)
            for i in range(size):
                total[i] += weight * row[i]
        if -1 <= lower < filters - 1:
            weight, total = rising[k], array_at(out_at + 4 * (lower + 1) * size, (size,), _SINGLE)
            for i in range(size):
                total[i] += weight * row[i]


@njit(nogil=True, cache=True)
def _apply(out_at, x_at, x_shapes, axis, filters, falling_filter, falling, rising):
    """Sum the spectra of each sample; sixteen spectra at once, one per SIMD lane, if frequencies are the last axis."""
    bins = x_shapes[0, axis]
    memory = new_array(((bins + filters) * _LANES,), _SINGLE)
    for i in range(memory.size):
        memory[i] = 0
    for n in range(len(x_at)):
        before, after = np.int64(1), np.int64(1)
        for i in range(x_shapes.shape[1]):
            if i < axis:
                before *= x_shapes[n, i]
            elif i > axis:
                after *= x_shapes[n, i]
        if after != 1:
            for a in range(before):
                to, source = out_at[n] + 4 * a * filters * after, x_at[n] + 4 * a * bins * after
                add_bands(to, source, filters, bins, after, falling_filter, falling, rising)
            continue
        lanes_at = np.int64(memory.ctypes.data)
        sums_at = lanes_at + 4 * bins * _LANES
        lanes, sums = array_at(lanes_at, (bins, _LANES), _SINGLE), array_at(sums_at, (filters, _LANES), _SINGLE)
        x, out = array_at(x_at[n], (before, bins), _SINGLE), array_at(out_at[n], (before, filters), _SINGLE)
        for first in range(0, before, _LANES):
            count = before - first if before - first < _LANES else _LANES
            for lane in range(count):
                for k in range(bins):
                    lanes[k, lane] = x[first + lane, k]
            add_bands(sums_at, lanes_at, filters, bins, np.int64(_LANES), falling_filter, falling, rising)
            for lane in range(count):
                for m in range(filters):
                    out[first + lane, m] = sums[m, lane]


def apply_bank(out: Samples, x: Samples, axis: int, bank: Bank) -> None:
    """Apply a filter bank to spectra.

    Args:
        out: N samples float32 with the shapes of `x`, except for the number of filters along the axis; output.
        x: N samples float32.
        axis: the axis of frequencies, of the same extent in all samples.
        bank: filter bank for these bins and filters.
    """
    _apply(out.addresses, x.addresses, x.shapes, axis, out.shapes.item(0, axis), *bank)
