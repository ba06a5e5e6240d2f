"""Read sequences of images from one folder per video."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DecodeError, ReaderError, option_error_text
from dalify.base.limits import check_shape
from dalify.base.wording import counted
from dalify.codecs.image import decode_image, image_shape
from dalify.data import DALIDataType, DALIImageType, Entries
from dalify.formats.files.file_list import KNOWN_EXTENSIONS, FileList, files_in_class_folders
from dalify.formats.files.identity import file_identity
from dalify.formats.files.whole_file import read_file
from dalify.registry import Spec, reader

_IMAGE_TYPES = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY, DALIImageType.ANY_DATA)
# Names that begin with a period are hidden.
_VISIBLE_FOLDERS = ("[!.]*",)
_VISIBLE_IMAGES = tuple(f"[!.]{pattern}" for pattern in KNOWN_EXTENSIONS)


@reader
def sequence(
    *,
    file_root: str,
    sequence_length: int,
    image_type: DALIImageType = DALIImageType.RGB,
    step: int = 1,
    stride: int = 1,
) -> Spec:
    """Read sequences from videos that are stored as image files: ``file_root/<video>/<frame>``.

    Videos and frames are in byte order of their names ("10.png" before "2.png"); names that begin with a period are
    skipped. A sequence is complete and within one video; deeper folders are not searched.

    Args:
        file_root: folder with one subfolder per video.
        sequence_length: number of frames per sequence.
        image_type: RGB, BGR, GRAY or ANY_DATA.
        step: distance between the first frames of sequences.
        stride: distance between the frames of a sequence.

    Returns:
        uint8 ``[frames, height, width, channels]``, layout FHWC.

    Raises:
        ReaderError: a missing or empty folder, no video that is long enough, or frames of different sizes in a
            sequence.
        DecodeError: a file is not an image; names the file.
        ArgumentValueError: an argument is out of range.

    Example:
        >>> clips = fn.readers.sequence(file_root="videos", sequence_length=8)  # doctest: +SKIP
    """
    for name, value in (("sequence_length", sequence_length), ("step", step), ("stride", stride)):
        if value < 1:
            raise ArgumentValueError(f"{name} must be at least 1; got {value}.")
    if image_type not in _IMAGE_TYPES:
        names = [f"types.{item.name}" for item in _IMAGE_TYPES]
        raise ArgumentValueError(option_error_text("image_type", image_type, names))
    del file_root
    return Spec(DALIDataType.UINT8, 4, "FHWC")


@dataclass(frozen=True, eq=False, slots=True)
class _Sequences(Entries[list[str]]):
    """The paths of each sequence.

    Attributes:
        files: all frames.
        starts: index of the first frame of each sequence.
        offsets: offsets of the frames of a sequence from its first one.
    """

    files: FileList
    starts: np.ndarray[Any, Any]
    offsets: range

    def __len__(self) -> int:
        return len(self.starts)

    def _entry(self, number: int) -> list[str]:
        start = int(self.starts[number])
        return [self.files[start + offset].path for offset in self.offsets]


@sequence.index
def _(file_root: str, sequence_length: int, step: int, stride: int, **_without_effect: object) -> _Sequences:
    files = files_in_class_folders(file_root, dir_filters=_VISIBLE_FOLDERS, file_filters=_VISIBLE_IMAGES)
    counts = np.bincount(files.labels)
    reach = (sequence_length - 1) * stride
    starts: list[int] = []
    first = 0
    for count in counts.tolist():
        starts += range(first, first + count - reach, step)
        first += count
    if not starts:
        raise ReaderError(
            f"no video in {file_root!r} is long enough: a sequence spans {counted(reach + 1, 'frame')}; the longest "
            f"has {counts.max()}."
        )
    return _Sequences(files, np.array(starts, np.int64), range(0, reach + 1, stride))


@sequence.read
def _(entry: list[str], *, image_type: DALIImageType) -> tuple[np.ndarray[Any, Any], ...]:
    clip: np.ndarray[Any, Any] | None = None
    for number, path in enumerate(entry):
        data = read_file(path)
        try:
            shape = image_shape(data, image_type)
            if clip is None:
                check_shape((len(entry), *shape), 1, "the sequence")
                clip = np.empty((len(entry), *shape), np.uint8)
            elif shape != clip.shape[1:]:
                raise ReaderError(
                    f"the frames of a sequence must have the same shape: {entry[0]!r} has {clip.shape[1:]}, "
                    f"{path!r} has {shape}."
                )
            decode_image(data, image_type, DALIDataType.UINT8, out=clip[number])
        except DecodeError as error:
            error.locate(origin=path)
            raise
    assert clip is not None, "dalify bug: an empty sequence"
    return (clip,)


@sequence.identity()
def _(entry: list[str]) -> tuple[str, str]:
    keys, states = zip(*map(file_identity, entry), strict=True)
    return "\0".join(keys), " ".join(states)


@sequence.origin
def _(entry: list[str]) -> str:
    return entry[0]
