"""Decode audio."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, DTypeError, option_error_text
from dalify.base.limits import check_shape
from dalify.codecs.sound import decode_sound, silence
from dalify.data.dtypes import DALIDataType
from dalify.kernels.audio_resample import resample_sound
from dalify.kernels.convert import audio_to_integers
from dalify.registry import PerSample, Spec, operator

_DTYPES = (DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
_HIGHEST_RATE_HZ = 1e9


@operator(allocating=True, listed=True, outputs=2)
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

    The format is told by the data, not by a file name. WAV files of 16-bit samples need no further package, everything
    else the extra ``dalify[audio]``. DALI decodes no MP3; samples stored as floats it does not scale to integers.

    Args:
        encoded: files as they are, uint8 ``[bytes]``.
        downmix: the mean of all channels, without an axis of channels.
        dtype: FLOAT (-1 to 1), INT16 or INT32; the full range of the stored samples becomes that of the type.
        quality: of resampling, 0 to 100: see fn.audio_resample.
        sample_rate: in Hz, what the sound is resampled to; 0, the default, leaves it as it is.

    Returns:
        the sound, ``[samples, channels]``, with `downmix` ``[samples]``; and its sampling rate, a float32 number, Hz.

    Raises:
        DecodeError: no audio or damaged data; names the file. Of a WAV file that was cut off the rest is given.
        LimitError: the header declares, or resampling makes, more samples than the limits allow.
        ArgumentValueError: a quality or rate out of range.
        DTypeError: another dtype.

    Example:
        >>> encoded, labels = fn.readers.file(file_root="speech")  # doctest: +SKIP
        >>> sound, rate = fn.decoders.audio(encoded, downmix=True, sample_rate=16000.0)  # doctest: +SKIP
    """
    if dtype not in _DTYPES:
        raise DTypeError(option_error_text("dtype", dtype, _DTYPES))
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"quality must be from 0 to 100; got {quality:g}.")
    if encoded.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or encoded.ndim not in (None, 1):
        raise DTypeError(
            f"a decoder needs encoded files as they are: one-dimensional samples of type UINT8; got {encoded!r}.",
            hint="Arrays that are sounds already need no decoder.",
        )
    return Spec(dtype, 1 if downmix else 2, "", None), Spec(DALIDataType.FLOAT, 0, "", ())


@audio.cpu
def _(encoded, *, downmix, dtype, quality, sample_rate):
    sounds, rates = [], np.empty(len(encoded), np.float32)
    for index, (data, wanted) in enumerate(zip(encoded, sample_rate.tolist(), strict=True)):
        try:
            if not 0 <= wanted <= _HIGHEST_RATE_HZ:
                raise ArgumentValueError(
                    f"sample_rate must be from 0 (the sound's own) to {_HIGHEST_RATE_HZ:g} Hz; got {wanted:g}."
                )
            sound, rates[index] = _decoded(data, downmix, dtype.numpy, quality, wanted)
        except DalifyError as error:
            error.sample = index
            raise
        sounds.append(sound)
    return sounds, rates


def _decoded(data, downmix, dtype, quality, wanted):
    """Return one sound and its rate."""
    sound, rate = decode_sound(data, dtype)
    channels = sound.shape[1]
    is_mixed, is_resampled = downmix and channels > 1, wanted not in (0, rate)
    if is_mixed or is_resampled:
        if dtype != np.float32:  # integers are made at the end, as in DALI
            sound, _ = decode_sound(data, np.dtype(np.float32))
        if is_mixed:
            sound = sum((sound[:, channel] for channel in range(1, channels)), sound[:, 0])[:, None] / channels
        shape = (math.ceil(len(sound) * wanted / rate) if is_resampled else len(sound), sound.shape[1])
        check_shape(shape, dtype.itemsize, "resampled audio")
        result = np.empty(shape, dtype)
        if is_resampled and result.size:
            resample_sound(result[None], sound[None], np.array([rate / wanted]), quality)
        elif dtype == np.float32:
            result = sound
        else:
            audio_to_integers(result, sound)
        sound = result
    return sound[:, 0] if downmix else sound, wanted or rate


@audio.stand_in
def _(encoded):
    return silence()
