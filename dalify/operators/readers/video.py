"""Read sequences of frames from videos."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from dalify.codecs.video import av
from dalify.codecs.video_index import VideoEntry, VideoIndex
from dalify.data import DALIDataType
from dalify.parameter_groups.video import VideoClips
from dalify.registry import Spec, reader


@reader(outputs=VideoClips.count, needs=(av,), alphabetical=True)
def video(*, videos: VideoClips) -> tuple[Spec, ...]:
    """Read sequences of frames from videos of any container and codec that FFmpeg supports.

    Frames equal the frames of a full decode from the start, also with a variable frame rate, which DALI rejects.
    The videos are specified in one of three ways: a list of paths, class folders, or a list file. They are decoded on
    the CPU, or by hardware that the environment variable ``DALIFY_VIDEO_DECODER`` selects; with ``device="gpu"`` the
    frames are copied to the GPU. Needs the extra ``dalify[video]``.

    Args:
        dtype: UINT8 or FLOAT.

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
    videos.check()
    return videos.specs


@video.index
def _(videos: VideoClips) -> VideoIndex:
    return videos.index(videos.division)


@video.read
def _(entry: VideoEntry, *, videos: VideoClips) -> tuple[np.ndarray[Any, Any], ...]:
    frames, *others = videos.read(entry)
    if videos.dtype == DALIDataType.FLOAT:
        frames = frames * np.float32(1 / 255) if videos.normalized else frames.astype(np.float32)
    return frames, *others


@video.substitute
def _(entry: VideoEntry, *, videos: VideoClips) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return videos.blank(entry)


video.origin(attrgetter("path"))
