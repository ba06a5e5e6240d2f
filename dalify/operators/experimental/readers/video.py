"""Read sequences of frames from videos of constant or variable frame rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.codecs.video import av
from dalify.codecs.video_index import Division, VideoEntry, VideoIndex, blank_outputs, clip_outputs, frame_num_kind
from dalify.data import DALIDataType, DALIImageType
from dalify.formats.files.video_list import videos_of
from dalify.parameter_groups.video import VideoSequences
from dalify.registry import Spec, reader

_FORMATS = ("frames", "timestamps")


def _has_labels(file_root: str, file_list: str, labels: object) -> bool:
    return bool(file_root or file_list) or labels is not None


def _count(arguments: Mapping[str, Any]) -> int:
    labeled = _has_labels(arguments.get("file_root", ""), arguments.get("file_list", ""), arguments.get("labels"))
    numbered = frame_num_kind(arguments.get("enable_frame_num", "none")) != "none"
    return 1 + labeled + numbered + bool(arguments.get("enable_timestamps"))


@reader(outputs=_count, needs=(av,), alphabetical=True)
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

    Frames are identical to those of a full decode from the start. The videos are specified in one of three ways: a list
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
    del pad_mode, fill_value, file_list_include_end, uniform_sample
    if file_list_format not in _FORMATS:
        raise ArgumentValueError(option_error_text("file_list_format", file_list_format, _FORMATS))
    outputs = [Spec(DALIDataType.UINT8, 4, "FHWC")]
    if _has_labels(videos.file_root, videos.file_list, videos.labels):
        outputs.append(Spec(DALIDataType.INT32, 1, ""))
    if frame_num_kind(videos.enable_frame_num) != "none":
        outputs.append(Spec(DALIDataType.INT32, 1, ""))
    if videos.enable_timestamps:
        outputs.append(Spec(DALIDataType.FLOAT64, 1, ""))
    del file_list_rounding
    return tuple(outputs)


@video.index
def _(
    allow_outside_root: bool,
    file_list: str,
    file_list_format: str,
    file_list_rounding: str,
    file_root: str,
    filenames: Sequence[str],
    fill_value: Sequence[int],
    image_type: DALIImageType,
    labels: Sequence[int] | None,
    pad_mode: str,
    sequence_length: int,
    step: int,
    stride: int,
    uniform_sample: bool,
    **_without_effect: object,
) -> VideoIndex:
    if labels is not None and not labels:
        raise ArgumentValueError("labels must not be empty; omit it if there are no labels.")
    division = Division(
        sequence_length,
        stride,
        step,
        pad_mode,
        fill_value,
        uniform_sample,
        file_list_format == "frames",
        file_list_rounding,
    )
    division.check()
    videos = videos_of(filenames, file_root, file_list, labels, allow_outside_root=allow_outside_root)
    return VideoIndex(videos, division, image_type)


@video.read
def _(entry: VideoEntry, *, videos: VideoSequences) -> tuple[np.ndarray[Any, Any], ...]:
    clip = entry.read()
    return clip_outputs(
        clip,
        clip.frames,
        labeled=_has_labels(videos.file_root, videos.file_list, videos.labels),
        frame_num=frame_num_kind(videos.enable_frame_num),
        enable_timestamps=videos.enable_timestamps,
    )


@video.substitute
def _(entry: VideoEntry, *, videos: VideoSequences) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return blank_outputs(
        entry,
        labeled=_has_labels(videos.file_root, videos.file_list, videos.labels),
        frame_num=frame_num_kind(videos.enable_frame_num),
        enable_timestamps=videos.enable_timestamps,
    )


video.origin(attrgetter("path"))
