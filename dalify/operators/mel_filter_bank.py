"""Mel spectrogram: a spectrum summed in bands that are equally spaced on the mel scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, option_error_text
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.audio import mel
from dalify.kernels.audio.axis_torch import transform_axis_torch
from dalify.registry import Parameters, Spec, operator


@dataclass(slots=True)
class MelFilters(Parameters):
    """The filters of a mel filter bank.

    Attributes:
        freq_high: upper limit of the last filter in Hz, at most `sample_rate`; 0: half the sample rate.
        freq_low: lower limit of the first filter in Hz.
        mel_formula: "slaney", linear up to 1000 Hz (``3 f / 200``) and logarithmic above (27 mels for a factor of
            6.4), or "htk", ``2595 log10(1 + f / 700)``.
        nfilter: number of filters.
        normalize: filters have area 1 in Hz (height ``2 / width``); False: height 1.
        sample_rate: sampling rate of the audio in Hz.
    """

    freq_high: float = 0.0
    freq_low: float = 0.0
    mel_formula: str = "slaney"
    nfilter: int = 128
    normalize: bool = True
    sample_rate: float = 44100.0


@operator(alphabetical=True)
def mel_filter_bank(x: Spec, /, *, filters: MelFilters) -> Spec:
    """Apply a bank of triangular filters to a spectrum, equally spaced on the mel scale.

    Filter m rises from corner m to corner m + 1 and falls to corner m + 2. Corners are equally spaced in mel between
    `freq_low` and `freq_high`; the triangles are linear in Hz.

    Args:
        x: float32 spectra; frequencies, from 0 to half the sample rate, are along the axis "f" of the layout, or
            without a layout along the second to last axis (the only axis of one-dimensional data).

    Returns:
        Same layout, `nfilter` along the frequency axis.

    Raises:
        ArgumentValueError: an invalid frequency range, or an unknown formula.
        DTypeError: the spectra are not float32.
        LayoutError: there is no frequency axis.

    Example:
        >>> mel = fn.mel_filter_bank(spectrum, nfilter=80, sample_rate=16000.0)  # doctest: +SKIP
    """
    if filters.mel_formula not in mel.MEL_FORMULAS:
        raise ArgumentValueError(option_error_text("mel_formula", filters.mel_formula, mel.MEL_FORMULAS))
    if filters.nfilter < 1:
        raise ArgumentValueError(f"nfilter must be at least 1; got {filters.nfilter}.")
    if not 0 < filters.sample_rate < math.inf:
        raise ArgumentValueError(f"sample_rate must be positive; got {filters.sample_rate:g}.")
    if not 0 <= filters.freq_low < math.inf:
        raise ArgumentValueError(f"freq_low must not be negative; got {filters.freq_low:g}.")
    high = _high(filters.freq_high, filters.sample_rate)
    if not filters.freq_low < high <= filters.sample_rate:
        raise ArgumentValueError(
            f"freq_high must be between freq_low, {filters.freq_low:g} Hz, and sample_rate, "
            f"{filters.sample_rate:g} Hz; got {high:g} Hz{' (half the sample rate)' if filters.freq_high <= 0 else ''}."
        )
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"spectra must be float32; got {x.dtype!s}.", hint="fn.cast(spectrum, dtype=types.FLOAT)")
    axis = _axis(x)
    if x.shape is None:
        return x
    return x.replace(shape=(*x.shape[:axis], filters.nfilter, *x.shape[axis + 1 :]))


def _high(freq_high: float, sample_rate: float) -> float:
    return sample_rate / 2 if freq_high <= 0 else freq_high


def _axis(x: Spec) -> int:
    if x.layout:
        if "f" not in x.layout:
            raise LayoutError(f"the data must have a frequency axis, f; the layout is {x.layout!r}.")
        return x.layout.index("f")
    if x.ndim == 0:
        raise LayoutError("spectra must have a frequency axis; got scalars.")
    return max(0, (x.ndim or 1) - 2)


@mel_filter_bank.cpu_samples
def _(out: Samples, x: Samples, *, filters: MelFilters, spec: Spec) -> None:
    axis = _axis(spec)
    high = _high(filters.freq_high, filters.sample_rate)
    options = filters.sample_rate, filters.freq_low, high, filters.mel_formula, filters.normalize
    counts = x.extents(axis).tolist()
    if counts.count(counts[0]) == len(counts):
        mel.apply_bank(out, x, axis, mel.bank_of(counts[0], filters.nfilter, *options))
        return
    for bins in sorted(set(counts)):
        at = np.flatnonzero(x.extents(axis) == bins)
        mel.apply_bank(out.take(at), x.take(at), axis, mel.bank_of(bins, filters.nfilter, *options))


@mel_filter_bank.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, filters: MelFilters, spec: Spec) -> None:
    high = _high(filters.freq_high, filters.sample_rate)
    options = (filters.sample_rate, filters.freq_low, high, filters.mel_formula, filters.normalize)

    def matrix(bins: int) -> np.ndarray:
        return mel.matrix_of(mel.bank_of(bins, filters.nfilter, *options), filters.nfilter)

    transform_axis_torch(out, x, _axis(spec), matrix)
