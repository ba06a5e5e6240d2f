"""Decode audio."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, DTypeError, option_error_text
from dalify.base.limits import check_shape
from dalify.codecs.audio import decode_audio, silence
from dalify.codecs.audio_chunk import AudioFiles
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.convert import audio_to_integers
from dalify.kernels.audio.audio_resample import resample_audio
from dalify.registry import PerSample, Spec, operator

_DTYPES = (DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
_MAX_RATE_HZ = 1e9


@operator(outputs=2)
def audio(
    encoded: Spec,
    /,
    *,
    downmix: bool = False,
    dtype: DALIDataType = DALIDataType.FLOAT,
    quality: float = 50.0,
    sample_rate: PerSample[float] = 0.0,
) -> tuple[Spec, Spec]:
    """Decode audio of any common format: WAV, FLAC, Ogg (Vorbis, Opus), AIFF, AU, CAF, MP3.

    The format is detected from the data, not from the file name. WAV and FLAC files need no further package, unless
    they are unusual or damaged; other formats need the extra ``dalify[audio]``. Unlike DALI, this decodes MP3, and
    scales samples stored as floats when they are converted to integers.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        downmix: return the mean of all channels, without a channel axis.
        dtype: FLOAT (-1 to 1), INT16 or INT32; the full range of the stored samples is mapped to the full range of the
            type.
        quality: resampling quality, 0 to 100: see fn.audio_resample.
        sample_rate: output sampling rate in Hz; 0, the default, keeps the rate of the file.

    Returns:
        the audio, ``[samples, channels]``, or ``[samples]`` with `downmix`; and its sampling rate in Hz, float32.

    Raises:
        DecodeError: not audio, or damaged data; names the file. A truncated WAV file is decoded up to its end.
        LimitError: the header declares, or resampling produces, more samples than the limits allow.
        ArgumentValueError: a quality or rate is out of range.
        DTypeError: `dtype` is not supported.

    Example:
        >>> encoded, labels = fn.readers.file(file_root="speech")  # doctest: +SKIP
        >>> audio, rate = fn.decoders.audio(encoded, downmix=True, sample_rate=16000.0)  # doctest: +SKIP
    """
    check_options(dtype, quality)
    if encoded.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or encoded.ndim not in (None, 1):
        raise DTypeError(
            f"a decoder needs encoded files: one-dimensional samples of type uint8; got {encoded!r}.",
            hint="Decoded arrays need no decoder.",
        )
    return Spec(dtype, 1 if downmix else 2, "", None), Spec(DALIDataType.FLOAT, 0, "", ())


def check_options(dtype: DALIDataType, quality: float) -> None:
    """Check the type of decoded audio and the quality of resampling.

    Raises:
        DTypeError: the type is not supported.
        ArgumentValueError: the quality is out of range.
    """
    if dtype not in _DTYPES:
        raise DTypeError(option_error_text("dtype", dtype, _DTYPES))
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"quality must be between 0 and 100; got {quality:g}.")


@audio.prepare
def _(encoded: Batch, *, downmix: bool, dtype: DALIDataType, quality: float, sample_rate: np.ndarray) -> dict[str, Any]:
    files = AudioFiles(encoded, dtype.numpy, downmix=downmix)
    is_float = dtype.numpy == np.float32
    if files.are_known and (is_float or not downmix) and not any(sample_rate.tolist()):  # nothing but decoding
        return {"out_shapes": files.shapes, "files": files, "others": {}, "is_resampled": None, "rates": files.rates}
    wanted = sample_rate.astype(np.float64)
    for index in np.flatnonzero(~((wanted >= 0) & (wanted <= _MAX_RATE_HZ))).tolist():
        raise ArgumentValueError(
            f"sample_rate must be between 0 (keep the rate) and {_MAX_RATE_HZ:g} Hz; got {wanted[index]:g}.",
            sample=index,
        )
    frames, channels, rates = files.frames.copy(), files.channels.copy(), files.rates.astype(np.float64)
    is_resampled = files.is_known & (wanted != 0) & (wanted != rates)
    for index in np.flatnonzero(is_resampled).tolist():
        frames[index] = math.ceil(frames[index] * wanted[index] / rates[index])
        with _sample(index):
            check_shape((int(frames[index]), int(channels[index])), dtype.numpy.itemsize, "resampled audio")
    others = {}
    for index in np.flatnonzero(~files.is_known).tolist():
        with _sample(index):
            rate_hz = float(wanted[index])
            samples, rate = decode_converted(encoded.samples[index], dtype.numpy, quality, rate_hz, downmix=downmix)
            rates[index] = rate_hz or rate
        others[index] = samples
        frames[index], channels[index] = len(samples), 1 if downmix else samples.shape[1]
    shapes = frames[:, None] if downmix else np.stack([frames, channels], 1)
    return {"out_shapes": shapes, "files": files, "others": others, "is_resampled": is_resampled, "rates": rates}


@audio.cpu_samples
def _(
    out: Samples,
    rate: Samples,
    encoded: Samples,
    *,
    downmix: bool,
    dtype: DALIDataType,
    quality: float,
    sample_rate: np.ndarray,
    files: Any,
    others: Any,
    is_resampled: Any,
    rates: Any,
) -> None:
    assert rate.dense is not None, "dalify bug: numbers that are not in one array"
    if is_resampled is None:
        rate.dense[...] = rates
        failed = files.decode(out)
    else:
        rate.dense[...] = np.where(sample_rate != 0, sample_rate, rates)
        for index, values in others.items():
            _fill(out, index, values)
        failed = _decode_converted(out, files, is_resampled, sample_rate, rates, downmix, dtype.numpy, quality)
    for index in failed.tolist():
        with _sample(index):
            data = next(encoded.take(np.array([index])).arrays())
            values, _ = decode_converted(data, dtype.numpy, quality, float(sample_rate[index]), downmix=downmix)
            _fill(out, index, values)


def _decode_converted(out, files, is_resampled, sample_rate, rates, downmix, dtype, quality):
    """Decode the known files of a chunk, some of which are resampled or mixed; return the indices of those that fail.

    Args:
        out: output.
        files: the files.
        is_resampled: which files are resampled.
        sample_rate: the user's rates.
        rates: rates of the files.
        downmix: whether the result is the mean of all channels.
        dtype: dtype of the result.
        quality: quality of resampling.
    """
    is_converted = is_resampled
    if downmix and dtype != np.float32:  # converted to integers last, as in DALI
        is_converted = is_resampled | (files.channels > 1)
    direct = np.flatnonzero(files.is_known & ~is_converted)
    failed = files.decode(out.take(direct), direct) if len(direct) else direct
    converted = np.flatnonzero(files.is_known & is_converted)
    if not len(converted):
        return failed
    channels = np.ones(len(converted), np.int64) if downmix else files.channels[converted]
    floats = Samples.empty(np.stack([files.frames[converted], channels], 1), np.dtype(np.float32))
    failed = np.sort(np.concatenate([failed, files.decode(floats, converted)]))
    for index, values in zip(converted.tolist(), floats.arrays(), strict=True):
        if index not in failed:
            shape = tuple(out.shapes[index].tolist())
            step = rates[index] / sample_rate[index] if is_resampled[index] else None
            _fill(out, index, _converted(values, shape, dtype, quality, step))
    return failed


def _fill(out, index, values):
    target = next(out.take(np.array([index])).arrays())
    assert target.shape == values.shape, "dalify bug: the length of the audio differs from its header"
    target[...] = values


@contextmanager
def _sample(index):
    """Add the index of the sample to errors raised in the block."""
    try:
        yield
    except DalifyError as error:
        error.sample = index
        raise


def _converted(decoded, shape, dtype, quality, step):
    """Return decoded audio, float32 ``[frames, channels]``, resampled or converted to integers.

    Args:
        decoded: the audio, with the number of channels of the result.
        shape: shape of the result.
        dtype: dtype of the result.
        quality: quality of resampling.
        step: number of input samples per output sample; None to keep the rate.
    """
    result = np.empty((shape[0], decoded.shape[1]), dtype)
    if step is not None and result.size:
        resample_audio(result[None], decoded[None], np.array([step]), quality)
    elif step is None:
        audio_to_integers(result, decoded)
    return result.reshape(shape)


def decode_converted(
    data: Any,
    dtype: np.dtype[Any],
    quality: float,
    target_rate_hz: float,
    *,
    downmix: bool,
    segment: Callable[[int, float], slice] = lambda frames, rate_hz: slice(None),
) -> tuple[np.ndarray, float]:
    """Decode one file, mix its channels and resample it.

    Args:
        data: the contents of the file.
        dtype: element type of the result.
        quality: quality of resampling.
        target_rate_hz: sampling rate of the result; 0 keeps the rate of the file.
        downmix: return the mean of all channels, without a channel axis.
        segment: the frames that are returned, before resampling, from their number and rate.

    Returns:
        the samples, and the sampling rate of the file.
    """
    samples, rate = decode_audio(data, dtype)
    channels = samples.shape[1]
    is_mixed, is_resampled = downmix and channels > 1, target_rate_hz not in (0, rate)
    if (is_mixed or is_resampled) and dtype != np.float32:  # converted to integers last, as in DALI
        samples, _ = decode_audio(data, np.dtype(np.float32))
    samples = samples[segment(len(samples), rate)]
    if is_mixed:
        samples = sum((samples[:, channel] for channel in range(1, channels)), samples[:, 0])[:, None] / channels
    if is_resampled or (is_mixed and dtype != np.float32):
        shape = (math.ceil(len(samples) * target_rate_hz / rate) if is_resampled else len(samples), samples.shape[1])
        check_shape(shape, dtype.itemsize, "resampled audio")
        step = rate / target_rate_hz if is_resampled else None
        samples = _converted(np.ascontiguousarray(samples), shape, dtype, quality, step)
    return samples[:, 0] if downmix else samples, rate


@audio.substitute
def _(encoded: np.ndarray) -> np.ndarray:
    return silence()
