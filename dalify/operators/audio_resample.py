"""Change the sampling rate of audio."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, option_error_text
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.audio.audio_resample import resample_samples, resample_samples_torch
from dalify.registry import VARIES, AnySamples, Shaping, Spec, operator

_DTYPES = (
    DALIDataType.INT8,
    DALIDataType.UINT8,
    DALIDataType.INT16,
    DALIDataType.UINT16,
    DALIDataType.INT32,
    DALIDataType.UINT32,
    DALIDataType.FLOAT,
)
_MAX_LENGTH = 1 << 53


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
    """Change the sampling rate of audio.

    Each output sample is a sum of the input samples around its position, weighted by a Hann-windowed sinc. As in DALI,
    the cutoff frequency is half the input rate: when downsampling, frequencies above half the new rate are aliased.
    Apply a low-pass filter first.

    Specify exactly one of the following: `in_rate` and `out_rate`, `scale`, or `out_length`.

    Args:
        x: audio, ``[samples]`` or ``[samples, channels]``, of INT8, UINT8, INT16, UINT16, INT32, UINT32 or FLOAT.
            Samples before the start and after the end count as 0.
        dtype: element type of the result, one of the types above; by default the type of `x`. If the types differ, the
            full range of one is mapped to the full range of the other: FLOAT ranges from -1 to 1, signed integers from
            minus to plus their maximum, and silence is the middle of the range of unsigned integers.
        in_rate: sampling rate of the input, in any unit.
        out_length: number of samples of the result.
        out_rate: sampling rate of the result, in the same unit.
        quality: 0 to 100; 0 uses 3 lobes of the sinc on each side, 50 uses 16, 100 uses 64.
        scale: ratio of the new rate to the old rate.

    Returns:
        ``ceil(samples * out_rate / in_rate)`` samples, same channels and layout.

    Raises:
        ArgumentValueError: the new rate is specified in no way or in several ways, or a value is out of range.
        DTypeError: the element type is not supported.
        ShapeError: more than two dimensions, or empty audio with a non-empty result.

    Example:
        >>> audio = fn.audio_resample(audio, in_rate=rate, out_rate=16000.0)  # doctest: +SKIP
    """
    if (in_rate is None) != (out_rate is None):
        raise ArgumentValueError("in_rate and out_rate must be specified together.")
    given = [
        name for name, value in (("rates", in_rate), ("scale", scale), ("length", out_length)) if value is not None
    ]
    if len(given) != 1:
        raise ArgumentValueError("specify exactly one of these: in_rate and out_rate, scale, or out_length.")
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"quality must be between 0 and 100; got {quality:g}.")
    for what, kind in (("dtype", dtype), ("the input", x.dtype)):
        if kind is not None and kind not in _DTYPES:
            raise DTypeError(option_error_text(f"the type of {what}" if what != "dtype" else what, kind, _DTYPES))
    if x.ndim not in (None, 1, 2):
        raise ShapeError(f"audio must be [samples] or [samples, channels]; got {counted(x.ndim, 'dimension')}.")
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
        ratio = _as_float32(scale) if scale is not None else _as_float32(out_rate) / _as_float32(in_rate)
        length = math.ceil(samples * ratio)
    if samples == 0 and length:
        raise ShapeError("the audio is empty and cannot be resampled.")
    return result.replace(shape=(length, *x.shape[1:]))


def _as_float32(value: Any) -> float:
    """Round an argument to float32, the precision that it has in DALI."""
    return float(np.float32(value))


def _steps(
    lengths: np.ndarray,
    results: np.ndarray,
    in_rate: np.ndarray | None,
    out_rate: np.ndarray | None,
    scale: np.ndarray | None,
) -> np.ndarray:
    """Return the distance between output samples, in input samples, float64 [N], from the lengths int64 [N]."""
    if scale is not None:
        return 1 / np.asarray(scale, np.float64)
    if in_rate is not None:
        return np.asarray(in_rate, np.float64) / np.asarray(out_rate, np.float64)
    return lengths / results


@audio_resample.geometry
def _(
    x: Batch,
    *,
    in_rate: np.ndarray | None,
    out_length: np.ndarray | None,
    out_rate: np.ndarray | None,
    scale: np.ndarray | None,
) -> dict[str, Any]:
    shapes = x.shape_array().copy()
    samples = shapes[:, 0]
    if out_length is not None:
        lengths, is_wrong = out_length.astype(np.float64), out_length < 0
    elif scale is not None:
        lengths, is_wrong = np.ceil(samples * scale.astype(np.float64)), scale < 0
    else:
        assert in_rate is not None, "dalify bug: neither a rate nor a scale"
        assert out_rate is not None, "dalify bug: neither a rate nor a scale"
        lengths = np.ceil(samples * (out_rate.astype(np.float64) / in_rate))
        is_wrong = (in_rate <= 0) | (out_rate < 0)
    if (is_wrong | ((samples == 0) & (lengths != 0)) | ~(lengths < _MAX_LENGTH)).any():
        return {}  # the rule names the sample
    shapes[:, 0] = lengths
    return {"out_shapes": shapes}


@audio_resample.cpu_samples
@audio_resample.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    in_rate: np.ndarray | None,
    out_rate: np.ndarray | None,
    scale: np.ndarray | None,
    quality: float,
) -> None:
    steps = _steps(x.shapes[:, 0], out.shapes[:, 0], in_rate, out_rate, scale)
    target, source = (samples.with_axis(1) if samples.ndim == 1 else samples for samples in (out, x))
    compute: Any = resample_samples if isinstance(x, Samples) else resample_samples_torch
    compute(target, source, steps, quality)
