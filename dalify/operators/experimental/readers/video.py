"""Read sequences of frames from videos of any frame rate, also a varying one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.codecs.video import av
from dalify.codecs.video_index import Division, VideoEntry, VideoIndex, blank_outputs, clip_outputs, frame_num_kind
from dalify.data import DALIDataType, DALIImageType
from dalify.formats.video_list import videos_of
from dalify.registry import Spec, operator

_FORMATS = ("frames", "timestamps")


def _has_labels(file_root: str, file_list: str, labels: object) -> bool:
    return bool(file_root or file_list) or labels is not None


def _count(arguments: Mapping[str, Any]) -> int:
    labelled = _has_labels(arguments.get("file_root", ""), arguments.get("file_list", ""), arguments.get("labels"))
    numbered = frame_num_kind(arguments.get("enable_frame_num", "none")) != "none"
    return 1 + labelled + numbered + bool(arguments.get("enable_timestamps"))


@operator(outputs=_count, reader=True, needs=(av,))
def video(
    *,
    sequence_length: int,
    allow_outside_root: bool = False,
    enable_frame_num: object = "none",
    enable_timestamps: bool = False,
    file_list: str = "",
    file_list_format: str = "timestamps",
    file_list_include_end: bool = True,
    file_list_rounding: str = "start_down_end_up",
    file_root: str = "",
    filenames: list[str] = [],  # noqa: B006 - the signature is the schema; nobody changes it
    fill_value: list[int] = [0],  # noqa: B006
    image_type: DALIImageType = DALIImageType.RGB,
    labels: list[int] | None = None,
    pad_mode: str = "none",
    step: int = -1,
    stride: int = 1,
    uniform_sample: bool = False,
) -> tuple[Spec, ...]:
    """Read sequences of frames from videos of any container and codec that FFmpeg knows.

    Frames are exactly those of decoding each video from its beginning. The videos are told in one of three ways: one by
    one, in class folders, or by a list file. Needs the extra ``dalify[video]``.

    Unlike DALI: a file that is no video is an error instead of being left out, and so is a part outside of its video;
    a part without an end goes on to that of the video; seconds are taken as they are written, where DALI rounds them to
    float32 and may be off by one frame. DALI's CPU reader knows VP8, VP9 and MJPEG only.

    Args:
        sequence_length: frames of a sequence.
        allow_outside_root: paths in the list are taken as DALI takes them: relative to the working folder, or anywhere
            else. Only for lists that can be trusted.
        enable_frame_num: numbers of frames as another output: ``"none"`` or False; ``"scalar"`` or True: of the first
            frame; ``"sequence"``: of each frame.
        enable_timestamps: times of the frames as another output.
        file_list: path of a text file: on each line a path, relative to the folder of the list, an integer label, and,
            for a part of the video, its start and its end, behind its last frame.
        file_list_format: whether start and end are ``"timestamps"``, in seconds, or ``"frames"``; negative ones count
            from the end of the video.
        file_list_include_end: accepted: as in DALI's CPU reader, the end belongs to no part.
        file_list_rounding: where start and end hit no frame: ``"start_down_end_up"``, ``"start_up_end_down"``,
            ``"all_up"`` or ``"all_down"``.
        file_root: folder with one sub-folder per class, as of ``fn.readers.file``.
        filenames: paths.
        fill_value: colour of padding in ``pad_mode="constant"``: one value or three, 0 to 255.
        image_type: RGB, or YCbCr as stored, with chroma for each pixel.
        labels: one per path of ``filenames``.
        pad_mode: what becomes of a last sequence that is not complete: ``none``: it is left out; ``constant``,
            ``edge``, ``reflect_1001``, ``reflect_101``: as of ``fn.decoders.video``.
        step: distance of the first frames of sequences; at most 0: ``sequence_length * stride``.
        stride: distance of the frames of a sequence.
        uniform_sample: one sequence per video, or part of one, with frames from its first to its last at equal
            distances; ``step``, ``stride`` and ``pad_mode`` have no effect then.

    Returns:
        video: uint8 ``[frames, height, width, 3]``, layout FHWC.
        label: int32 ``[1]``, where there are labels.
        frame_num: int32 ``[1]`` or ``[frames]``, where asked for; -1 for constant padding.
        timestamps: float64 ``[frames]``, seconds, where asked for; -1 for constant padding.

    Raises:
        ReaderError: a missing file, folder or list; a file that is no video; a part outside of its video.
        DecodeError: damaged data; names the file.
        ArgumentValueError: arguments that exclude each other, or are out of their range.

    Example:
        >>> clips, labels = fn.experimental.readers.video(file_root="films", sequence_length=16)  # doctest: +SKIP
    """
    del step, stride, pad_mode, fill_value, file_list_include_end, filenames, uniform_sample, sequence_length
    if file_list_format not in _FORMATS:
        raise ArgumentValueError(option_error_text("file_list_format", file_list_format, _FORMATS))
    outputs = [Spec(DALIDataType.UINT8, 4, "FHWC")]
    if _has_labels(file_root, file_list, labels):
        outputs.append(Spec(DALIDataType.INT32, 1, ""))
    if frame_num_kind(enable_frame_num) != "none":
        outputs.append(Spec(DALIDataType.INT32, 1, ""))
    if enable_timestamps:
        outputs.append(Spec(DALIDataType.FLOAT64, 1, ""))
    del image_type, file_list_rounding
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
        raise ArgumentValueError("labels is an empty list; leave it out where there are none.")
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
def _(
    entry: VideoEntry,
    *,
    enable_frame_num: object,
    enable_timestamps: bool,
    file_list: str,
    file_root: str,
    labels: object,
) -> tuple[np.ndarray[Any, Any], ...]:
    clip = entry.read()
    return clip_outputs(
        clip,
        clip.frames,
        labelled=_has_labels(file_root, file_list, labels),
        frame_num=frame_num_kind(enable_frame_num),
        timestamps=enable_timestamps,
    )


@video.stand_in
def _(
    entry: VideoEntry,
    *,
    enable_frame_num: object,
    enable_timestamps: bool,
    file_list: str,
    file_root: str,
    labels: object,
) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return blank_outputs(
        entry,
        labelled=_has_labels(file_root, file_list, labels),
        frame_num=frame_num_kind(enable_frame_num),
        timestamps=enable_timestamps,
    )


@video.origin
def _(entry: VideoEntry) -> str:
    return entry.path
