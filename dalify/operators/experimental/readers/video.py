"""Read sequences of frames from videos of constant or variable frame rate."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, check_option
from dalify.codecs.video import av
from dalify.codecs.video_index import Division, VideoEntry, VideoIndex
from dalify.parameter_groups.video import VideoSequences
from dalify.registry import Spec, reader

_FORMATS = ("frames", "timestamps")


@reader(outputs=VideoSequences.count, needs=(av,), alphabetical=True)
def video(
    *,
    videos: VideoSequences,
    file_list_format: str = "timestamps",
    file_list_include_end: bool = True,
    file_list_rounding: str = "start_down_end_up",
    fill_value: list[int] = [0],  # noqa: B006
    pad_mode: str = "none",
    uniform_sample: bool = False,
) -> tuple[Spec, ...]:
    """Read sequences of frames from videos of any container and codec that FFmpeg supports.

    Frames equal the frames of a full decode from the start. The videos are specified in one of three ways: a list
    of paths, class folders, or a list file. Needs the extra ``dalify[video]``.

    Unlike in DALI, a file that is not a video raises an error instead of being skipped, and so does a segment outside
    its video; a segment without an end extends to the end of the video; times are not rounded to float32, which can be
    off by one frame. DALI's CPU reader supports only VP8, VP9 and MJPEG.

    Args:
        file_list_format: whether start and end are ``"timestamps"`` in seconds or ``"frames"``; negative values count
            from the end of the video.
        file_list_include_end: accepted but ignored: as in DALI's CPU reader, the end is exclusive.
        file_list_rounding: rounding of times between frames: ``"start_down_end_up"``, ``"start_up_end_down"``,
            ``"all_up"`` or ``"all_down"``.
        fill_value: padding color of ``pad_mode="constant"``: one value or three, 0 to 255.
        pad_mode: padding of an incomplete last sequence: ``none``: it is dropped; ``constant``, ``edge``,
            ``reflect_1001``, ``reflect_101``: as in ``fn.decoders.video``.
        uniform_sample: one sequence per video or segment, with frames at equal distances from the first to the last;
            ``step``, ``stride`` and ``pad_mode`` are then ignored.

    Returns:
        video: uint8 ``[frames, height, width, 3]``, layout FHWC.
        label: int32 ``[1]``, if there are labels.
        frame_num: int32 ``[1]`` or ``[frames]``, if requested; -1 for constant padding.
        timestamps: float64 ``[frames]``, seconds, if requested; -1 for constant padding.

    Raises:
        ReaderError: a missing file, folder or list; a file that is not a video; a segment outside its video.
        DecodeError: damaged data; names the file.
        ArgumentValueError: mutually exclusive arguments, or values out of range.

    Example:
        >>> clips, labels = fn.experimental.readers.video(file_root="videos", sequence_length=16)  # doctest: +SKIP
    """
    del pad_mode, fill_value, file_list_include_end, file_list_rounding, uniform_sample
    check_option("file_list_format", file_list_format, _FORMATS)
    return videos.specs


@video.index
def _(
    videos: VideoSequences,
    file_list_format: str,
    file_list_rounding: str,
    fill_value: Sequence[int],
    pad_mode: str,
    uniform_sample: bool,
    **_without_effect: object,
) -> VideoIndex:
    if videos.labels is not None and not videos.labels:
        raise ArgumentValueError("labels must not be empty; omit it if there are no labels.")
    division = Division(
        videos.sequence_length,
        videos.stride,
        videos.step,
        pad_mode,
        fill_value,
        uniform_sample,
        file_list_format == "frames",
        file_list_rounding,
    )
    return videos.index(division)


@video.read
def _(entry: VideoEntry, *, videos: VideoSequences) -> tuple[np.ndarray[Any, Any], ...]:
    return videos.read(entry)


@video.substitute
def _(entry: VideoEntry, *, videos: VideoSequences) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return videos.blank(entry)


video.origin(attrgetter("path"))
