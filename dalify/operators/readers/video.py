"""Read sequences of frames from videos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.codecs.video import av
from dalify.codecs.video_index import VideoEntry, VideoIndex
from dalify.codecs.video_reader import blank_clip, clips_of, read_clip, reader_outputs, reader_specs
from dalify.data import DALIDataType, DALIImageType
from dalify.formats.video_list import videos_of
from dalify.registry import Spec, operator


@operator(outputs=reader_outputs, reader=True, needs=(av,))
def video(
    *,
    sequence_length: int,
    additional_decode_surfaces: int = 2,
    allow_outside_root: bool = False,
    channels: int = 3,
    dtype: DALIDataType = DALIDataType.UINT8,
    enable_frame_num: object = "none",
    enable_timestamps: bool = False,
    file_list: str = "",
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    file_root: str = "",
    filenames: list[str] = [],  # noqa: B006 - the signature is the schema; nobody changes it
    image_type: DALIImageType = DALIImageType.RGB,
    labels: list[int] | None = None,
    normalized: bool = False,
    pad_sequences: bool = False,
    skip_vfr_check: bool = False,
    step: int = -1,
    stride: int = 1,
) -> tuple[Spec, ...]:
    """Read sequences of frames from videos of any container and codec that FFmpeg knows.

    Frames are exactly those of decoding each video from its beginning, also where the frame rate varies, which DALI
    refuses. The videos are told in one of three ways: one by one, in class folders, or by a list file. They are decoded
    on the CPU; with ``device="gpu"`` the frames lie there. Needs the extra ``dalify[video]``.

    Args:
        sequence_length: frames of a sequence.
        additional_decode_surfaces: of DALI's hardware decoder; accepted, without effect.
        allow_outside_root: paths in the list are taken as DALI takes them: relative to the working folder, or anywhere
            else. Only for lists that can be trusted.
        channels: 3.
        dtype: UINT8 or FLOAT.
        enable_frame_num: numbers of frames as another output: ``"none"`` or False; ``"scalar"`` or True: of the first
            frame; ``"sequence"``: of each frame. Not with ``file_root``.
        enable_timestamps: times of the frames as another output. Not with ``file_root``.
        file_list: path of a text file: on each line a path, relative to the folder of the list, an integer label, and,
            for a part of the video, its start and its end, behind its last frame.
        file_list_frame_num: start and end are numbers of frames, negative ones from the end of the video, instead of
            seconds; fractions: a start is rounded up, an end down.
        file_list_include_preceding_frame: where seconds hit no frame, a start is rounded down and an end up, instead of
            the other way round.
        file_root: folder with one sub-folder per class, as of ``fn.readers.file``.
        filenames: paths.
        image_type: RGB, or YCbCr as stored, with chroma for each pixel.
        labels: one per path of ``filenames``; empty: 0, 1, 2 …; not given: no labels.
        normalized: values from 0 to 1; for FLOAT only.
        pad_sequences: keep a last sequence that is not complete; what it lacks is black.
        skip_vfr_check: accepted: a varying frame rate is no mistake here.
        step: distance of the first frames of sequences; at most 0: ``sequence_length * stride``.
        stride: distance of the frames of a sequence.

    Returns:
        video: ``[frames, height, width, 3]``, layout FHWC.
        label: int32 ``[1]``, where there are labels.
        frame_num: int32 ``[1]`` or ``[frames]``, where asked for; -1 for padding.
        timestamps: float64 ``[frames]``, seconds, where asked for; -1 for padding.

    Raises:
        ReaderError: a missing file, folder or list; a file that is no video; a part outside of its video.
        DecodeError: damaged data; names the file.
        ArgumentValueError: arguments that exclude each other, or are out of their range.

    Example:
        >>> clips, labels = fn.readers.video(file_root="films", sequence_length=16, device="gpu")  # doctest: +SKIP
    """
    del sequence_length, additional_decode_surfaces, file_list_frame_num, file_list_include_preceding_frame, filenames
    del pad_sequences, skip_vfr_check, step, stride, image_type
    return reader_specs(dtype, channels, normalized, enable_frame_num, enable_timestamps, file_list, file_root, labels)


@video.index
def _(
    allow_outside_root: bool,
    file_list: str,
    file_root: str,
    filenames: Sequence[str],
    labels: Sequence[int] | None,
    **arguments: Any,
) -> VideoIndex:
    found = videos_of(filenames, file_root, file_list, labels, allow_outside_root=allow_outside_root)
    return clips_of(found, arguments)


@video.read
def _(
    entry: VideoEntry,
    *,
    dtype: DALIDataType,
    enable_frame_num: object,
    enable_timestamps: bool,
    file_list: str,
    file_root: str,
    labels: object,
    normalized: bool,
) -> tuple[np.ndarray[Any, Any], ...]:
    outputs = read_clip(entry, enable_frame_num, enable_timestamps, file_list, file_root, labels)
    frames = outputs[0]
    if dtype == DALIDataType.FLOAT:
        frames = frames * np.float32(1 / 255) if normalized else frames.astype(np.float32)
    return frames, *outputs[1:]


video.stand_in(blank_clip)


@video.origin
def _(entry: VideoEntry) -> str:
    return entry.path
