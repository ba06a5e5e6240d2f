"""The windows of a spectrogram and the filters of a mel filter bank."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError, check_option
from dalify.base.wording import counted
from dalify.data import DALIDataType
from dalify.kernels.audio import mel, spectrum
from dalify.registry import Parameters, Spec

_LAYOUTS = ("ft", "tf")


@dataclass
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

    @functools.cached_property
    def length(self) -> int:
        """Length of the transform in samples."""
        return self.window_length if self.nfft is None else self.nfft

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """The arguments of kernels, by name."""
        return {
            "window": _weights(self.window_fn, self.window_length),
            "window_step": self.window_step,
            "length": self.length,
            "center_windows": self.center_windows,
            "reflect_padding": self.reflect_padding,
            "power": self.power,
            "has_frames_first": self.layout == "tf",
        }

    def shapes(self, signals: np.ndarray, rows: int) -> np.ndarray | None:
        """Return the shapes of the results for a chunk, int64 ``[N, 2]``; None if the rule has to decide.

        Args:
            signals: shapes of the audio, int64 ``[N, ndim]``.
            rows: number of frequencies or bands.
        """
        found = np.empty((len(signals), 2), np.int64)
        window = 0 if self.center_windows else self.window_length
        is_known = spectrum.fill_shapes(found, signals, window, self.window_step, rows, self.layout.index("t"))
        return found if is_known else None

    def spectra(self, x: Spec) -> Spec:
        """Return the spec of the spectra of audio.

        Raises:
            ArgumentValueError: an argument is out of range.
            DTypeError: the audio is not float32.
            ShapeError: several channels, or too few samples.
        """
        check_option("layout", self.layout, _LAYOUTS)
        if self.power not in (1, 2):
            raise ArgumentValueError(f"power must be 1 (magnitude) or 2 (its square); got {self.power}.")
        for name, value in (("window_length", self.window_length), ("window_step", self.window_step)):
            if value < 1:
                raise ArgumentValueError(f"{name} must be at least 1; got {value}.")
        length = self.length
        if length < self.window_length:
            raise ArgumentValueError(f"nfft must be at least window_length, {self.window_length}; got {self.nfft}.")
        if self.window_fn and len(self.window_fn) != self.window_length:
            raise ArgumentValueError(
                f"window_fn must have window_length={counted(self.window_length, 'entry')}; got {len(self.window_fn)}.",
            )
        if x.dtype not in (None, DALIDataType.FLOAT):
            raise DTypeError(
                f"audio must be float32; got {x.dtype_text}.", hint="Convert it: fn.cast(audio, dtype=types.FLOAT)."
            )
        if x.ndim == 0:
            raise ShapeError("audio must have an axis of samples; got scalars.")
        result = Spec(DALIDataType.FLOAT, 2, self.layout, device=x.device)
        if x.shape is None:
            return result
        if sum(1 for extent in x.shape if extent != 1) > 1:
            raise ShapeError(
                f"audio must have one channel; got the shape {x.shape}.",
                hint="Mix the channels with fn.decoders.audio(…, downmix=True) or fn.reductions.mean.",
            )
        frames = spectrum.frame_count(math.prod(x.shape), self.window_length, self.window_step, self.center_windows)
        extents = {"f": length // 2 + 1, "t": frames}
        return result.replace(shape=(extents[self.layout[0]], extents[self.layout[1]]))


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

    @property
    def _high(self) -> float:
        return self.sample_rate / 2 if self.freq_high <= 0 else self.freq_high

    def bank(self, bins: int) -> mel.Bank:
        """Return the filter bank for spectra of a number of frequencies."""
        options = self.sample_rate, self.freq_low, self._high, self.mel_formula, self.normalize
        return mel.bank_of(bins, self.nfilter, *options)

    def bands(self, x: Spec) -> Spec:
        """Return the spec of spectra that are summed in bands.

        Raises:
            ArgumentValueError: an invalid frequency range, or an unknown formula.
            DTypeError: the spectra are not float32.
            LayoutError: there is no frequency axis.
        """
        check_option("mel_formula", self.mel_formula, mel.MEL_FORMULAS)
        if self.nfilter < 1:
            raise ArgumentValueError(f"nfilter must be at least 1; got {self.nfilter}.", argument="nfilter")
        if not 0 < self.sample_rate < math.inf:
            raise ArgumentValueError(f"sample_rate must be positive; got {self.sample_rate:g}.", argument="sample_rate")
        if not 0 <= self.freq_low < math.inf:
            raise ArgumentValueError(f"freq_low must not be negative; got {self.freq_low:g}.", argument="freq_low")
        high = self._high
        if not self.freq_low < high <= self.sample_rate:
            raise ArgumentValueError(
                f"freq_high must be between freq_low, {self.freq_low:g} Hz, and sample_rate, "
                f"{self.sample_rate:g} Hz; got {high:g} Hz{' (half the sample rate)' if self.freq_high <= 0 else ''}.",
                argument="freq_high" if self.freq_high > 0 else "freq_low",
            )
        if x.dtype not in (None, DALIDataType.FLOAT):
            raise DTypeError(
                f"spectra must be float32; got {x.dtype_text}.",
                hint="Convert it: fn.cast(spectrum, dtype=types.FLOAT).",
            )
        axis = frequency_axis(x)
        if x.shape is None:
            return x
        return x.replace(shape=(*x.shape[:axis], self.nfilter, *x.shape[axis + 1 :]))


def frequency_axis(x: Spec) -> int:
    """Return the axis of the frequencies of spectra.

    Raises:
        LayoutError: there is none.
    """
    if x.layout:
        if "f" not in x.layout:
            raise LayoutError(f"the data must have a frequency axis, f; the layout is {x.layout!r}.")
        return x.layout.index("f")
    if x.ndim == 0:
        raise LayoutError("spectra must have a frequency axis; got scalars.")
    return max(0, (x.ndim or 1) - 2)


def _weights(window_fn: list[float] | None, window_length: int) -> np.ndarray:
    if window_fn:
        return np.array(window_fn, np.float32)
    # Sampled at half-integers, as in DALI: symmetric, and no weight is 0.
    return (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(window_length) + 0.5) / window_length)).astype(np.float32)
