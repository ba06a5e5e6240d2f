"""Decode videos passed to ``feed_input`` into sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DecodeError, SourceError, check_option
from dalify.codecs.video import Video, av
from dalify.codecs.video_frames import FrameConverter
from dalify.codecs.video_sequence import FILLED, fill_sequence
from dalify.data import DALIDataType
from dalify.registry import Spec, fed_source

_POLICIES = ("partial", "pad")


@fed_source(mixed=True, needs=(av,))
def video(
    *,
    sequence_length: int,
    affine: bool = True,
    blocking: bool = False,
    last_sequence_policy: str = "partial",
    no_copy: bool = False,
) -> Spec:
    """Decode videos that are passed to ``Pipeline.feed_input``, one at a time, into sequences of frames.

    For videos that are too long to be decoded at once. Each iteration returns as many sequences as the batch size, or
    fewer at the end of a video; the next iteration then starts with the next video. Frames are decoded when their
    iteration starts. Needs the extra ``dalify[video]``.

    Args:
        sequence_length: number of frames per sequence.
        affine: accepted but ignored.
        blocking: wait until data is fed; otherwise, running without fed data is an error.
        last_sequence_policy: the last sequence of a video is shorter (``"partial"``) or ends with black (``"pad"``).
        no_copy: accepted but ignored: the data is only read while it is being fed.

    Returns:
        uint8 ``[frames, height, width, 3]``, RGB, layout FHWC.

    Raises:
        DecodeError: not a video (when fed), or damaged data (when run).
        SourceError: several videos are fed at once; DALI silently uses only the first.
        ArgumentValueError: an unknown policy, or an empty sequence.

    Example:
        >>> clips = fn.experimental.inputs.video(name="video", sequence_length=16)
        >>> pipe.feed_input("video", [np.fromfile("video.mp4", np.uint8)])  # doctest: +SKIP
    """
    del affine, blocking, no_copy
    if sequence_length < 1:
        raise ArgumentValueError(f"sequence_length must be at least 1; got {sequence_length}.")
    check_option("last_sequence_policy", last_sequence_policy, _POLICIES)
    return Spec(DALIDataType.UINT8, 4, "FHWC")


@video.feed
def _(
    samples: Sequence[np.ndarray[Any, Any]],
    *,
    batch_size: int,
    sequence_length: int,
    last_sequence_policy: str,
    **_without_effect: object,
) -> list[Callable[[], Sequence[Any]]]:
    if len(samples) != 1:
        raise SourceError(
            f"{len(samples)} videos were fed at once; expected one.", hint="Call feed_input once for each video."
        )
    (data,) = samples
    if data.ndim != 1 or data.dtype not in (np.uint8, np.int8):
        raise SourceError(
            f"a video must be fed as its encoded bytes, one-dimensional of type uint8; got {data.dtype} {data.shape}.",
            hint='feed_input(name, [np.fromfile("video.mp4", np.uint8)])',
        )
    source = Video(data.tobytes())
    count = source.table.count
    if not count:
        raise DecodeError("the video has no frames.")
    starts = range(0, count, sequence_length)
    converter = FrameConverter()
    return [
        partial(_batch, source, converter, starts[at : at + batch_size], sequence_length, last_sequence_policy == "pad")
        for at in range(0, len(starts), batch_size)
    ]


def _batch(source: Video, converter: FrameConverter, starts: Sequence[int], length: int, pads: bool) -> list[Any]:
    """Decode the sequences that start at ``starts``."""
    count = source.table.count
    missing = 0 if pads else max(0, starts[-1] + length - count)
    sizes = [length] * (len(starts) - 1) + [length - missing]
    shape = (source.height, source.width, 3)
    uniform = not missing or len(starts) == 1
    sequences: Any = (
        np.empty((len(starts), sizes[-1], *shape), np.uint8)
        if uniform
        else [np.empty((size, *shape), np.uint8) for size in sizes]
    )
    for clip, start in zip(sequences, starts, strict=True):
        numbers = np.arange(start, start + len(clip), dtype=np.int64)
        fill_sequence(clip, source, np.where(numbers < count, numbers, FILLED), (0,), converter)
    return [sequences]
