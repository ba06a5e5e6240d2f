"""The videos of a reader, and the sequences that it reads from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dalify.data.dtypes import DALIImageType
from dalify.registry import Parameters

__all__ = ["VideoSequences"]


@dataclass(slots=True)
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

    @property
    def outputs(self) -> tuple[object, bool, str, str, list[int] | None]:
        """The arguments that determine the outputs besides the frames, in the order of `read_clip`."""
        return self.enable_frame_num, self.enable_timestamps, self.file_list, self.file_root, self.labels
