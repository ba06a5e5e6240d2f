"""Spectrogram of audio: the spectra of overlapping windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data import Batch, DeviceSamples, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.audio import spectrum
from dalify.kernels.audio.fourier import transform_of
from dalify.parameter_groups.spectra import MelFilters, Windows
from dalify.registry import Spec, argument_names, operator


@operator(alphabetical=True)
def spectrogram(x: Spec, /, *, windows: Windows) -> Spec:
    """Compute the spectra of overlapping windows of audio: the short-time Fourier transform.

    Bin k of a window that starts at sample b is ``|sum over n of w[n] * x[b + n] * exp(-2 pi i k n / nfft)|**power``.
    Its frequency is ``k * sample_rate / nfft``.

    Args:
        x: mono audio, float32 ``[samples]``; further axes must have extent 1.

    Returns:
        float32, ``nfft // 2 + 1`` frequencies and ``samples // window_step + 1`` windows (without `center_windows`
        ``(samples - window_length) // window_step + 1``), in the order of `layout`.

    Raises:
        ArgumentValueError: an argument is out of range.
        DTypeError: the audio is not float32.
        ShapeError: several channels, or too few samples.

    Example:
        >>> spectrum = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)  # doctest: +SKIP
    """
    return windows.spectra(x)


@spectrogram.geometry
def _(x: Batch, *, windows: Windows) -> dict[str, Any]:
    shapes = windows.shapes(x.shape_array(), windows.length // 2 + 1)
    return {} if shapes is None else {"out_shapes": shapes}


@spectrogram.cpu_samples
def _(out: Samples, x: Samples, *, windows: Windows) -> None:
    spectrum.spectrogram(out, x, **windows.options)


@spectrogram.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, windows: Windows) -> None:
    _spectra(out, x.flattened(), windows=windows)


@on_padded
def _spectra(out: torch.Tensor, x: torch.Tensor, *, windows: Windows, extents: np.ndarray) -> None:
    spectrum.spectrogram_torch(out, x, **windows.options, lengths=extents[:, 0])


@spectrogram.before("mel_filter_bank", "merges", into="_mel_spectrogram", takes=argument_names(MelFilters))
def _(windows: Mapping[str, Any], filters: Mapping[str, Any], source: Spec, device: str) -> bool:
    return device == "cpu" and transform_of(Windows(**windows).length) is not None
