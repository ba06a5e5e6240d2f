"""Functions shared by ``fn.readers.video`` and ``fn.readers.video_resize``.

Both have the same outputs, and older arguments for parts of videos than ``fn.experimental.readers.video``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.codecs.video_index import Division, VideoEntry, VideoIndex, blank_outputs, clip_outputs, frame_num_kind
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec

__all__ = ["blank_clip", "clips_of", "read_clip", "reader_outputs", "reader_specs"]


def _extras(enable_frame_num: object, enable_timestamps: bool, file_root: str) -> tuple[str, bool]:
    """Return the outputs besides frames and labels: none for class folders, as in DALI."""
    kind = frame_num_kind(enable_frame_num)
    return ("none", False) if file_root else (kind, bool(enable_timestamps))


def reader_outputs(arguments: Mapping[str, Any]) -> int:
    """Return the number of outputs."""
    file_root = arguments.get("file_root", "")
    labeled = _has_labels(arguments.get("file_list", ""), file_root, arguments.get("labels"))
    frame_num = arguments.get("enable_frame_num", "none")
    kind, timestamps = _extras(frame_num, arguments.get("enable_timestamps", False), file_root)
    return 1 + labeled + (kind != "none") + timestamps


def reader_specs(
    dtype: DALIDataType,
    channels: int,
    normalized: bool,
    enable_frame_num: object,
    enable_timestamps: bool,
    file_list: str,
    file_root: str,
    labels: object,
) -> tuple[Spec, ...]:
    """Return the specs of the outputs.

    Raises:
        ArgumentValueError: channels is not 3, or normalized is used with UINT8.
        DTypeError: the dtype is not supported.
    """
    if dtype not in (DALIDataType.UINT8, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be UINT8 or FLOAT for videos; got {dtype!s}.")
    if channels != 3:
        raise ArgumentValueError(
            f"channels must be 3; got {channels}.", hint="Use fn.color_space_conversion to convert to gray."
        )
    if normalized and dtype != DALIDataType.FLOAT:
        raise ArgumentValueError("normalized=True returns values in [0, 1] and needs dtype=types.FLOAT.")
    given = {"file_list": file_list, "file_root": file_root, "labels": labels}
    _, timestamps = _extras(enable_frame_num, enable_timestamps, file_root)
    outputs = [Spec(dtype, 4, "FHWC")]
    count = reader_outputs({**given, "enable_frame_num": enable_frame_num, "enable_timestamps": enable_timestamps})
    outputs += [Spec(DALIDataType.INT32, 1, "")] * (count - 1 - timestamps)
    if timestamps:
        outputs.append(Spec(DALIDataType.FLOAT64, 1, ""))
    return tuple(outputs)


def clips_of(parts: Sequence[Any], arguments: Mapping[str, Any]) -> VideoIndex:
    """Return the sequences of videos.

    Args:
        parts: ``VideoPart``s.
        arguments: arguments of the reader.

    Raises:
        ReaderError: see ``VideoIndex``.
        ArgumentValueError: see ``VideoIndex``.
    """
    in_frames = arguments["file_list_frame_num"]
    includes_preceding = arguments["file_list_include_preceding_frame"] and not in_frames
    division = Division(
        sequence_length=arguments["sequence_length"],
        stride=arguments["stride"],
        step=arguments["step"],
        pad_mode="constant" if arguments["pad_sequences"] else "none",
        in_frames=in_frames,
        rounding="start_down_end_up" if includes_preceding else "start_up_end_down",
    )
    return VideoIndex(parts, division, arguments["image_type"])


def read_clip(
    entry: VideoEntry,
    enable_frame_num: object,
    enable_timestamps: bool,
    file_list: str,
    file_root: str,
    labels: object,
) -> tuple[np.ndarray[Any, Any], ...]:
    """Read a sequence; the first output is the frames, uint8 ``[F, H, W, 3]``. Raises as ``VideoIndex.read``."""
    clip = entry.read()
    kind, timestamps = _extras(enable_frame_num, enable_timestamps, file_root)
    labeled = _has_labels(file_list, file_root, labels)
    return clip_outputs(clip, clip.frames, labeled=labeled, frame_num=kind, enable_timestamps=timestamps)


def blank_clip(
    entry: VideoEntry,
    *,
    enable_frame_num: object,
    enable_timestamps: bool,
    file_list: str,
    file_root: str,
    labels: object,
) -> tuple[np.ndarray[Any, Any] | None, ...]:
    """Return the outputs for an unreadable sequence: None for all except its label."""
    kind, timestamps = _extras(enable_frame_num, enable_timestamps, file_root)
    labeled = _has_labels(file_list, file_root, labels)
    return blank_outputs(entry, labeled=labeled, frame_num=kind, enable_timestamps=timestamps)


def _has_labels(file_list: str, file_root: str, labels: object) -> bool:
    return bool(file_list or file_root) or labels is not None
