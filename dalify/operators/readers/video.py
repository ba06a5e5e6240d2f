"""Read sequences of frames from videos."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from dalify.codecs.video import av
from dalify.codecs.video_index import VideoEntry, VideoIndex
from dalify.codecs.video_reader import blank_clip, clips_of, read_clip, reader_outputs, reader_specs
from dalify.data import DALIDataType
from dalify.formats.files.video_list import videos_of
from dalify.parameter_groups.video import VideoSequences
from dalify.registry import Spec, reader


@reader(outputs=reader_outputs, needs=(av,), alphabetical=True)
def video(
    *,
    videos: VideoSequences,
    additional_decode_surfaces: int = 2,
    channels: int = 3,
    dtype: DALIDataType = DALIDataType.UINT8,
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    normalized: bool = False,
    pad_sequences: bool = False,
    skip_vfr_check: bool = False,
) -> tuple[Spec, ...]:
    """Read sequences of frames from videos of any container and codec that FFmpeg supports.

    Frames are identical to those of a full decode from the start, also with a variable frame rate, which DALI rejects.
    The videos are specified in one of three ways: a list of paths, class folders, or a list file. They are decoded on
    the CPU; with ``device="gpu"`` the frames are copied to the GPU. Needs the extra ``dalify[video]``.

    Args:
        additional_decode_surfaces: option of DALI's hardware decoder; accepted but ignored.
        channels: 3.
        dtype: UINT8 or FLOAT.
        enable_frame_num: also return frame numbers: ``"none"`` or False; ``"scalar"`` or True: of the first frame;
            ``"sequence"``: of each frame. Not with ``file_root``.
        enable_timestamps: also return the times of the frames. Not with ``file_root``.
        file_list_frame_num: start and end are frame numbers instead of seconds; negative ones count from the end of the
            video. Of fractions, a start is rounded up and an end down.
        file_list_include_preceding_frame: if a time is between frames, round a start down and an end up instead of the
            reverse.
        labels: one per path of ``filenames``; empty: 0, 1, 2 …; not given: no labels.
        normalized: values from 0 to 1; FLOAT only.
        pad_sequences: keep an incomplete last sequence, padded with black frames.
        skip_vfr_check: accepted but ignored: a variable frame rate is supported.

    Returns:
        video: ``[frames, height, width, 3]``, layout FHWC.
        label: int32 ``[1]``, if there are labels.
        frame_num: int32 ``[1]`` or ``[frames]``, if requested; -1 for padding.
        timestamps: float64 ``[frames]``, seconds, if requested; -1 for padding.

    Raises:
        ReaderError: a missing file, folder or list; a file that is not a video; a segment outside its video.
        DecodeError: damaged data; names the file.
        ArgumentValueError: mutually exclusive arguments, or values out of range.

    Example:
        >>> clips, labels = fn.readers.video(file_root="videos", sequence_length=16, device="gpu")  # doctest: +SKIP
    """
    del additional_decode_surfaces, file_list_frame_num, file_list_include_preceding_frame
    del pad_sequences, skip_vfr_check
    return reader_specs(dtype, channels, normalized, *videos.outputs)


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
    videos: VideoSequences,
    dtype: DALIDataType,
    normalized: bool,
) -> tuple[np.ndarray[Any, Any], ...]:
    outputs = read_clip(entry, *videos.outputs)
    frames = outputs[0]
    if dtype == DALIDataType.FLOAT:
        frames = frames * np.float32(1 / 255) if normalized else frames.astype(np.float32)
    return frames, *outputs[1:]


video.substitute(blank_clip)


video.origin(attrgetter("path"))
