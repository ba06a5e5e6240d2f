"""The videos of a reader, the sequences that it reads from them, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.codecs.video_index import Division, VideoEntry, VideoIndex, frame_num_kind
from dalify.data import DALIDataType, DALIImageType
from dalify.formats.files.video_list import videos_of
from dalify.registry import Parameters, Spec
from dalify.registry.parameter_group import field_names


@dataclass
class VideoSequences(Parameters):
    """Which videos are read, and how they are divided into sequences.

    Attributes:
        sequence_length: number of frames per sequence.
        allow_outside_root: interpret paths in the list as DALI does: relative to the current directory, without
            restrictions. Only for trusted lists.
        enable_frame_num: also return frame numbers: ``"none"`` or False; ``"scalar"`` or True: of the first frame;
            ``"sequence"``: of each frame.
        enable_timestamps: also return the times of the frames.
        file_list: path of a text file: each line has a path, relative to the folder of the list, an integer label, and
            optionally start and end (exclusive) of a segment of the video.
        file_root: folder with one subfolder per class, as in ``fn.readers.file``.
        filenames: list of paths.
        image_type: RGB, or YCbCr as stored, with chroma upsampled to each pixel.
        labels: one per path of ``filenames``.
        step: distance between the first frames of sequences; if not positive: ``sequence_length * stride``.
        stride: distance between the frames of a sequence.
    """

    sequence_length: int
    allow_outside_root: bool = False
    enable_frame_num: object = "none"
    enable_timestamps: bool = False
    file_list: str = ""
    file_root: str = ""
    filenames: list[str] = field(default_factory=list[str])
    image_type: DALIImageType = DALIImageType.RGB
    labels: list[int] | None = None
    step: int = -1
    stride: int = 1

    @classmethod
    def count(cls, arguments: Mapping[str, Any]) -> int:
        """Return the number of outputs.

        Args:
            arguments: by name, including those of the group.
        """
        return len(cls(**{name: arguments[name] for name in field_names(cls)}).specs)

    @property
    def has_labels(self) -> bool:
        """Whether labels are returned."""
        return bool(self.file_list or self.file_root) or self.labels is not None

    @property
    def frame_num(self) -> str:
        """Which frame numbers are returned: ``none``, ``scalar`` or ``sequence``."""
        return frame_num_kind(self.enable_frame_num)

    @property
    def has_timestamps(self) -> bool:
        """Whether the times of the frames are returned."""
        return bool(self.enable_timestamps)

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The specs of the outputs."""
        integers = (Spec(DALIDataType.INT32, 1, ""),) * (self.has_labels + (self.frame_num != "none"))
        times = (Spec(DALIDataType.FLOAT64, 1, ""),) * self.has_timestamps
        return (Spec(DALIDataType.UINT8, 4, "FHWC"), *integers, *times)

    def index(self, division: Division) -> VideoIndex:
        """Return the sequences of the videos; raises as ``VideoIndex`` and ``videos_of``."""
        division.check()
        allows = self.allow_outside_root
        parts = videos_of(self.filenames, self.file_root, self.file_list, self.labels, allow_outside_root=allows)
        return VideoIndex(parts, division, self.image_type)

    def read(self, entry: VideoEntry) -> tuple[np.ndarray[Any, Any], ...]:
        """Read a sequence: frames, uint8 ``[F, H, W, 3]``, and the other outputs. Raises as ``VideoIndex.read``."""
        clip = entry.read()
        outputs: list[np.ndarray[Any, Any]] = [clip.frames]
        if self.has_labels:
            outputs.append(np.array([clip.label], np.int32))
        if self.frame_num != "none":
            numbers = clip.numbers.astype(np.int32)
            outputs.append(numbers[:1] if self.frame_num == "scalar" else numbers)
        if self.has_timestamps:
            outputs.append(clip.seconds)
        return tuple(outputs)

    def blank(self, entry: VideoEntry) -> tuple[np.ndarray[Any, Any] | None, ...]:
        """Return the outputs for an unreadable sequence: None for all except its label."""
        labels = [np.array([entry.label], np.int32)] if self.has_labels else []
        return (None, *labels, *[None] * (len(self.specs) - 1 - len(labels)))


@dataclass
class VideoClips(VideoSequences):
    """The common arguments of ``fn.readers.video`` and ``fn.readers.video_resize``.

    Attributes:
        additional_decode_surfaces: option of DALI's hardware decoder; accepted but ignored.
        channels: 3.
        dtype: UINT8, or FLOAT.
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
    """

    additional_decode_surfaces: int = 2
    channels: int = 3
    dtype: DALIDataType = DALIDataType.UINT8
    file_list_frame_num: bool = False
    file_list_include_preceding_frame: bool = False
    normalized: bool = False
    pad_sequences: bool = False
    skip_vfr_check: bool = False

    def check(self) -> None:
        """Check the arguments of the frames.

        Raises:
            ArgumentValueError: channels is not 3, or normalized is used with UINT8.
            DTypeError: the dtype is not supported.
        """
        if self.dtype not in (DALIDataType.UINT8, DALIDataType.FLOAT):
            raise DTypeError(f"dtype must be types.UINT8 or types.FLOAT for videos; got {self.dtype.text}.")
        if self.channels != 3:
            raise ArgumentValueError(
                f"channels must be 3; got {self.channels}.", hint="Use fn.color_space_conversion to convert to gray."
            )
        if self.normalized and self.dtype != DALIDataType.FLOAT:
            raise ArgumentValueError("normalized=True returns values in [0, 1] and needs dtype=types.FLOAT.")

    @property
    def frame_num(self) -> str:
        """Which frame numbers are returned; ``none`` for class folders, as in DALI."""
        kind = super().frame_num
        return "none" if self.file_root else kind

    @property
    def has_timestamps(self) -> bool:
        """Whether the times of the frames are returned; not for class folders, as in DALI."""
        return super().has_timestamps and not self.file_root

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The specs of the outputs."""
        frames, *others = super().specs
        return (frames.replace(dtype=self.dtype), *others)

    @property
    def division(self) -> Division:
        """How the videos are divided into sequences."""
        in_frames = self.file_list_frame_num
        includes_preceding = self.file_list_include_preceding_frame and not in_frames
        return Division(
            sequence_length=self.sequence_length,
            stride=self.stride,
            step=self.step,
            pad_mode="constant" if self.pad_sequences else "none",
            in_frames=in_frames,
            rounding="start_down_end_up" if includes_preceding else "start_up_end_down",
        )
