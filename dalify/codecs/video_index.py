"""The sequences of many videos: their number, and the frames of each, for all video readers.

First, only the number of frames of a video is determined. Its table of frames is created when one of its sequences is
read, once for all threads; the tables that were used last are kept.
"""

from __future__ import annotations

import threading
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, DecodeError, ReaderError, check_option, option_error_text
from dalify.base.fork_lock import ForkLock
from dalify.base.limits import check_shape
from dalify.base.recent import Recent
from dalify.base.wording import counted
from dalify.codecs.video import Video
from dalify.codecs.video_frames import FrameConverter
from dalify.codecs.video_sequence import FILLED, check_fill_value, check_pad_mode, fill_sequence, pad_numbers
from dalify.codecs.video_table import FrameTable
from dalify.data.dtypes import DALIImageType
from dalify.data.entries import Entries

# Name -> (whether start is rounded up, whether end is rounded up).
ROUNDINGS = {
    "start_down_end_up": (False, True),
    "start_up_end_down": (True, False),
    "all_up": (True, True),
    "all_down": (False, False),
}
FRAME_NUM_KINDS = ("none", "scalar", "sequence")
# Number of videos that a thread keeps open, because the next sequence is often from the same video.
_OPEN_PER_THREAD = 4
# Memory for tables of frames: about 9,000 videos with 300 frames, or 25 videos of an hour.
_MAX_TABLE_BYTES = 64 << 20
# Attributes that are not pickled: locks, open videos, and values that other processes do not need.
_OF_PROCESS = ("_tables", "_in_progress", "_local", "_first_error")


class _Part(Protocol):
    """Protocol of ``formats.files.video_list.VideoPart``."""

    @property
    def path(self) -> str: ...
    @property
    def label(self) -> int: ...
    @property
    def start(self) -> Fraction | None: ...
    @property
    def end(self) -> Fraction | None: ...
    @property
    def place(self) -> str: ...


class Division(NamedTuple):
    """Rules for dividing videos into sequences.

    Attributes:
        sequence_length: number of frames of a sequence.
        stride: distance of successive frames of a sequence, in frames.
        step: distance of the first frames of sequences, in frames; 0 or negative for sequences without overlap.
        pad_mode: handling of an incomplete last sequence; see ``video_sequence.padded``.
        fill_value: color of padding.
        uniform: whether there is one sequence per video, with equidistant frames of the whole video.
        in_frames: whether parts are specified in frames; otherwise in seconds.
        rounding: rounding of times and fractional frames, e.g. ``start_down_end_up``.
    """

    sequence_length: int
    stride: int = 1
    step: int = -1
    pad_mode: str = "none"
    fill_value: Sequence[int] = (0,)
    uniform: bool = False
    in_frames: bool = False
    rounding: str = "start_down_end_up"

    def check(self) -> None:
        """Check the values.

        Raises:
            ArgumentValueError: an argument is invalid.
        """
        for name, value in (("sequence_length", self.sequence_length), ("stride", self.stride)):
            if value < 1:
                raise ArgumentValueError(f"{name} must be at least 1; got {value}.")
        check_option("file_list_rounding", self.rounding, ROUNDINGS)
        check_pad_mode(self.pad_mode)
        check_fill_value(self.fill_value)

    @property
    def distance(self) -> int:
        """Number of frames from the start of one sequence to the start of the next."""
        return self.step if self.step > 0 else self.sequence_length * self.stride

    def count(self, frames: int) -> int:
        """Return the number of sequences in ``frames`` frames; with padding, at most one is incomplete."""
        if self.uniform:
            return 1
        whole = self.sequence_length * self.stride
        count = 0 if frames < whole else (frames - whole) // self.distance + 1
        return count + (self.pad_mode != "none" and count * self.distance < frames)

    def numbers(self, sequence: int, first: int, end: int) -> NDArray[np.int64]:
        """Return the frame numbers of a sequence of the part ``[first, end)``; FILLED for padding."""
        if self.uniform:
            places = np.linspace(first, end - 1, self.sequence_length)
            return np.floor(places + 0.5).astype(np.int64)
        begin = first + sequence * self.distance
        return pad_numbers(begin + self.stride * np.arange(self.sequence_length, dtype=np.int64), end, self.pad_mode)


@dataclass(frozen=True, eq=False, slots=True)
class VideoEntry:
    """One sequence: its ``VideoIndex``, the index of its part, and its index within the part."""

    index: VideoIndex
    part: int
    sequence: int

    @property
    def path(self) -> str:
        """The file of the sequence."""
        return self.index.path(self)

    @property
    def label(self) -> int:
        """The label of the video."""
        return self.index.label(self)

    def read(self) -> Clip:
        """Decode the sequence; see ``VideoIndex.read``."""
        return self.index.read(self)


