"""Clips of videos: a reader that selects their frames, and their decoder.

A clip is specified by the numbers of its frames, which only the video can resolve.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, DecodeError, LayoutError, ReaderError, option_error_text
from dalify.base.threads import in_parallel
from dalify.base.wording import counted
from dalify.codecs import Video
from dalify.data import DALIDataType
from dalify.mediapipe.media_types import clipSampler, ftype, imgtype, randomCropType, to_dalify_type
from dalify.mediapipe.node import Lowering, Value, extents, operator
from dalify.mediapipe.nodes.decoders import (
    RANDOM_CROPS,
    RandomWindows,
    check_output,
    crop_pixels,
    filter_of,
    resize_and_center_crop,
)
from dalify.mediapipe.nodes.readers import LabeledFiles, path_rows
from dalify.mediapipe.slicing import IndexedReader, Indices, SlicedOrder, SliceOptions

_SAMPLERS = {clipSampler.RANDOM_SAMPLER: "RANDOM_SAMPLER", clipSampler.UNIFORM_SAMPLER: "UNIFORM_SAMPLER"}
_IMAGE_AXES = [1, 2]


def _frames_at_rate(path: str, target_rate: float) -> Indices:
    """Return the numbers of the frames of a video at a frame rate; 0 for all frames."""
    try:
        with closing(Video(path)) as video:
            if not target_rate:
                return np.arange(video.quick_count)
            table = video.table
    except DecodeError as error:
        raise ReaderError(f"{path}: {error}") from None
    if table.count < 2:
        return np.arange(table.count)
    first, last = table.seconds(np.array([0, table.count - 1]))
    if not last > first:
        raise ReaderError(f"{path} has no timestamps, so target_frame_rate cannot be used.")
    step = (table.count - 1) / (last - first) / target_rate
    return np.floor(np.arange(int(table.count / step)) * step + 1e-6).astype(np.int64)


class _Clips:
    """The clips of one video, in the order of their first frames."""

    def __init__(self, path: str, frames: int, distance: int, target_rate: float, start: int | None) -> None:
        numbers = _frames_at_rate(path, target_rate)
        if start is not None:
            numbers = numbers[start:]
        firsts = np.arange(0, len(numbers) - frames + 1, distance)
        self._firsts = firsts if start is None else firsts[:1]
        self._numbers = numbers
        self._frames = frames

    def __len__(self) -> int:
        return len(self._firsts)

    def frames(self, clip: int) -> Indices:
        """Return the numbers of the frames of a clip."""
        first = self._firsts[clip]
        return self._numbers[first : first + self._frames]

    def selected(self, maximum: int, sampler: int, random: np.random.Generator) -> Indices:
        """Return the clips of this video for an epoch."""
        count = len(self)
        if sampler == clipSampler.RANDOM_SAMPLER:
            return np.sort(random.permutation(count)[:maximum])
        return np.floor(np.linspace(0, count - 1, min(maximum, count))).astype(np.int64)


class _ClipReader(IndexedReader):
    """Items are clips, which are selected from their videos again in each epoch."""

    def __init__(
        self,
        order: SlicedOrder,
        videos: list[tuple[str, np.generic, _Clips]],
        maximum: int,
        sampler: int,
    ) -> None:
        super().__init__(order, self._clips)
        self._videos = videos
        self._maximum = maximum
        self._sampler = sampler
        # The same selection on all devices: each reads its own items of it.
        self._selection_random = np.random.default_rng(order.seed)
        self._selected: list[tuple[str, np.generic, Indices]] = []

    def start_epoch(self) -> None:
        super().start_epoch()
        self._selected = [
            (path, label, clips.frames(clip))
            for path, label, clips in self._videos
            for clip in clips.selected(self._maximum, self._sampler, self._selection_random)
        ]

    def _clips(self, items: Indices, _: int) -> tuple[Any, ...]:
        selected = [self._selected[item] for item in items]
        numbers = np.stack([each[2] for each in selected]).astype(np.int32)
        labels = np.array([each[1] for each in selected])
        return path_rows([each[0] for each in selected]), labels, numbers - numbers[:, :1], numbers[:, :1]


@operator(outputs=4)
def ReadVideoDatasetFromDir(
    context: Lowering,
    /,
    *,
    files: LabeledFiles,
    format: str = "mp4",
    seed: int | None = 0,
    slices: SliceOptions,
    frames_per_clip: int = 1,
    clips_per_video: int = 1,
    target_frame_rate: float = 0,
    step_between_clips: int = 1,
    sampler: int = clipSampler.RANDOM_SAMPLER,
    fixed_clip_mode: bool = False,
    start_frame_index: int = 0,
) -> tuple[Value, ...]:
    """Read clips of the videos in a folder of class folders. Videos that are too short for a clip are skipped.

    Each video is opened when the pipe is built, to count its frames. Requires the extra ``dalify[video]``.

    Args:
        context: the graph.
        files: the videos and their classes.
        format: extension of the files, case-insensitive.
        seed: seed of the order and the selection of clips.
        slices: order, slice and padding.
        frames_per_clip: number of frames of a clip.
        clips_per_video: maximum number of clips of a video in an epoch.
        target_frame_rate: frames per second of the clips: frames are dropped or repeated; 0 for all frames.
        step_between_clips: frames from the start of one clip to the start of the next.
        sampler: ``clipSampler.RANDOM_SAMPLER``: other clips in each epoch; ``UNIFORM_SAMPLER``: evenly spaced ones.
        fixed_clip_mode: one clip of each video, which starts at `start_frame_index`.
        start_frame_index: number of its first frame, at the target rate.

    Returns:
        paths; labels; for ``VideoDecoder``: int32 ``[N, frames]``, frames counted from the first one of the clip, and
        int32 ``[N, 1]``, the number of the first frame in the video.
    """
    if sampler not in _SAMPLERS:
        names = [f"clipSampler.{name}" for name in _SAMPLERS.values()]
        raise ArgumentValueError(option_error_text("sampler", sampler, names))
    if min(frames_per_clip, clips_per_video, step_between_clips) < 1 or min(target_frame_rate, start_frame_index) < 0:
        raise ArgumentValueError(
            "frames_per_clip, clips_per_video and step_between_clips must be at least 1, target_frame_rate and "
            "start_frame_index at least 0."
        )
    paths, labels = files.found(format)
    start = start_frame_index if fixed_clip_mode else None
    # Opening a video waits for the disk, or runs without the GIL.
    found = in_parallel(
        [partial(_Clips, path, frames_per_clip, step_between_clips, target_frame_rate, start) for path in paths]
    )
    videos = [video for video in zip(paths, labels, found, strict=True) if len(video[2])]
    if not videos:
        raise ReaderError(
            f"none of the {len(paths)} videos has {counted(frames_per_clip, 'frame')} from start_frame_index on."
        )
    maximum = 1 if fixed_clip_mode else clips_per_video
    order = SlicedOrder(
        sum(min(maximum, len(clips)) for _, _, clips in videos),
        context.batch_size,
        slices,
        seed=seed,
        pipe_seed=context.seed,
    )
    reader = _ClipReader(order, videos, maximum, sampler)
    number = DALIDataType.INT32
    dtypes = [DALIDataType.UINT8, to_dalify_type(files.label_dtype), number, number]
    nodes = context.read(reader, 4, dtype=dtypes, ndim=[1, 0, 1, 1])
    kinds = ("path", "", "frames", "first")
    return tuple(Value(node, kind=each) for node, each in zip(nodes, kinds, strict=True))


@operator(inputs=(1, 3))
def VideoDecoder(
    *xs: Value,
    resize: Sequence[int],
    output_format: str = imgtype.RGB_P,
    crop_after_resize: Sequence[int] | None = None,
    resampling_mode: int = ftype.BI_LINEAR,
    random_crop_type: int = randomCropType.NO_RANDOM_CROP,
    windows: RandomWindows,
    frames_per_clip: int = 1,
    max_frame_vid: int = 1,
    dpb_size: int = 16,
) -> Value:
    """Decode clips, crop the same part of all their frames, and resize them.

    Args:
        *xs: paths; and the two results of ``ReadVideoDatasetFromDir`` that specify the frames, in any order. Without
            them, clips start at the beginning of their videos.
        resize: [width, height] of the result.
        output_format: ``imgtype.RGB_P`` (FCHW, in NumPy's order) or ``imgtype.RGB_I`` (FHWC).
        crop_after_resize: [left, top, width, height] in pixels, cropped from the resized frames.
        resampling_mode: LINEAR, BI_LINEAR, LANCZOS, NEAREST or BICUBIC of ``ftype``.
        random_crop_type: see ``ImageDecoder``.
        windows: area, aspect ratio and seed of random windows.
        frames_per_clip: number of frames of a clip, if no input specifies them.
        max_frame_vid: accepted but ignored: there are no buffers of fixed size.
        dpb_size: accepted but ignored.

    Returns:
        uint8 clips.
    """
    del max_frame_vid, dpb_size
    height, width = extents(resize, 2, "resize")
    check_output(output_format, random_crop_type)
    by_kind = {value.kind: value.node for value in xs}
    path = by_kind.pop("path", None)
    if path is None or by_kind.keys() not in (set(), {"frames", "first"}):
        raise LayoutError(
            "a clip decoder needs the paths of a reader, alone or with both results that specify the frames.",
            hint="files, labels, frames, first = reader(); decoder(files, frames, first)",
        )
    encoded = dali.io.file.read(path)
    if by_kind:
        clip = dali.decoders.video(encoded, frames=by_kind["frames"] + by_kind["first"])
    else:
        clip = dali.decoders.video(encoded, sequence_length=frames_per_clip, pad_mode="edge")
    interpolation = filter_of(resampling_mode)
    if random_crop_type in RANDOM_CROPS:
        anchor, size = dali.random_crop_generator(clip.shape()[1:3], **windows.arguments())
        clip = dali.slice(clip, start=anchor, shape=size, axes=_IMAGE_AXES)
    if random_crop_type == randomCropType.CENTER_CROP:
        clip = resize_and_center_crop(clip, height, width, interpolation)
    else:
        clip = dali.resize(clip, size=[height, width], interp_type=interpolation)
    clip = crop_pixels(clip, crop_after_resize, _IMAGE_AXES)
    if output_format == imgtype.RGB_P:
        return Value(dali.transpose(clip, perm=[0, 3, 1, 2]), "FCHW")
    return Value(clip, "FHWC")
