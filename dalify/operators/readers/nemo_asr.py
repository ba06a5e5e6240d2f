"""Read recorded speech and its text by manifests of NVIDIA NeMo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError, option_error_text
from dalify.base.limits import check_shape
from dalify.codecs.sound import decode_sound
from dalify.data import DALIDataType
from dalify.formats.identity import file_identity
from dalify.formats.nemo_manifest import Recording, Recordings
from dalify.formats.whole_file import read_file
from dalify.kernels.audio_resample import resample_sound
from dalify.kernels.convert import audio_to_integers
from dalify.registry import Spec, operator

_DTYPES = (DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
# Of what takes the place of a recording that cannot be read.
_SILENT_SECONDS = 0.1
_USUAL_RATE_HZ = 16000.0


@operator(outputs=lambda given: 1 + given["read_sample_rate"] + given["read_text"] + given["read_idxs"], reader=True)
def nemo_asr(
    *,
    manifest_filepaths: list[str],
    allow_outside_root: bool = False,
    downmix: bool = True,
    dtype: DALIDataType = DALIDataType.FLOAT,
    max_duration: float = 0.0,
    min_duration: float = 0.0,
    quality: float = 50.0,
    read_idxs: bool = False,
    read_sample_rate: bool = True,
    read_text: bool = True,
    sample_rate: float = -1.0,
) -> tuple[Spec, ...]:
    """Read the recordings that manifests list, decoded, with what is said in them.

    A manifest holds objects of JSON with ``audio_filepath``, relative to the folder of the manifest, and, where wanted,
    ``offset`` and ``duration`` in seconds (then only that part is given) and ``text``; one per line, or over several
    lines. Formats of sound: see fn.decoders.audio. With ``on_error="replace"``, a recording that cannot be read is a
    tenth of a second of silence with its text.

    Args:
        manifest_filepaths: the manifests. An entry that lacks something is an error of its sample, see ``on_error``;
            DALI leaves such entries out.
        allow_outside_root: paths of sounds are taken as DALI takes them: relative to the working folder, or anywhere
            else. Only for manifests that can be trusted.
        downmix: the mean of all channels, without an axis of channels.
        dtype: of the sound: FLOAT (-1 to 1), INT16 or INT32.
        max_duration: entries that are longer are left out, in seconds; 0 for none.
        min_duration: entries that are shorter, or that do not tell, are left out, in seconds; 0 for none.
        quality: of resampling, 0 to 100: see fn.audio_resample.
        read_idxs: give the numbers of the entries, too.
        read_sample_rate: give the sampling rate, too.
        read_text: give the text, too.
        sample_rate: what the sound is resampled to, in Hz; negative or 0: left as it is.

    Returns:
        sound: ``[samples]``, without `downmix` ``[samples, channels]``; all outputs are on the CPU.
        sample rate: of the file, Hz, a float32 number.
        text: UTF-8, uint8 ``[bytes]``.
        number: of the entry among those of its manifest that were taken, int64 ``[1]``.

    Raises:
        ReaderError: a manifest or sound that is missing, or a damaged manifest.
        DecodeError: no sound, or a damaged one.
        ArgumentValueError: a quality out of range.

    Example:
        >>> sound, rate, text = fn.readers.nemo_asr(
        ...     manifest_filepaths=["train.json"], sample_rate=16000.0, max_duration=16.7
        ... )  # doctest: +SKIP
    """
    if dtype not in _DTYPES:
        raise DTypeError(option_error_text("dtype", dtype, _DTYPES))
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"quality must be from 0 to 100; got {quality:g}.")
    if not sample_rate <= 1e9 or math.isnan(sample_rate):
        raise ArgumentValueError(f"sample_rate must be at most 1e9 Hz; got {sample_rate:g}.")
    specs = [Spec(dtype, 1 if downmix else 2, "")]
    if read_sample_rate:
        specs.append(Spec(DALIDataType.FLOAT, 0, ""))
    if read_text:
        specs.append(Spec(DALIDataType.UINT8, 1, ""))
    if read_idxs:
        specs.append(Spec(DALIDataType.INT64, 1, ""))
    return tuple(specs)


@nemo_asr.index
def _(
    manifest_filepaths: Sequence[str],
    allow_outside_root: bool,
    max_duration: float,
    min_duration: float,
    **of_reading: Any,
) -> Recordings:
    return Recordings(manifest_filepaths, min_duration, max_duration, allow_outside_root=allow_outside_root)


@nemo_asr.read
def _(
    recording: Recording,
    *,
    downmix: bool,
    dtype: DALIDataType,
    quality: float,
    read_idxs: bool,
    read_sample_rate: bool,
    read_text: bool,
    sample_rate: float,
) -> tuple[NDArray[Any], ...]:
    if recording.problem:
        raise ReaderError(recording.problem)
    encoded = read_file(recording.path)
    sound, rate = decode_sound(encoded, dtype.numpy)
    start = int(min(recording.offset * rate, len(sound)))
    stop = len(sound) if recording.duration < 0 else start + int(min(recording.duration * rate, len(sound) - start))
    is_mixed, is_resampled = downmix and sound.shape[1] > 1, sample_rate > 0 and sample_rate != rate
    if (is_mixed or is_resampled) and dtype != DALIDataType.FLOAT:
        sound, rate = decode_sound(encoded, np.dtype(np.float32))  # integers are made at the end
    sound = sound[start:stop]
    if is_mixed:
        channels = [sound[:, channel] for channel in range(sound.shape[1])]
        sound = (sum(channels[1:], channels[0]) / len(channels))[:, None]
    if is_resampled:
        count = math.ceil(len(sound) * sample_rate / rate)
        check_shape((count, sound.shape[1]), dtype.numpy.itemsize, "resampled audio")
        resampled = np.empty((count, sound.shape[1]), dtype.numpy)
        if resampled.size:
            sound = np.ascontiguousarray(sound)
            resample_sound(resampled[None], sound[None], np.array([rate / sample_rate]), quality)
        sound = resampled
    elif is_mixed and dtype != DALIDataType.FLOAT:
        mixed = np.empty(sound.shape, dtype.numpy)
        audio_to_integers(mixed, sound)
        sound = mixed
    sound = np.ascontiguousarray(sound[:, 0] if downmix else sound)
    return _outputs(sound, rate, recording, read_sample_rate, read_text, read_idxs)


def _outputs(
    sound: NDArray[Any],
    rate: float,
    recording: Recording,
    read_sample_rate: bool,
    read_text: bool,
    read_idxs: bool,
) -> tuple[NDArray[Any], ...]:
    results = [sound]
    if read_sample_rate:
        results.append(np.array(rate, np.float32))
    if read_text:
        results.append(np.frombuffer(recording.text, np.uint8).copy())
    if read_idxs:
        results.append(np.array([recording.number], np.int64))
    return tuple(results)


@nemo_asr.stand_in
def _(
    recording: Recording,
    *,
    downmix: bool,
    dtype: DALIDataType,
    read_idxs: bool,
    read_sample_rate: bool,
    read_text: bool,
    sample_rate: float,
) -> tuple[NDArray[Any], ...]:
    rate = sample_rate if sample_rate > 0 else _USUAL_RATE_HZ
    silence = np.zeros((math.ceil(rate * _SILENT_SECONDS), 1), dtype.numpy)
    return _outputs(silence[:, 0] if downmix else silence, rate, recording, read_sample_rate, read_text, read_idxs)


@nemo_asr.identity()
def _(recording: Recording) -> tuple[str, str]:
    return file_identity(recording.path, recording.offset, recording.duration, recording.number, recording.text)


@nemo_asr.origin
def _(recording: Recording) -> str:
    return recording.path
