"""Decode videos."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DecodeError, DTypeError, IndexingError, of_sample
from dalify.base.limits import check_shape, current
from dalify.base.wording import counted
from dalify.codecs.video import Video, av
from dalify.codecs.video_frames import FrameConverter
from dalify.codecs.video_sequence import check_fill_value, check_pad_mode, fill_sequence, pad_numbers
from dalify.data import Batch, DALIDataType, Samples
from dalify.registry import PerSample, Spec, Vectors, operator

# The placeholder for a video that cannot be decoded starts with this; height and width follow, 4 bytes each.
_BLANK = b"\0dalify: a blank video"
_BLANK_EXTENT = 256


@operator(mixed=True, needs=(av,))
def video(
    encoded: Spec,
    /,
    *,
    affine: bool = True,
    build_index: bool = True,
    end_frame: PerSample[int] | None = None,
    fill_value: list[int] = [0],  # noqa: B006 - the signature is the schema; the list is never mutated
    frames: PerSample[list[int]] | None = None,
    pad_mode: str = "constant",
    sequence_length: PerSample[int] | None = None,
    start_frame: PerSample[int] | None = None,
    stride: PerSample[int] | None = None,
) -> Spec:
    """Decode videos, or selected frames, of any container and codec that FFmpeg supports.

    Selected frames equal the frames of a full decode from the start. Without ``frames``, ``end_frame`` and
    ``sequence_length`` a video is decoded to its end. Needs the extra ``dalify[video]``.

    The color conversion is bit-identical to DALI's CPU decoder: it uses the BT.601 matrix even if the file specifies
    another one. DALI's CPU decoder supports only VP8, VP9 and MJPEG.

    Args:
        encoded: contents of the files, uint8 ``[bytes]``.
        affine: accepted but ignored.
        build_index: accepted but ignored: the frame index, which exact frames require, is always built.
        end_frame: number of the frame after the last one. Not with ``frames`` or ``sequence_length``.
        fill_value: padding color of ``pad_mode="constant"``: one value or three, 0 to 255.
        frames: frame numbers, in any order, with repetitions. Not with the other arguments that select frames.
        pad_mode: padding for frames after the end of the video. ``none``: no padding, the sequence is shorter
            (an error with ``frames``); ``constant``: ``fill_value``; ``edge`` or ``repeat``: the last frame;
            ``reflect_1001`` or ``symmetric``: ABC CBA; ``reflect_101`` or ``reflect``: ABC BA.
        sequence_length: number of frames, at a distance of ``stride``. Not with ``frames`` or ``end_frame``.
        start_frame: number of the first frame, from 0; it must exist in the video.
        stride: distance of the frames, at least 1.

    Returns:
        uint8 ``[frames, height, width, 3]``, RGB, layout FHWC.

    Raises:
        DecodeError: not a video, no video stream, or damaged data.
        ArgumentValueError: mutually exclusive arguments, or values out of range.
        IndexingError: a frame that the video does not have.

    Example:
        >>> encoded = fn.external_source(source=videos)  # doctest: +SKIP
        >>> clips = fn.decoders.video(encoded, start_frame=30, sequence_length=16, stride=2)  # doctest: +SKIP
    """
    if encoded.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or encoded.ndim not in (None, 1):
        raise DTypeError(f"a decoder needs encoded files: one-dimensional samples of type uint8; got {encoded!r}.")
    ranges = {"start_frame": start_frame, "sequence_length": sequence_length, "stride": stride, "end_frame": end_frame}
    given = [name for name, value in ranges.items() if value is not None]
    if frames is not None and given:
        raise ArgumentValueError(f"frames and {given[0]} are mutually exclusive: frames lists all frames.")
    if sequence_length is not None and end_frame is not None:
        raise ArgumentValueError("sequence_length and end_frame are mutually exclusive: both specify the end.")
    check_pad_mode(pad_mode)
    check_fill_value(fill_value)
    return Spec(DALIDataType.UINT8, 4, "FHWC", None, encoded.device)


def _range_frames(
    clip: Video, start: int | None, end: int | None, length: int | None, stride: int | None, pad_mode: str
) -> np.ndarray[Any, Any]:
    """Return the numbers of the frames of a sequence in a video."""
    count = clip.table.count
    first, step = start or 0, 1 if stride is None else stride
    if step < 1:
        raise ArgumentValueError(f"stride must be at least 1; got {step}.")
    if length is not None and length < 0:
        raise ArgumentValueError(f"sequence_length must not be negative; got {length}.")
    if not 0 <= first < count:
        raise IndexingError(f"start_frame is {first}, but the video has {counted(count, 'frame')}: 0 to {count - 1}.")
    if end is not None and end <= first:
        raise ArgumentValueError(f"end_frame must be greater than start_frame; got {end} and {first}.")
    if length is None:
        length = -(-((count if end is None else end) - first) // step)
    if pad_mode == "none":
        length = min(length, count)
    check_shape((length, clip.height, clip.width, 3), 1, "the sequence")
    return pad_numbers(first + step * np.arange(length, dtype=np.int64), count, pad_mode)


def _listed_frames(count: int, frames: np.ndarray[Any, Any], pad_mode: str) -> np.ndarray[Any, Any]:
    numbers = np.asarray(frames, np.int64)
    wrong = numbers[(numbers < 0) | ((numbers >= count) & (pad_mode == "none"))]
    if len(wrong):
        raise IndexingError(
            f"frames contains frame {wrong[0]}, but the video has {counted(count, 'frame')}: 0 to {count - 1}.",
            hint="With a pad_mode other than 'none', numbers after the last frame are padded." if wrong[0] > 0 else "",
        )
    return pad_numbers(numbers, count, pad_mode)


def _blank_count(start: int | None, end: int | None, length: int | None, stride: int | None) -> int:
    """Return the number of frames of a blank video: as many as the arguments specify, or one."""
    if end is not None:
        length = -(-(end - (start or 0)) // (stride or 1))
    return 1 if length is None else max(0, length)


def _blank_shape(count: int, height: int, width: int) -> tuple[int, int, int, int]:
    """Return the shape of a blank video, within the limit even if a damaged header declares more."""
    max_pixels = max(1, current().max_sample_bytes // (3 * max(count, 1)))
    if height * width > max_pixels:
        height = width = min(_BLANK_EXTENT, math.isqrt(max_pixels))
    return count, height, width, 3


@video.prepare
def _(
    encoded: Batch,
    *,
    end_frame: np.ndarray | None,
    frames: Vectors | None,
    pad_mode: str,
    sequence_length: np.ndarray | None,
    start_frame: np.ndarray | None,
    stride: np.ndarray | None,
) -> dict[str, Any]:
    shapes: list[tuple[int, ...]] = []
    opened: list[tuple[Video, np.ndarray[Any, Any]] | None] = []
    limits = (start_frame, end_frame, sequence_length, stride)
    for index, data in enumerate(encoded.samples):
        contents = data.tobytes()
        if contents.startswith(_BLANK):
            ends = [None if item is None else int(item[index]) for item in limits]
            count = _blank_count(*ends) if frames is None else len(frames[index])
            shapes.append(_blank_shape(count, *np.frombuffer(contents, np.uint32, 2, len(_BLANK)).tolist()))
            opened.append(None)
            continue
        try:
            clip = Video(contents)
            count = clip.table.count
            if not count:
                raise DecodeError("the video has no frames.")
            if frames is not None:
                numbers = _listed_frames(count, frames[index], pad_mode)
            else:
                first, last, length, step = (None if item is None else int(item[index]) for item in limits)
                numbers = _range_frames(clip, first, last, length, step, pad_mode)
        except Exception as error:
            of_sample(error, index)
            raise
        shapes.append((len(numbers), clip.height, clip.width, 3))
        opened.append((clip, numbers))
    return {"out_shapes": np.array(shapes, np.int64), "opened": opened}


@video.cpu_samples
def _(out: Samples, _encoded: Samples, *, fill_value: tuple[int, ...], opened: Any) -> None:
    for index, (target, entry) in enumerate(zip(out.arrays(), opened, strict=True)):
        try:
            if entry is None:
                target[...] = 0
                continue
            clip, numbers = entry
            fill_sequence(target, clip, numbers, fill_value, FrameConverter())
            clip.close()
        except Exception as error:
            of_sample(error, index)
            raise


@video.substitute
def _(encoded: np.ndarray) -> np.ndarray:
    height = width = _BLANK_EXTENT
    with suppress(Exception):
        clip = Video(encoded.tobytes())
        height, width = clip.height, clip.width
        clip.close()
    return np.frombuffer(_BLANK + np.array([height, width], np.uint32).tobytes(), np.uint8)