class Clip(NamedTuple):
    """A decoded sequence.

    Attributes:
        frames: uint8 ``[F, H, W, 3]``.
        numbers: frame numbers, int64 ``[F]``; -1 for padding with a constant.
        seconds: times of the frames, float64 ``[F]``; -1 for padding with a constant.
        label: label of the video.
    """

    frames: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    seconds: NDArray[np.float64]
    label: int


class VideoIndex(Entries[VideoEntry]):
    """The sequences of videos, in the order of the videos.

    A video that cannot be read has one sequence, and reading it fails; see ``first_error``.

    Args:
        parts: whole videos, or parts of videos.
        division: rules for dividing them.
        image_type: RGB or YCbCr.

    Raises:
        ArgumentValueError: the division is invalid.
        ReaderError: no file is a video, or a part is outside its video.
    """

    def __init__(
        self, parts: Sequence[_Part], division: Division, image_type: DALIImageType = DALIImageType.RGB
    ) -> None:
        division.check()
        if image_type not in (DALIImageType.RGB, DALIImageType.YCbCr):
            raise ArgumentValueError(option_error_text("image_type", image_type, ["types.RGB", "types.YCbCr"]))
        self._division = division
        self._image_type = image_type
        self._begin_without_videos()
        self._parts: list[_Part] = []
        self._ranges: list[tuple[int, int] | None] = []  # None: a whole video that was not opened, or cannot be read
        self._first_error: ReaderError | None = None
        frames: dict[str, int | ReaderError] = {}  # number of frames by path, or the error of the file
        counts: list[int] = []
        has_sequences = False
        for part in parts:
            bounds = None
            if not division.uniform or part.start is not None:
                bounds = self._bounds(part, frames)
                if bounds is not None and bounds[0] == bounds[1]:
                    warnings.warn(f"{part.place}: start and end are the same frame: the part is empty.", stacklevel=2)
                    continue
            self._parts.append(part)
            self._ranges.append(bounds)
            counts.append(division.count(bounds[1] - bounds[0]) if bounds is not None else 1)
            is_readable = not isinstance(frames.get(part.path), ReaderError)
            has_sequences |= is_readable and counts[-1] > 0
        self._ends = list(accumulate(counts))
        if not has_sequences:
            if self._first_error is not None:
                raise self._first_error
            longest = max((bounds[1] - bounds[0] for bounds in self._ranges if bounds), default=0)
            raise ReaderError(
                f"no video is long enough for a sequence: sequence_length={division.sequence_length} and "
                f"stride={division.stride} need {counted(division.sequence_length * division.stride, 'frame')}; the "
                f"longest has {longest}.",
                hint="Use a shorter sequence_length, or padding: pad_sequences of fn.readers.video, pad_mode of "
                "fn.experimental.readers.video.",
            )

    def _begin_without_videos(self) -> None:
        self._tables: Recent[FrameTable] = Recent(_MAX_TABLE_BYTES, size=attrgetter("nbytes"))
        self._in_progress: dict[str, ForkLock] = {}  # by path: held while its table is created
        self._local = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        """Omit the state of this process: another process opens the videos again."""
        return {name: value for name, value in vars(self).items() if name not in _OF_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _first_error=None)
        self._begin_without_videos()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def first_error(self) -> ReaderError | None:
        """The error of the first video that cannot be read."""
        return self._first_error

    def _entry(self, number: int) -> VideoEntry:
        part = bisect_right(self._ends, number)
        return VideoEntry(self, part, number - (self._ends[part - 1] if part else 0))

    def path(self, entry: VideoEntry) -> str:
        """Return the file of a sequence."""
        return self._parts[entry.part].path

    def label(self, entry: VideoEntry) -> int:
        """Return the label of the video of a sequence."""
        return self._parts[entry.part].label

    def read(self, entry: VideoEntry) -> Clip:
        """Decode a sequence.

        Raises:
            DecodeError: damaged data.
            ReaderError: the file cannot be opened or is truncated.
        """
        part = self._parts[entry.part]
        video, converter = self._video(part.path)
        try:
            count = video.table.count
            if not count:
                raise _without_frames(part.path)
            first, end = self._ranges[entry.part] or (0, count)
            numbers = self._division.numbers(entry.sequence, first, end)
            last = int(numbers.max(initial=0))
            if last >= count:
                raise ReaderError(
                    f"the video {part.path!r} is truncated: it has {counted(count, 'frame')}, but frame {last} is "
                    "needed."
                )
            shape = (len(numbers), video.height, video.width, 3)
            check_shape(shape, 1, "the sequence")
            frames = np.empty(shape, np.uint8)
            fill_sequence(frames, video, numbers, self._division.fill_value, converter)
        except Exception:
            self._videos().remove(part.path)
            raise
        seconds = np.where(numbers == FILLED, -1.0, video.table.seconds(np.maximum(numbers, 0)))
        return Clip(frames, numbers, seconds, part.label)

    def _videos(self) -> Recent[tuple[Video, FrameConverter]]:
        found = getattr(self._local, "videos", None)
        if found is None:
            found = self._local.videos = Recent(_OPEN_PER_THREAD, _close)
        return found

    def _video(self, path: str) -> tuple[Video, FrameConverter]:
        """Return this thread's instance of a video, and its converter."""
        videos = self._videos()
        found = videos.get(path)
        if found is None:
            table = self._tables.get(path)
            video = self._video_with_table(path) if table is None else _open_video(path, table)
            found = video, FrameConverter(self._image_type)
            videos.put(path, found)
        return found

    def _video_with_table(self, path: str) -> Video:
        """Open a video and create its table; other threads that need it wait for this."""
        try:
            with self._in_progress.setdefault(path, ForkLock()):
                video = _open_video(path, self._tables.get(path))
                self._tables.put(path, video.table)
                return video
        finally:
            self._in_progress.pop(path, None)

    def _bounds(self, part: _Part, frames: dict[str, int | ReaderError]) -> tuple[int, int] | None:
        """Return the first frame of a part and one past its last frame; None if the video cannot be read.

        Args:
            part: the part.
            frames: numbers of frames or errors by path, as far as they are known; the entry of this part is added.
        """
        in_seconds = part.start is not None and not self._division.in_frames
        table = self._tables.get(part.path) if in_seconds else None
        count = frames.get(part.path)
        if count is None or (isinstance(count, int) and in_seconds and table is None):
            try:
                count, table = self._measured(part, in_seconds)
            except ReaderError as error:
                count = error
                self._first_error = self._first_error or error
            frames[part.path] = count
        if isinstance(count, ReaderError):
            return None
        if part.start is None:
            return 0, count
        up_start, up_end = ROUNDINGS[self._division.rounding]
        first = _frame_at(part, part.start, count, table, up=up_start)
        end = count if part.end is None else _frame_at(part, part.end, count, table, up=up_end)
        if not 0 <= first < count or end < first:
            bounds_text = f"start {float(part.start):g}" + ("" if part.end is None else f" and end {float(part.end):g}")
            raise ReaderError(
                f"{part.place}: the video {part.path!r} has no part with {bounds_text}; it has "
                f"{counted(count, 'frame')}"
                + ("." if table is None else f" until {table.seconds(np.array([count - 1]))[0]:g} s.")
            )
        return first, min(end, count)

    def _measured(self, part: _Part, in_seconds: bool) -> tuple[int, FrameTable | None]:
        """Return the number of frames of the video of a part, and the table of frames if times are needed."""
        video = _open_video(part.path, None, part.place)
        try:
            if in_seconds:
                table = video.table
                self._tables.put(part.path, table)
                count = table.count
            else:
                table, count = None, video.quick_count
        except DecodeError as error:
            raise _unreadable(part.path, error, part.place) from None
        finally:
            video.close()
        if not count:
            raise _without_frames(part.path)
        return count, table


