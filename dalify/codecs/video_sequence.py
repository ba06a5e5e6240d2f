"""Sequences of frames: decoding, and padding beyond the end of a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ArgumentValueError, check_option
from dalify.codecs.video import Video
from dalify.codecs.video_frames import FrameConverter

PAD_MODES = ("none", "constant", "edge", "repeat", "reflect_1001", "symmetric", "reflect_101", "reflect")
FILLED = -1
"""Frame number of a frame that is filled with a constant instead of decoded."""


def check_pad_mode(pad_mode: str) -> None:
    """Check that a padding mode exists.

    Raises:
        ArgumentValueError: the mode does not exist.
    """
    check_option("pad_mode", pad_mode, PAD_MODES)


def check_fill_value(fill_value: Sequence[int]) -> None:
    """Check that a fill value is a color.

    Raises:
        ArgumentValueError: a value is outside [0, 255], or there are neither one nor three values.
    """
    if len(fill_value) not in (1, 3):
        raise ArgumentValueError(f"fill_value must have 1 or 3 values (one per channel); got {len(fill_value)}.")
    if not all(0 <= value <= 255 for value in fill_value):
        raise ArgumentValueError(f"fill_value must be in [0, 255]; got {list(fill_value)}.")


def pad_numbers(numbers: NDArray[np.int64], count: int, pad_mode: str) -> NDArray[np.int64]:
    """Replace frame numbers beyond the last frame.

    Args:
        numbers: frame numbers, not negative.
        count: number of frames, at least 1.
        pad_mode: ``none`` drops them; ``constant`` returns FILLED; ``edge`` or ``repeat`` repeats the last frame;
            ``reflect_1001`` or ``symmetric`` mirrors including the last frame; ``reflect_101`` or ``reflect`` mirrors
            without repeating it.
    """
    if pad_mode == "none":
        return numbers[numbers < count]
    if pad_mode == "constant":
        return np.where(numbers < count, numbers, FILLED)
    if pad_mode in ("edge", "repeat"):
        return np.minimum(numbers, count - 1)
    if pad_mode in ("reflect_1001", "symmetric"):
        folded = numbers % (2 * count)
        return np.minimum(folded, 2 * count - 1 - folded)
    folded = numbers % max(1, 2 * (count - 1))
    return np.minimum(folded, max(1, 2 * (count - 1)) - folded) if count > 1 else folded


def fill_sequence(
    out: np.ndarray[Any, Any],
    video: Video,
    numbers: NDArray[np.int64],
    fill_value: Sequence[int],
    converter: FrameConverter,
) -> None:
    """Decode a sequence.

    Args:
        out: uint8 ``[frames, height, width, 3]``, output.
        video: the video.
        numbers: frame numbers, in any order; FILLED for frames set to ``fill_value``.
        fill_value: one value, or one per channel.
        converter: converter for the frames of this video.

    Raises:
        DecodeError: a frame cannot be decoded.
    """
    out[numbers == FILLED] = np.asarray(fill_value, np.uint8)
    wanted, places = np.unique(numbers, return_inverse=True)
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=len(wanted))).tolist()
    where = {
        number: order[start:end].tolist() for number, start, end in zip(wanted.tolist(), [0, *ends], ends, strict=False)
    }
    for number, frame in video.frames([number for number in where if number != FILLED]):
        first, *others = where[number]
        converter.fill(out[first], frame)
        for place in others:
            out[place] = out[first]
