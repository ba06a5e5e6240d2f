"""Sound at another sampling rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, option_error_text
from dalify.data.dtypes import DALIDataType
from dalify.kernels.audio_resample import resample_sound, resample_sound_torch
from dalify.registry import VARIES, Shaping, Spec, operator

_DTYPES = (
    DALIDataType.INT8,
    DALIDataType.UINT8,
    DALIDataType.INT16,
    DALIDataType.UINT16,
    DALIDataType.INT32,
    DALIDataType.UINT32,
    DALIDataType.FLOAT,
)


@operator
def audio_resample(
    x: Spec,
    /,
    *,
    dtype: DALIDataType | None = None,
    in_rate: Shaping[float] | None = None,
    out_length: Shaping[int] | None = None,
    out_rate: Shaping[float] | None = None,
    quality: float = 50.0,
    scale: Shaping[float] | None = None,
) -> Spec:
    """Change the sampling rate of sounds.

    Each result is a sum of the samples around it, weighted by a sinc in a Hann window. As in DALI the sinc is that of
    the input's rate: where the rate goes down, frequencies above half the new one are not taken out but mirrored.
    Filter them out before.

    Give one of three: `in_rate` and `out_rate`, `scale`, or `out_length`.

    Args:
        x: sound, ``[samples]`` or ``[samples, channels]``, of INT8, UINT8, INT16, UINT16, INT32, UINT32 or FLOAT.
            Around it is 0.
        dtype: one of these; the type of `x` by default. Where it differs, full ranges are mapped to each other:
            FLOAT is from -1 to 1, signed integers from minus to plus their largest number, and silence is the middle
            of unsigned ones.
        in_rate: sampling rate of the sound, in any unit.
        out_length: samples of the result.
        out_rate: sampling rate of the result, in the same unit.
        quality: 0 to 100; 0 takes 3 lobes of the sinc on each side, 50 takes 16, 100 takes 64.
        scale: ratio of the new rate to the old one.

    Returns:
        ``ceil(samples * out_rate / in_rate)`` samples, same channels and layout.

    Raises:
        ArgumentValueError: none or several of the three, or values out of range.
        DTypeError: another element type.
        ShapeError: more dimensions, or samples are wanted of an empty sound.

    Example:
        >>> sound = fn.audio_resample(sound, in_rate=rate, out_rate=16000.0)  # doctest: +SKIP
    """
    if (in_rate is None) != (out_rate is None):
        raise ArgumentValueError("in_rate and out_rate must be given together.")
    given = [
        name for name, value in (("rates", in_rate), ("scale", scale), ("length", out_length)) if value is not None
    ]
    if len(given) != 1:
        raise ArgumentValueError("give one of these: in_rate and out_rate, scale, or out_length.")
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"quality must be from 0 to 100; got {quality:g}.")
    for what, kind in (("dtype", dtype), ("the sound", x.dtype)):
        if kind is not None and kind not in _DTYPES:
            raise DTypeError(option_error_text(f"the type of {what}" if what != "dtype" else what, kind, _DTYPES))
    if x.ndim not in (None, 1, 2):
        raise ShapeError(f"sounds must be [samples] or [samples, channels]; got {x.ndim} dimensions.")
    for name, value in (("in_rate", in_rate), ("scale", scale), ("out_rate", out_rate), ("out_length", out_length)):
        if value is not None and value is not VARIES and (value < 0 or (value == 0 and name == "in_rate")):
            bound = "be positive" if name == "in_rate" else "not be negative"
            raise ArgumentValueError(f"{name} must {bound}; got {value:g}.")
    result = x.replace(dtype=x.dtype if dtype is None else dtype)
    if x.shape is None:
        return result
    samples = x.shape[0]
    if out_length is not None:
        length = out_length
    else:
        ratio = _single(scale) if scale is not None else _single(out_rate) / _single(in_rate)
        length = math.ceil(samples * ratio)
    if samples == 0 and length:
        raise ShapeError("the sound is empty; nothing can be resampled from it.")
    return result.replace(shape=(length, *x.shape[1:]))


def _single(value: Any) -> float:
    """Return an argument with the precision that it has in DALI."""
    return float(np.float32(value))


def _steps(x, out, in_rate, out_rate, scale):
    """Return how far results are apart in the input, float64 [N]."""
    if scale is not None:
        return 1 / np.asarray(scale, np.float64)
    if in_rate is not None:
        return np.asarray(in_rate, np.float64) / np.asarray(out_rate, np.float64)
    return np.full(len(x), x.shape[1] / out.shape[1])


def _forms(out, x):
    channels = x.shape[2] if x.ndim == 3 else 1
    return out.reshape(len(out), out.shape[1], channels), x.reshape(len(x), x.shape[1], channels)


@audio_resample.cpu
def _(out, x, *, in_rate, out_rate, scale, quality):
    resample_sound(*_forms(out, x), _steps(x, out, in_rate, out_rate, scale), quality)


@audio_resample.gpu
def _(out, x, *, in_rate, out_rate, scale, quality):
    resample_sound_torch(*_forms(out, x), _steps(x, out, in_rate, out_rate, scale), quality)
