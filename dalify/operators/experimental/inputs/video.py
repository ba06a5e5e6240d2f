"""Videos that are fed by hand and come out in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DecodeError, SourceError, option_error_text
from dalify.codecs.video import Video, av
from dalify.codecs.video_frames import FrameConverter
from dalify.codecs.video_sequence import FILLED, fill_sequence
from dalify.data import DALIDataType
from dalify.registry import Spec, operator

_POLICIES = ("partial", "pad")


@operator(mixed=True, needs=(av,))
def video(
    *,
    sequence_length: int,
    affine: bool = True,
    blocking: bool = False,
    last_sequence_policy: str = "partial",
    no_copy: bool = False,
) -> Spec:
    """Take videos that are fed with ``Pipeline.feed_input``, one at a time, and give their frames sequence by sequence.

    For videos that are too long to be decoded in one piece. An iteration gives as many sequences as the batch size
    says; where a video ends, it gives fewer, and the next iteration begins the next video that was fed. Frames are
    decoded when their iteration begins. Needs the extra ``dalify[video]``.

    Args:
        sequence_length: frames of a sequence.
        affine: accepted, without effect.
        blocking: whether a run waits for data that have not been fed yet; accepted: a missing feed is an error.
        last_sequence_policy: the last sequence of a video is shorter (``"partial"``) or ends with black (``"pad"``).
        no_copy: use the data where they lie while they are being fed; afterwards they are not needed.

    Returns:
        uint8 ``[frames, height, width, 3]``, RGB, layout FHWC.

    Raises:
        DecodeError: when it is fed, no video; when it is run, damaged data.
        SourceError: several videos fed at once, of which DALI takes the first and drops the others in silence.
        ArgumentValueError: no such policy, or sequences without frames.

    Example:
        >>> clips = fn.experimental.inputs.video(name="film", sequence_length=16)
        >>> pipe.feed_input("film", [np.fromfile("film.mp4", np.uint8)])  # doctest: +SKIP
    """
    del affine, blocking, no_copy
    if sequence_length < 1:
        raise ArgumentValueError(f"sequence_length must be at least 1; got {sequence_length}.")
    if last_sequence_policy not in _POLICIES:
        raise ArgumentValueError(option_error_text("last_sequence_policy", last_sequence_policy, _POLICIES))
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
            f"{len(samples)} videos were fed at once.", hint="Feed one after the other: each makes batches of its own."
        )
    (data,) = samples
    if data.ndim != 1 or data.dtype not in (np.uint8, np.int8):
        raise SourceError(
            f"a video is fed as its bytes, one-dimensional of type UINT8; got {data.dtype} {data.shape}.",
            hint='feed_input(name, [np.fromfile("film.mp4", np.uint8)])',
        )
    film = Video(data.tobytes())
    count = film.table.count
    if not count:
        raise DecodeError("the video has no frames.")
    starts = range(0, count, sequence_length)
    converter = FrameConverter()
    return [
        partial(_batch, film, converter, starts[at : at + batch_size], sequence_length, last_sequence_policy == "pad")
        for at in range(0, len(starts), batch_size)
    ]


def _batch(film: Video, converter: FrameConverter, starts: Sequence[int], length: int, pads: bool) -> list[Any]:
    """Decode sequences that begin at ``starts``."""
    count = film.table.count
    missing = 0 if pads else max(0, starts[-1] + length - count)
    sizes = [length] * (len(starts) - 1) + [length - missing]
    shape = (film.height, film.width, 3)
    uniform = not missing or len(starts) == 1
    clips: Any = (
        np.empty((len(starts), sizes[-1], *shape), np.uint8)
        if uniform
        else [np.empty((size, *shape), np.uint8) for size in sizes]
    )
    for clip, start in zip(clips, starts, strict=True):
        numbers = np.arange(start, start + len(clip), dtype=np.int64)
        fill_sequence(clip, film, np.where(numbers < count, numbers, FILLED), (0,), converter)
    return [clips]
