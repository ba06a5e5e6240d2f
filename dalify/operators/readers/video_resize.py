"""Read sequences of frames from videos, and resize them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from dalify.base.limits import check_shape
from dalify.codecs.video import av
from dalify.codecs.video_index import VideoEntry, VideoIndex
from dalify.data import DALIInterpType, Samples
from dalify.kernels.images.resample_axes import resample_axes
from dalify.kernels.images.resize_geometry import ResizeGeometry, resize_geometry
from dalify.parameter_groups.resize import Filters, ResizeSize
from dalify.parameter_groups.video import VideoClips
from dalify.registry import PerSample, Spec, reader


@dataclass
class _FrameSize(ResizeSize):
    """Extents of the frames, which may differ between sequences."""

    roi_start: PerSample[list[float]] | None = None
    roi_end: PerSample[list[float]] | None = None
    size: PerSample[list[float]] | None = None
    resize_shorter: PerSample[float] | None = None
    resize_longer: PerSample[float] | None = None
    resize_x: PerSample[float] | None = None
    resize_y: PerSample[float] | None = None
    resize_z: PerSample[float] | None = None

    def geometry(self, extents: Sequence[int]) -> ResizeGeometry:
        """Return size and source window of the frames of one sequence."""
        return resize_geometry(extents, **self.options, **{name: _to_numbers(v) for name, v in self.shaping.items()})


@dataclass
class _FrameFilters(Filters):
    """Filters of the frames."""

    interp_type: PerSample[DALIInterpType] = DALIInterpType.INTERP_LINEAR  # pyright: ignore[reportIncompatibleVariableOverride]


@reader(outputs=VideoClips.count, needs=(av,), alphabetical=True)
def video_resize(*, videos: VideoClips, target: _FrameSize, filters: _FrameFilters) -> tuple[Spec, ...]:
    """Read sequences of frames from videos and resize each frame: ``fn.readers.video`` and ``fn.resize`` combined.

    Args:
        dtype: UINT8, or FLOAT, which is not rounded.

    Returns:
        video: ``[frames, height, width, 3]``, layout FHWC.
        label: int32 ``[1]``, if there are labels.
        frame_num: int32 ``[1]`` or ``[frames]``, if requested.
        timestamps: float64 ``[frames]``, seconds, if requested.

    Raises:
        ReaderError: as in ``fn.readers.video``.
        DecodeError: damaged data; names the file.
        ArgumentValueError: no size, or several; otherwise as in ``fn.readers.video``.

    Example:
        >>> clips = fn.readers.video_resize(filenames=videos, sequence_length=16, resize_shorter=256)  # doctest: +SKIP
    """
    videos.check()
    target.check()
    return videos.specs


@video_resize.index
def _(videos: VideoClips, **_target: object) -> VideoIndex:
    return videos.index(videos.division)


@video_resize.read
def _(
    entry: VideoEntry, *, videos: VideoClips, target: _FrameSize, filters: _FrameFilters
) -> tuple[np.ndarray[Any, Any], ...]:
    frames, *others = videos.read(entry)
    geometry = target.geometry(frames.shape[1:3])
    shape = (len(frames), *geometry.size, 3)
    check_shape(shape, videos.dtype.numpy.itemsize, "a result")
    out = np.empty((1, *shape), videos.dtype.numpy)
    kinds = {"interp_type": filters.interp_type, "min_filter": filters.min_filter, "mag_filter": filters.mag_filter}
    arrays = {name: None if kind is None else np.array([kind], np.int32) for name, kind in kinds.items()}
    clip = Samples.of_dense(np.ascontiguousarray(frames)[None])
    resample_axes(
        Samples.of_dense(out), clip, "FHWC", geometry.start, geometry.end, antialias=filters.antialias, **arrays
    )
    if videos.normalized:
        out *= np.float32(1 / 255)
    return out[0], *others


def _to_numbers(value: Any) -> Any:
    """Convert an argument of a sample to a number or a tuple of numbers."""
    if value is None:
        return None
    return tuple(value.tolist()) if np.ndim(value) else float(value)


@video_resize.substitute
def _(entry: VideoEntry, *, videos: VideoClips) -> tuple[np.ndarray[Any, Any] | None, ...]:
    return videos.blank(entry)


video_resize.origin(attrgetter("path"))
