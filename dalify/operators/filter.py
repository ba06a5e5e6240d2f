"""Filter images and volumes with a user-defined matrix."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError, option_error_text
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.convolve import bordered_indices, data_axes
from dalify.kernels.images.correlate import correlate_image
from dalify.kernels.images.correlate_torch import correlate_samples_torch
from dalify.kernels.images.frames import (
    default_layout,
    flat_frames,
    folded_frames,
    frame_count,
    per_frame,
    per_frame_of_samples,
)
from dalify.registry import PerSample, Vectors, operator

_BORDERS = {
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect_1001": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
    "clamp": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
}
# DALI's aliases.
_ALIASES = {"fill": "constant", "101": "reflect_101", "1001": "reflect_1001", "reflect": "reflect_1001"}
_MODES = ("same", "valid")
_IMAGE_AXES = 2
# Filter sizes (elements) from which OpenCV uses the discrete Fourier transform, and from which it is faster.
_DFT_FROM, _DFT_FASTER_FROM = 130, 700
_KERNEL_FROM, _KERNEL_CHANNELS = 25, 3
_MAX_CHANNELS = 128  # OpenCV's limit per call


@operator
def filter(
    data: Spec,
    filter: Spec,
    fill_value: Spec | None = None,
    /,
    *,
    anchor: PerSample[int | list[int]] = -1,
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
        if value not in options:
            raise ArgumentValueError(option_error_text(name, value, options))
    if dtype not in (None, data.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be the type of the input ({data.dtype!s}), FLOAT, or omitted; got {dtype!s}.")
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


def _planes(x: Any, layout: str, first: int, axes: int) -> Any:
    """Return a group as [N * F, planes, H, W, C], or with D before H: leading channels become planes."""
    flat = flat_frames(x, layout)
    at = first + 1 - layout.startswith("F")  # of the first data axis in the flat group
    channels = flat.shape[at + axes] if flat.ndim > at + axes else 1
    return flat.reshape(flat.shape[0], -1, *flat.shape[at : at + axes], channels)


def _filters(
    filters: np.ndarray, axes: int, anchor: Any, count: int, frames: int, mode: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return filters [N * F, r, s] or [N * F, q, r, s], and anchors [N * F, axes]."""
    stack = filters.reshape(count, -1, *filters.shape[-axes:]).astype(np.float32)
    if stack.shape[1] not in (1, frames):
        raise ShapeError(f"the filter has {stack.shape[1]} frames; the input has {frames}.")
    stack = np.broadcast_to(stack, (count, frames, *stack.shape[2:])).reshape(count * frames, *stack.shape[2:])
    size = np.array(stack.shape[1:])
    if mode == "valid":
        return stack, np.zeros((len(stack), axes), np.int64)
    given = np.stack(anchor) if isinstance(anchor, list) else anchor
    if given.shape[-1] == 1:
        given = np.repeat(given, axes, axis=-1)
    anchors = per_frame(given, frames, "anchor", axes).astype(np.int64)
    anchors = np.where(anchors == -1, size // 2, anchors)
    if (anchors < 0).any() or (anchors >= size).any():
        extents = " x ".join(map(str, size.tolist()))
        raise ArgumentValueError(f"anchor must be inside the filter of {extents}; got {anchors.tolist()}.")
    return stack, anchors


def _fills(fill_value: Any, count: int, frames: int) -> list[float]:
    if fill_value is None:
        return [0.0] * (count * frames)
    values = np.asarray(fill_value, np.float32).reshape(count, -1)
    return per_frame(values, frames, "fill_value").tolist()


def _sums(
    image: np.ndarray,
    weights: np.ndarray,
    anchor: list[int],
    border: str,
    mode: str,
    fill_value: float,
    depth: int,
    place: Any,
) -> np.ndarray:
    """Return the sums for one image, rounded if `depth` is uint8; written to `place` if possible."""
    (rows, columns), (row, column) = weights.shape, anchor
    if place is not None and _uses_own_kernel(image, weights):
        correlate_image(place, image, weights, (row, column) if mode == "same" else None, border, fill_value)
        return place
    if image.ndim > _IMAGE_AXES and image.shape[2] > _MAX_CHANNELS:
        parts = [image[..., first : first + _MAX_CHANNELS] for first in range(0, image.shape[2], _MAX_CHANNELS)]
        sums = [
            _sums(np.ascontiguousarray(part), weights, anchor, border, mode, fill_value, depth, None) for part in parts
        ]
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in sums], axis=2)
    if mode == "same" and border != "wrap" and fill_value == 0:
        # OpenCV supports these borders; it does not wrap or pad with a value other than 0.
        return cv2.filter2D(image, depth, weights, dst=place, anchor=(column, row), borderType=_BORDERS[border])
    height, width = image.shape[:2]
    if mode == "same":
        image = cv2.copyMakeBorder(
            image, row, rows - 1 - row, column, columns - 1 - column, _BORDERS[border], value=[fill_value] * 4
        )
    else:
        height, width = height + 1 - rows, width + 1 - columns
    # With the anchor in the corner, the sums that use only the image come first.
    return cv2.filter2D(image, depth, weights, anchor=(0, 0))[:height, :width]


