"""Read sequences of frames from videos, and resize them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from dalify.base.limits import check_shape
from dalify.codecs.video import av
from dalify.codecs.video_index import VideoEntry, VideoIndex
from dalify.codecs.video_reader import blank_clip, clips_of, read_clip, reader_outputs, reader_specs
from dalify.data import DALIDataType, DALIInterpType
from dalify.data.samples import Samples
from dalify.formats.files.video_list import videos_of
from dalify.kernels.images.resample_axes import resample_axes
from dalify.kernels.images.resize_geometry import check_resize_arguments, resize_geometry
from dalify.parameter_groups.video import VideoSequences
from dalify.registry import PerSample, Spec, reader

_SIZES = ("size", "resize_shorter", "resize_longer", "resize_x", "resize_y", "resize_z", "roi_start", "roi_end")


@reader(outputs=reader_outputs, needs=(av,), alphabetical=True)
def video_resize(
    *,
    videos: VideoSequences,
    additional_decode_surfaces: int = 2,
    antialias: bool = True,
    channels: int = 3,
    dtype: DALIDataType = DALIDataType.UINT8,
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    interp_type: PerSample[DALIInterpType] = DALIInterpType.INTERP_LINEAR,
    mag_filter: PerSample[DALIInterpType] | None = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    mode: str = "default",
    normalized: bool = False,
    pad_sequences: bool = False,
    resize_longer: PerSample[float] | None = None,
    resize_shorter: PerSample[float] | None = None,
    resize_x: PerSample[float] | None = None,
    resize_y: PerSample[float] | None = None,
    resize_z: PerSample[float] | None = None,
    roi_end: PerSample[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] | None = None,
    size: PerSample[list[float]] | None = None,
    skip_vfr_check: bool = False,
    subpixel_scale: bool = True,
) -> tuple[Spec, ...]:
    """Read sequences of frames from videos and resize each frame: ``fn.readers.video`` and ``fn.resize`` combined.

    Args:
        additional_decode_surfaces: accepted but ignored.
        antialias: as in ``fn.resize``, like all arguments not described here.
        channels: 3.
        dtype: UINT8, or FLOAT, which is not rounded.
        enable_frame_num: as in ``fn.readers.video``.
        enable_timestamps: as in ``fn.readers.video``.
        file_list_frame_num: as in ``fn.readers.video``.
        file_list_include_preceding_frame: as in ``fn.readers.video``.
        interp_type: filter for downscaling and upscaling.
        labels: as in ``fn.readers.video``.
        mag_filter: filter for upscaling.
        max_size: maximum extents of the result.
        min_filter: filter for downscaling.
        mode: ``default``, ``stretch``, ``not_larger`` or ``not_smaller``.
        normalized: values from 0 to 1; FLOAT only.
        pad_sequences: as in ``fn.readers.video``.
        resize_longer: extent of the longer axis in pixels.
        resize_shorter: extent of the shorter axis in pixels.
        resize_x: extent of W in pixels.
        resize_y: extent of H in pixels.
        resize_z: extent of D, which frames do not have; 0.
        roi_end: end of the source region, height and width.
        roi_relative: the region is in fractions of the extents, 0 to 1.
        roi_start: start of the source region.
        size: height and width in pixels.
        skip_vfr_check: accepted but ignored.
        subpixel_scale: adjust the region if a computed extent is not an integer.

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
    del additional_decode_surfaces, file_list_frame_num, file_list_include_preceding_frame
    del pad_sequences, skip_vfr_check, max_size
    del antialias, interp_type, mag_filter, min_filter, roi_relative, subpixel_scale
    check_resize_arguments(
        mode=mode,
        size=size,
        resize_shorter=resize_shorter,
        resize_longer=resize_longer,
        resize_x=resize_x,
        resize_y=resize_y,
        resize_z=resize_z,
        roi_start=roi_start,
        roi_end=roi_end,
    )
    return reader_specs(dtype, channels, normalized, *videos.outputs)


@video_resize.index
def _(
    allow_outside_root: bool,
    file_list: str,
    file_root: str,
    filenames: Sequence[str],
    labels: Sequence[int] | None,
    **arguments: Any,
) -> VideoIndex:
    found = videos_of(filenames, file_root, file_list, labels, allow_outside_root=allow_outside_root)
    return clips_of(found, arguments)


@video_resize.read
def _(
    entry: VideoEntry,
    *,
    videos: VideoSequences,
    antialias: bool,
    dtype: DALIDataType,
    interp_type: Any,
    mag_filter: Any,
    max_size: Sequence[float] | None,
    min_filter: Any,
    mode: str,
    normalized: bool,
    resize_longer: Any,
    resize_shorter: Any,
    resize_x: Any,
    resize_y: Any,
    resize_z: Any,
    roi_end: Any,
    roi_relative: bool,
    roi_start: Any,
    size: Any,
    subpixel_scale: bool,
) -> tuple[np.ndarray[Any, Any], ...]:
    frames, *others = read_clip(entry, *videos.outputs)
    sizes = (size, resize_shorter, resize_longer, resize_x, resize_y, resize_z, roi_start, roi_end)
    shaping = {name: _to_numbers(value) for name, value in zip(_SIZES, sizes, strict=True)}
    geometry = resize_geometry(
        frames.shape[1:3],
        mode=mode,
        max_size=max_size,
        roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
        **shaping,
    )
    shape = (len(frames), *geometry.size, 3)
    check_shape(shape, dtype.numpy.itemsize, "a result")
    out = np.empty((1, *shape), dtype.numpy)
    filters = {"interp_type": interp_type, "min_filter": min_filter, "mag_filter": mag_filter}
    filters = {name: None if value is None else np.array([value], np.int32) for name, value in filters.items()}
    clip = Samples.of_dense(np.ascontiguousarray(frames)[None])
    resample_axes(Samples.of_dense(out), clip, "FHWC", geometry.start, geometry.end, antialias=antialias, **filters)
    if normalized:
        out *= np.float32(1 / 255)
    return out[0], *others


def _to_numbers(value: Any) -> Any:
    """Convert an argument of a sample to a number or a tuple of numbers."""
    if value is None:
        return None
    return tuple(value.tolist()) if np.ndim(value) else float(value)


video_resize.substitute(blank_clip)


video_resize.origin(attrgetter("path"))
