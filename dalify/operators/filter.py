"""Filter images and volumes with a user-defined matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError, check_option
from dalify.base.small_arrays import counting
from dalify.base.wording import counted
from dalify.data import DALIDataType, DeviceSamples, Samples, Spec
from dalify.kernels.arrays.joined import converted, joined
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.convolve import data_axes
from dalify.kernels.images.correlate import correlate_samples
from dalify.kernels.images.correlate_torch import correlate_samples_torch
from dalify.kernels.images.frames import default_layout, folded_frames, per_axis_of_samples, per_frame_of_samples
from dalify.registry import AnySamples, PerSampleOrFrame, Vectors, operator

_BORDERS = ("reflect_101", "reflect_1001", "wrap", "clamp", "constant")
# DALI's aliases.
_ALIASES = {
    **dict.fromkeys(("const", "fill", "pad"), "constant"),
    "edge": "clamp",
    "101": "reflect_101",
    **dict.fromkeys(("1001", "reflect"), "reflect_1001"),
}
_MODES = ("same", "valid")
_IMAGE_AXES = 2


@operator
def filter(
    data: Spec,
    filter: Spec,
    fill_value: Spec | None = None,
    /,
    *,
    anchor: PerSampleOrFrame[int | list[int]] = -1,
    border: str = "reflect_101",
    dtype: DALIDataType | None = None,
    mode: str = "same",
) -> Spec:
    """Filter images with a matrix, or volumes with a three-dimensional array.

    ``out[y, x] = sum over i, j of filter[i, j] * data[y + i - anchor_y, x + j - anchor_x]``: a correlation, the filter
    is not mirrored. Sums are in float32 and rounded once. Volumes, which DALI supports only on the GPU, have an
    additional z.

    Args:
        data: images or volumes with the data axes H and W, or D, H and W, C first or last, F first; any numeric
            type.
        filter: float32 [r, s], or [q, r, s] for volumes; [F, …] for frames.
        fill_value: value outside with border "constant", one number per sample or per frame; by default 0.
        anchor: filter element aligned with the output pixel, row and column (depth first); -1 for the center, rounded
            down. Can be per frame. Ignored in mode "valid".
        border: values outside the data: "reflect_101" or "101" (dcb|abcd), "reflect_1001", "1001" or "reflect"
            (cba|abcd), "wrap", "clamp", "constant" or "fill".
        dtype: the input's type (default) or FLOAT.
        mode: "same", or "valid" for only the positions where the whole filter is inside.

    Returns:
        Same layout; with mode "valid", extents are smaller by the extents of the filter minus 1.

    Raises:
        LayoutError: the data does not have two or three adjacent data axes.
        ShapeError: a filter with the wrong number of axes, or larger than the image in mode "valid".
        ArgumentValueError: an unknown option, or an anchor outside the filter.
        DTypeError: `dtype` is neither the input's type nor FLOAT.

    Example:
        >>> images = fn.filter(images, np.full((3, 3), 1 / 9, np.float32))  # doctest: +SKIP
    """
    for name, value, options in (("border", border, (*_BORDERS, *_ALIASES)), ("mode", mode, _MODES)):
        check_option(name, value, options)
    if dtype not in (None, data.dtype, DALIDataType.FLOAT):
        raise DTypeError(
            f"dtype must be types.FLOAT, the type of the input ({data.dtype_text}), or omitted; got {dtype.text}."
        )
    result = data.replace(dtype=data.dtype if dtype is None else dtype)
    first, axes = data_axes(default_layout(data), data.ndim or 0)
    if axes < _IMAGE_AXES:
        raise LayoutError(f"the input must have 2 or 3 data axes; layout {data.layout!r} has {axes}.")
    if data.shape is None or filter.shape is None:
        return result
    if len(filter.shape) not in (axes, axes + 1):
        raise ShapeError(f"the filter must have {axes} axes, one per data axis; got the shape {filter.shape}.")
    if 0 in filter.shape:
        raise ShapeError(f"the filter must have at least one element; got the shape {filter.shape}.")
    if mode == "same":
        return result
    shape = list(data.shape)
    for axis, extent in zip(range(first, first + axes), filter.shape[-axes:], strict=True):
        shape[axis] += 1 - extent
        if shape[axis] < 1:
            raise ShapeError(
                f"the filter {filter.shape} is larger than the image {data.shape}; mode 'valid' returns no pixels."
            )
    return result.replace(shape=tuple(shape))


@filter.cpu_samples
@filter.gpu_samples
def _(
    out: AnySamples,
    data: AnySamples,
    filter: AnySamples,
    fill_value: AnySamples | None,
    *,
    anchor: Vectors,
    border: str,
    mode: str,
    spec: Spec,
) -> None:
    layout = default_layout(spec)
    first, axes = data_axes(layout, data.ndim)
    border = border if border in _BORDERS else _ALIASES[border]
    filters, owners = _filters_of_frames(filter, data, layout, axes)
    anchors = np.zeros((len(filters), axes), np.int64)
    if mode == "same":
        given = per_axis_of_samples(anchor, data, layout, "anchor", axes)
        anchors = _anchors_of_frames(given, filters.shapes, owners)
    target, source, first = folded_frames(out, layout), folded_frames(data, layout), first - layout.startswith("F")
    if isinstance(data, Samples):
        fills = _fills(fill_value, data, layout, len(filters))
        correlate_samples(target, source, converted(filters, np.dtype(np.float32)), anchors, border, fills, first)
    else:
        correlate_samples_torch(target, source, filters, anchors, border, _fills_torch(fill_value, data, layout), first)


def _filters_of_frames(filters: Any, data: Any, layout: str, axes: int) -> tuple[Any, np.ndarray]:
    """Return the filter of each frame of all samples, without a copy, and int64 [frames]: the sample of each."""
    counts = data.shapes[:, 0] if layout.startswith("F") else np.ones(len(data), np.int64)
    given = filters.shapes[:, :-axes].prod(1)
    wrong = (given != 1) & (given != counts)
    if wrong.any():
        n = int(wrong.argmax())
        raise ShapeError(f"the filter has {counted(given[n], 'frame')}; the input has {counts[n]}.", sample=n)
    owners = np.repeat(counting(len(counts)), counts)
    frames = counting(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    stack, _ = filters.folded(filters.ndim - axes)
    return stack.take((np.cumsum(given) - given)[owners] + np.where(given[owners] == 1, 0, frames)), owners


def _anchors_of_frames(anchors: np.ndarray, sizes: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return anchors int64 [frames, axes], the center where -1 is given."""
    anchors = np.where(anchors == -1, sizes // 2, anchors).astype(np.int64)
    wrong = ((anchors < 0) | (anchors >= sizes)).any(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        extents = " x ".join(map(str, sizes[n].tolist()))
        text = f"anchor must be inside the filter of {extents}; got {anchors[n].tolist()}."
        raise ArgumentValueError(text, sample=int(owners[n]))
    return anchors


def _fills(fill_value: Any, data: Samples, layout: str, count: int) -> np.ndarray:
    """Return the fill value of each of `count` frames, float32."""
    if fill_value is None:
        return np.zeros(count, np.float32)
    values: Any = joined(fill_value).astype(np.float32)
    if not fill_value.is_uniform:
        values = np.split(values, np.cumsum(fill_value.shapes.prod(1))[:-1])
    values = [one.reshape(*shape, 1) for one, shape in zip(values, fill_value.shapes.tolist(), strict=True)]
    return per_frame_of_samples(values, data, layout, "fill_value")


def _fills_torch(fill_value: Any, data: DeviceSamples, layout: str) -> Any:
    """Return the fill value of each frame, float32 on the device; None for 0."""
    if fill_value is None:
        return None
    shapes = fill_value.shapes.tolist()
    places = [
        start + np.arange(math.prod(shape)).reshape(*shape, 1)
        for start, shape in zip(fill_value.offsets, shapes, strict=True)
    ]
    index = per_frame_of_samples(places, data, layout, "fill_value")
    return fill_value.block.float().index_select(0, uploaded(index, data.device))