def _frame_at(part: _Part, bound: Fraction, count: int, table: FrameTable | None, *, up: bool) -> int:
    """Return the frame number of a bound in frames, or in seconds if there is a table."""
    if table is None:
        bound = bound + count if bound < 0 else bound
        return ceil(bound) if up else floor(bound)
    if table.frame_pts is None:
        raise ReaderError(f"{part.place}: the video {part.path!r} has no timestamps; specify the part in frames.")
    ticks = bound / table.time_base
    if bound < 0:
        return -1
    # A bound after the last frame is the end, independent of rounding.
    if ticks >= 2 * int(table.frame_pts[-1]) - int(table.frame_pts[-2 if count > 1 else -1]):
        return count
    if up:
        return int(np.searchsorted(table.frame_pts, ceil(ticks)))
    return max(0, int(np.searchsorted(table.frame_pts, floor(ticks), side="right")) - 1)


def _open_video(path: str, table: FrameTable | None, place: str = "") -> Video:
    """Open a video file.

    Args:
        path: path of the file.
        table: table of its frames, if known.
        place: line of the list file; "" without one.

    Raises:
        ReaderError: the file is not a readable video.
    """
    try:
        return Video(path, table)
    except DecodeError as error:
        raise _unreadable(path, error, place) from None


def _without_frames(path: str) -> ReaderError:
    return ReaderError(f"the video {path!r} has no frames.")


def _unreadable(path: str, error: DecodeError, place: str) -> ReaderError:
    where = f"{place}: " if place else ""
    return ReaderError(f"{where}cannot read the video {path!r}: {error.message}")


def frame_num_kind(value: object) -> str:
    """Return the frame numbers requested by ``enable_frame_num``: ``none``, ``scalar`` or ``sequence``.

    Raises:
        ArgumentValueError: the value is neither one of these nor True, False or None.
    """
    if isinstance(value, (bool, np.bool_)) or value is None:
        return "scalar" if value else "none"
    if not isinstance(value, str) or value not in FRAME_NUM_KINDS:
        raise ArgumentValueError(option_error_text("enable_frame_num", value, FRAME_NUM_KINDS))
    return str(value)


def _close(opened: tuple[Video, FrameConverter]) -> None:
    opened[0].close()
