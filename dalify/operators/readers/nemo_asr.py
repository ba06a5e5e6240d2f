"""Read speech recordings and transcripts from NVIDIA NeMo manifests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, ReaderError
from dalify.data import DALIDataType
from dalify.formats.annotations.nemo_manifest import Recording, Recordings
from dalify.formats.files.identity import file_identity
from dalify.formats.files.whole_file import read_file
from dalify.operators.decoders.audio import check_options, decode_converted
from dalify.registry import Parameters, Spec, reader

# Of the placeholder for a recording that cannot be read.
_SILENT_SECONDS = 0.1
_DEFAULT_RATE_HZ = 16000.0


@dataclass(slots=True)
class _Audio(Parameters):
    """Which recordings are read, and which properties of each are returned.

    Attributes:
        downmix: return the mean of all channels, without a channel axis.
        dtype: type of the audio: FLOAT (-1 to 1), INT16 or INT32.
        max_duration: skip longer entries, in seconds; 0: no limit.
        min_duration: skip shorter entries and entries without a duration, in seconds; 0: no limit.
        quality: resampling quality, 0 to 100: see fn.audio_resample.
        read_idxs: also return the indices of the entries.
        read_sample_rate: also return the sampling rate.
        read_text: also return the text.
        sample_rate: output sampling rate in Hz; 0 or a negative number keeps the rate of the file.
    """

    downmix: bool = True
    dtype: DALIDataType = DALIDataType.FLOAT
    max_duration: float = 0.0
    min_duration: float = 0.0
    quality: float = 50.0
    read_idxs: bool = False
    read_sample_rate: bool = True
    read_text: bool = True
    sample_rate: float = -1.0

    def outputs(self, audio: NDArray[Any], rate: float, recording: Recording) -> tuple[NDArray[Any], ...]:
        """Return the outputs for a recording."""
        results = [audio]
        if self.read_sample_rate:
            results.append(np.array(rate, np.float32))
        if self.read_text:
            results.append(np.frombuffer(recording.text, np.uint8).copy())
        if self.read_idxs:
            results.append(np.array([recording.number], np.int64))
        return tuple(results)


@reader(outputs=lambda given: 1 + given["read_sample_rate"] + given["read_text"] + given["read_idxs"])
def nemo_asr(*, manifest_filepaths: list[str], allow_outside_root: bool = False, audio: _Audio) -> tuple[Spec, ...]:
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
    check_options(audio.dtype, audio.quality)
    if not audio.sample_rate <= 1e9 or math.isnan(audio.sample_rate):
        raise ArgumentValueError(f"sample_rate must be at most 1e9 Hz; got {audio.sample_rate:g}.")
    specs = [Spec(audio.dtype, 1 if audio.downmix else 2, "")]
    if audio.read_sample_rate:
        specs.append(Spec(DALIDataType.FLOAT, 0, ""))
    if audio.read_text:
        specs.append(Spec(DALIDataType.UINT8, 1, ""))
    if audio.read_idxs:
        specs.append(Spec(DALIDataType.INT64, 1, ""))
    return tuple(specs)


@nemo_asr.index
def _(manifest_filepaths: Sequence[str], allow_outside_root: bool, audio: _Audio) -> Recordings:
    durations = audio.min_duration, audio.max_duration
    return Recordings(manifest_filepaths, *durations, allow_outside_root=allow_outside_root)


@nemo_asr.read
def _(recording: Recording, *, audio: _Audio) -> tuple[NDArray[Any], ...]:
    if recording.problem:
        raise ReaderError(recording.problem)

    def segment(frames: int, rate_hz: float) -> slice:
        start = int(min(recording.offset * rate_hz, frames))
        is_whole = recording.duration < 0
        return slice(start, frames if is_whole else start + int(min(recording.duration * rate_hz, frames - start)))

    encoded, target_rate_hz = read_file(recording.path), max(audio.sample_rate, 0.0)
    data, rate = decode_converted(
        encoded, audio.dtype.numpy, audio.quality, target_rate_hz, downmix=audio.downmix, segment=segment
    )
    return audio.outputs(np.ascontiguousarray(data), rate, recording)


@nemo_asr.substitute
def _(recording: Recording, *, audio: _Audio) -> tuple[NDArray[Any], ...]:
    rate = audio.sample_rate if audio.sample_rate > 0 else _DEFAULT_RATE_HZ
    silence = np.zeros((math.ceil(rate * _SILENT_SECONDS), 1), audio.dtype.numpy)
    return audio.outputs(silence[:, 0] if audio.downmix else silence, rate, recording)


@nemo_asr.identity()
def _(recording: Recording) -> tuple[str, str]:
    return file_identity(recording.path, recording.offset, recording.duration, recording.number, recording.text)


nemo_asr.origin(attrgetter("path"))
