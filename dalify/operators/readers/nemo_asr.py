"""Read speech recordings and transcripts from NVIDIA NeMo manifests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError, option_error_text
from dalify.base.limits import check_shape
from dalify.codecs.audio import decode_audio
from dalify.data import DALIDataType
from dalify.formats.annotations.nemo_manifest import Recording, Recordings
from dalify.formats.files.identity import file_identity
from dalify.formats.files.whole_file import read_file
from dalify.kernels.arrays.convert import audio_to_integers
from dalify.kernels.audio.audio_resample import resample_audio
from dalify.registry import Spec, reader

_DTYPES = (DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
# Of the placeholder for a recording that cannot be read.
_SILENT_SECONDS = 0.1
_DEFAULT_RATE_HZ = 16000.0


@reader(outputs=lambda given: 1 + given["read_sample_rate"] + given["read_text"] + given["read_idxs"])
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
    """Read and decode the recordings listed in manifests, with their transcripts.

    A manifest contains JSON objects with ``audio_filepath``, relative to the folder of the manifest, and optionally
    ``offset`` and ``duration`` in seconds (only that segment is returned) and ``text``; one per line, or over several
    lines. For audio formats see fn.decoders.audio. With ``on_error="replace"``, a recording that cannot be read becomes
    0.1 seconds of silence with its text.

    Args:
        manifest_filepaths: the manifests. An incomplete entry raises an error for its sample, see ``on_error``;
            DALI skips such entries.
        allow_outside_root: interpret audio paths as DALI does: relative to the current directory, without restrictions.
            Only for trusted manifests.
        downmix: return the mean of all channels, without a channel axis.
        dtype: type of the audio: FLOAT (-1 to 1), INT16 or INT32.
        max_duration: skip longer entries, in seconds; 0: no limit.
        min_duration: skip shorter entries and entries without a duration, in seconds; 0: no limit.
        quality: resampling quality, 0 to 100: see fn.audio_resample.
        read_idxs: also return the indices of the entries.
        read_sample_rate: also return the sampling rate.
        read_text: also return the text.
        sample_rate: output sampling rate in Hz; negative or 0: that of the file.

    Returns:
        audio: ``[samples]``, without `downmix` ``[samples, channels]``; all outputs are on the CPU.
        sample rate: of the file in Hz, a float32 scalar.
        text: UTF-8, uint8 ``[bytes]``.
        index: of the entry among the selected ones of its manifest, int64 ``[1]``.

    Raises:
        ReaderError: a missing manifest or audio file, or a damaged manifest.
        DecodeError: not audio, or damaged data.
        ArgumentValueError: the quality is out of range.

    Example:
        >>> audio, rate, text = fn.readers.nemo_asr(
        ...     manifest_filepaths=["train.json"], sample_rate=16000.0, max_duration=16.7
        ... )  # doctest: +SKIP
    """
    if dtype not in _DTYPES:
        raise DTypeError(option_error_text("dtype", dtype, _DTYPES))
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"quality must be between 0 and 100; got {quality:g}.")
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
    **read_options: Any,
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
    audio, rate = decode_audio(encoded, dtype.numpy)
    start = int(min(recording.offset * rate, len(audio)))
    stop = len(audio) if recording.duration < 0 else start + int(min(recording.duration * rate, len(audio) - start))
    is_mixed, is_resampled = downmix and audio.shape[1] > 1, sample_rate > 0 and sample_rate != rate
    if (is_mixed or is_resampled) and dtype != DALIDataType.FLOAT:
        audio, rate = decode_audio(encoded, np.dtype(np.float32))  # converted to integers last
    audio = audio[start:stop]
    if is_mixed:
        channels = [audio[:, channel] for channel in range(audio.shape[1])]
        audio = (sum(channels[1:], channels[0]) / len(channels))[:, None]
    if is_resampled:
        count = math.ceil(len(audio) * sample_rate / rate)
        check_shape((count, audio.shape[1]), dtype.numpy.itemsize, "resampled audio")
        resampled = np.empty((count, audio.shape[1]), dtype.numpy)
        if resampled.size:
            audio = np.ascontiguousarray(audio)
            resample_audio(resampled[None], audio[None], np.array([rate / sample_rate]), quality)
        audio = resampled
    elif is_mixed and dtype != DALIDataType.FLOAT:
        mixed = np.empty(audio.shape, dtype.numpy)
        audio_to_integers(mixed, audio)
        audio = mixed
    audio = np.ascontiguousarray(audio[:, 0] if downmix else audio)
    return _outputs(audio, rate, recording, read_sample_rate, read_text, read_idxs)


def _outputs(
    audio: NDArray[Any],
    rate: float,
    recording: Recording,
    read_sample_rate: bool,
    read_text: bool,
    read_idxs: bool,
) -> tuple[NDArray[Any], ...]:
    results = [audio]
    if read_sample_rate:
        results.append(np.array(rate, np.float32))
    if read_text:
        results.append(np.frombuffer(recording.text, np.uint8).copy())
    if read_idxs:
        results.append(np.array([recording.number], np.int64))
    return tuple(results)


@nemo_asr.substitute
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
    rate = sample_rate if sample_rate > 0 else _DEFAULT_RATE_HZ
    silence = np.zeros((math.ceil(rate * _SILENT_SECONDS), 1), dtype.numpy)
    return _outputs(silence[:, 0] if downmix else silence, rate, recording, read_sample_rate, read_text, read_idxs)


@nemo_asr.identity()
def _(recording: Recording) -> tuple[str, str]:
    return file_identity(recording.path, recording.offset, recording.duration, recording.number, recording.text)


nemo_asr.origin(attrgetter("path"))