def _uses_own_kernel(image: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether our kernel is faster than OpenCV: for direct sums of bytes and moderately large DFT sizes."""
    if weights.size >= _DFT_FROM:
        return weights.size <= _DFT_FASTER_FROM
    return weights.size >= _KERNEL_FROM and image.dtype == np.uint8 and image.shape[2] >= _KERNEL_CHANNELS


def _volume_sums(
    volume: np.ndarray,
    weights: np.ndarray,
    anchor: list[int],
    border: str,
    mode: str,
    fill_value: float,
    out_depth: int,
) -> np.ndarray:
    """Return the sums for one volume, float32: the slices are filtered with the filter's slices and added."""
    before = anchor[0] if mode == "same" else 0
    after = len(weights) - 1 - before if mode == "same" else 0
    index, outside = bordered_indices(len(volume), before, after, border)
    total: np.ndarray | None = None
    for d, matrix in enumerate(weights):
        for z in range(out_depth):
            image = np.full_like(volume[0], fill_value) if outside[z + d] else volume[index[z + d]]
            part = _sums(image, matrix, anchor[1:], border, mode, fill_value, cv2.CV_32F, None)
            if total is None:
                total = np.zeros((out_depth, *part.shape), np.float32)
            total[z] += part
    assert total is not None, "dalify bug: a filter or a result without elements"
    return total


def _arguments(spec: Spec, data: Any, out: Any) -> tuple[Any, Any, int, int]:
    """Return input and output as planes, the number of data axes and the number of frames."""
    layout = default_layout(spec)
    first, axes = data_axes(layout, len(spec.shape or ()))
    source, target = _planes(data, layout, first, axes), _planes(out, layout, first, axes)
    return source, target, axes, len(source) // len(data)


@filter.cpu
def _(
    out: np.ndarray,
    data: np.ndarray,
    filter: np.ndarray,
    fill_value: np.ndarray | None,
    *,
    anchor: np.ndarray,
    border: str,
    mode: str,
    spec: Spec,
) -> None:
    border = border if border in _BORDERS else _ALIASES[border]
    source, target, axes, frames = _arguments(spec, data, out)
    filters, anchors = _filters(filter, axes, anchor, len(data), frames, mode)
    fills = _fills(fill_value, len(data), frames)
    bytes_only = data.dtype == np.uint8 and out.dtype == np.uint8 and axes == _IMAGE_AXES
    is_direct = bytes_only or out.dtype == np.float32
    depth = cv2.CV_8U if bytes_only else cv2.CV_32F
    if data.dtype not in (np.uint8, np.float32):
        source = source.astype(np.float32)
    for images, results, weights, place, fill in zip(source, target, filters, anchors.tolist(), fills, strict=True):
        for image, result in zip(images, results, strict=True):
            if axes == _IMAGE_AXES:
                sums = _sums(image, weights, place, border, mode, fill, depth, result if is_direct else None)
            else:
                sums = _volume_sums(image, weights, place, border, mode, fill, len(result))
            if sums is result:
                continue
            if is_direct:
                result[...] = sums.reshape(result.shape)
            else:
                saturate_cast(result, np.ascontiguousarray(sums).reshape(result.shape))


@filter.gpu_samples
def _(
    out: DeviceSamples,
    data: DeviceSamples,
    filter: DeviceSamples,
    fill_value: DeviceSamples | None,
    *,
    anchor: Vectors,
    border: str,
    mode: str,
    spec: Spec,
) -> None:
    layout = default_layout(spec)
    first, axes = data_axes(layout, data.ndim)
    filters, owners = _filters_of_frames(filter, data, layout, axes)
    anchors = np.zeros((len(filters), axes), np.int64)
    if mode == "same":
        given = [np.repeat(value, axes, axis=-1) if value.shape[-1] == 1 else value for value in anchor]
        anchors = _anchors_of_frames(per_frame_of_samples(given, data, layout, "anchor", axes), filters.shapes, owners)
    fills = None
    if fill_value is not None:
        counts = fill_value.shapes.prod(1).tolist()
        places = [start + np.arange(count) for start, count in zip(fill_value.offsets, counts, strict=True)]
        index = per_frame_of_samples(places, data, layout, "fill_value")
        fills = fill_value.block.float().index_select(0, uploaded(index, data.device))
    correlate_samples_torch(
        folded_frames(out, layout),
        folded_frames(data, layout),
        filters,
        anchors,
        border if border in _BORDERS else _ALIASES[border],
        fills,
        first - layout.startswith("F"),
    )


def _filters_of_frames(
    filters: DeviceSamples, data: DeviceSamples, layout: str, axes: int
) -> tuple[DeviceSamples, np.ndarray]:
    """Return the filter of each frame of all samples, without a copy, and int64 [frames]: the sample of each."""
    counts = np.array([frame_count(layout, shape) for shape in data.shapes.tolist()])
    given = filters.shapes[:, :-axes].prod(1)
    wrong = (given != 1) & (given != counts)
    if wrong.any():
        n = int(wrong.argmax())
        error = ShapeError(f"the filter has {given[n]} frames; the input has {counts[n]}.")
        error.sample = n
        raise error
    owners = np.repeat(np.arange(len(counts)), counts)
    frames = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    shapes = filters.shapes[owners, -axes:]
    offsets = filters.offsets[owners] + np.where(given[owners] == 1, 0, frames) * shapes.prod(1)
    return DeviceSamples(filters.block, offsets, shapes), owners


def _anchors_of_frames(anchors: np.ndarray, sizes: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return anchors int64 [frames, axes], the center where -1 is given."""
    anchors = np.where(anchors == -1, sizes // 2, anchors).astype(np.int64)
    wrong = ((anchors < 0) | (anchors >= sizes)).any(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        extents = " x ".join(map(str, sizes[n].tolist()))
        error = ArgumentValueError(f"anchor must be inside the filter of {extents}; got {anchors[n].tolist()}.")
        error.sample = int(owners[n])
        raise error
    return anchors
