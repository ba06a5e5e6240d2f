"""Mel spectrogram: a spectrum summed in bands that are equally spaced on the mel scale."""

from __future__ import annotations

import numpy as np

from dalify.data import DeviceSamples, Samples
from dalify.kernels.audio import mel
from dalify.kernels.audio.axis_torch import transform_axis_torch
from dalify.parameter_groups.spectra import MelFilters, frequency_axis
from dalify.registry import Spec, operator


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
    return filters.bands(x)


@mel_filter_bank.cpu_samples
def _(out: Samples, x: Samples, *, filters: MelFilters, spec: Spec) -> None:
    axis = frequency_axis(spec)
    counts = x.extents(axis).tolist()
    if counts.count(counts[0]) == len(counts):
        mel.apply_bank(out, x, axis, filters.bank(counts[0]))
        return
    for bins in sorted(set(counts)):
        at = np.flatnonzero(x.extents(axis) == bins)
        mel.apply_bank(out.take(at), x.take(at), axis, filters.bank(bins))


@mel_filter_bank.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, filters: MelFilters, spec: Spec) -> None:
    def matrix(bins: int) -> np.ndarray:
        return mel.matrix_of(filters.bank(bins), filters.nfilter)

    transform_axis_torch(out, x, frequency_axis(spec), matrix)
