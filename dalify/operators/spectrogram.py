"""Spectrogram of audio: the spectra of overlapping windows."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, option_error_text
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data.batch import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.audio import spectrum
from dalify.registry import Parameters, Spec, operator

_LAYOUTS = ("ft", "tf")


@dataclass(slots=True)
class Windows(Parameters):
    """The windows of a spectrogram, and the form of the result.

    Attributes:
        center_windows: window t is centered at sample ``t * window_step``, and the first and last extend outside
            the audio; False: it starts there, and all windows are inside (except a single window that is shorter by
            less than a step, which is zero-padded).
        layout: layout of the result, "ft" (frequencies first) or "tf" (time first).
        nfft: length of the transform in samples, at least ``window_length``, which is the default. Windows are
            zero-padded.
        power: 2 for squared magnitudes, 1 for magnitudes.
        reflect_padding: samples outside are mirrored at the first and last sample; False: they are 0.
        window_fn: ``window_length`` weights for the samples of a window; by default a Hann window,
            ``(1 - cos(2 pi (n + 1/2) / window_length)) / 2``.
        window_length: number of samples of a window.
        window_step: number of samples from one window to the next.
    """

    center_windows: bool = True
    layout: str = "ft"
    nfft: int | None = None
    power: int = 2
    reflect_padding: bool = True
    window_fn: list[float] | None = None
    window_length: int = 512
    window_step: int = 256


@operator(alphabetical=True)
def spectrogram(x: Spec, /, *, windows: Windows) -> Spec:
    """Compute the spectra of overlapping windows of audio: the short-time Fourier transform.

    Bin k of a window that starts at sample b is ``|sum over n of w[n] * x[b + n] * exp(-2 pi i k n / nfft)|**power``,
    the frequency ``k * sample_rate / nfft``.

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
    if windows.layout not in _LAYOUTS:
        raise ArgumentValueError(option_error_text("layout", windows.layout, _LAYOUTS))
    if windows.power not in (1, 2):
        raise ArgumentValueError(f"power must be 1 (magnitude) or 2 (its square); got {windows.power}.")
    for name, value in (("window_length", windows.window_length), ("window_step", windows.window_step)):
        if value < 1:
            raise ArgumentValueError(f"{name} must be at least 1; got {value}.")
    length = windows.window_length if windows.nfft is None else windows.nfft
    if length < windows.window_length:
        raise ArgumentValueError(f"nfft must be at least window_length, {windows.window_length}; got {windows.nfft}.")
    if windows.window_fn and len(windows.window_fn) != windows.window_length:
        raise ArgumentValueError(
            f"window_fn must have window_length={counted(windows.window_length, 'entry')}; got "
            f"{len(windows.window_fn)}.",
        )
    if x.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"audio must be float32; got {x.dtype!s}.", hint="fn.cast(audio, dtype=types.FLOAT)")
    if x.ndim == 0:
        raise ShapeError("audio must have an axis of samples; got scalars.")
    result = Spec(DALIDataType.FLOAT, 2, windows.layout, device=x.device)
    if x.shape is None:
        return result
    if sum(1 for extent in x.shape if extent != 1) > 1:
        raise ShapeError(
            f"audio must have one channel; got the shape {x.shape}.",
            hint="Mix the channels with fn.decoders.audio(…, downmix=True) or fn.reductions.mean.",
        )
    frames = spectrum.frame_count(
        math.prod(x.shape), windows.window_length, windows.window_step, windows.center_windows
    )
    extents = {"f": length // 2 + 1, "t": frames}
    return result.replace(shape=(extents[windows.layout[0]], extents[windows.layout[1]]))


@functools.lru_cache(maxsize=64)
def _window(window_fn: tuple[float, ...], window_length: int) -> np.ndarray:
    if window_fn:
        return np.array(window_fn, np.float32)
    # Sampled at half-integers, as in DALI: symmetric, and no weight is 0.
    return (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(window_length) + 0.5) / window_length)).astype(np.float32)


@spectrogram.geometry
def _(x: Batch, *, windows: Windows) -> dict[str, Any]:
    shapes = x.shape_array()
    window = 0 if windows.center_windows else windows.window_length
    length = windows.window_length if windows.nfft is None else windows.nfft
    out_shapes = np.empty((len(shapes), 2), np.int64)
    options = window, windows.window_step, length // 2 + 1, windows.layout.index("t")
    # Otherwise the rule decides, and raises errors.
    return {"out_shapes": out_shapes} if spectrum.fill_shapes(out_shapes, shapes, *options) else {}


@spectrogram.cpu_samples
def _(out: Samples, x: Samples, *, windows: Windows) -> None:
    spectrum.spectrogram(
        out,
        x,
        _window(tuple(windows.window_fn or ()), windows.window_length),
        window_step=windows.window_step,
        length=windows.window_length if windows.nfft is None else windows.nfft,
        center_windows=windows.center_windows,
        reflect_padding=windows.reflect_padding,
        power=windows.power,
        has_frames_first=windows.layout == "tf",
    )


@spectrogram.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, windows: Windows) -> None:
    _spectra(out, x.flattened(), windows=windows)


@on_padded
def _spectra(out: torch.Tensor, x: torch.Tensor, *, windows: Windows, extents: np.ndarray) -> None:
    spectrum.spectrogram_torch(
        out,
        x,
        _window(tuple(windows.window_fn or ()), windows.window_length),
        window_step=windows.window_step,
        length=windows.window_length if windows.nfft is None else windows.nfft,
        center_windows=windows.center_windows,
        reflect_padding=windows.reflect_padding,
        power=windows.power,
        has_frames_first=windows.layout == "tf",
        lengths=extents[:, 0],
    )
