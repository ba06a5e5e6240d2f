"""Weigh the neighbours of each pixel by a filter of the user's."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError, option_error_text
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec
from dalify.kernels.convert import saturate_cast, saturate_cast_torch
from dalify.kernels.convolve import bordered_indices, data_axes
from dalify.kernels.correlate import correlate_image
from dalify.kernels.frames import flat_frames, per_frame
from dalify.registry import PerSample, operator

_BORDERS = {
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect_1001": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
    "clamp": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
}
# Other names that DALI has for them.
_ALIASES = {"fill": "constant", "101": "reflect_101", "1001": "reflect_1001", "reflect": "reflect_1001"}
_MODES = ("same", "valid")
_IMAGE_AXES = 2
# Elements of a filter from which OpenCV filters by discrete Fourier transforms, and from which that pays.
_TRANSFORMED_FROM, _TRANSFORMED_WELL_FROM = 130, 700
_OURS_FROM, _OURS_CHANNELS = 25, 3
_MOST_CHANNELS = 128  # that OpenCV takes at once


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
    """Weigh the neighbours of each pixel with the elements of a matrix, those of voxels with a block.

    ``out[y, x] = sum over i, j of filter[i, j] * data[y + i - anchor_y, x + j - anchor_x]``: a correlation, the filter
    is not mirrored. Sums are in float32 and rounded once. For volumes, whose CPU operator DALI lacks, alike with z.

    Args:
        data: images or volumes with the data axes H and W, or D, H and W, C first or last, F in front; any numeric
            type.
        filter: float32 [r, s], or [q, r, s] for volumes; [F, …] for frames.
        fill_value: what lies outside with border "constant", a single number per sample (or per frame); by default 0.
        anchor: the filter's element that lies on the pixel, row and column (depth first); -1 for the middle, rounded
            down; per frame as well. Mode "valid" takes no notice of it.
        border: what lies outside: "reflect_101" or "101" (dcb|abcd), "reflect_1001", "1001" or "reflect" (cba|abcd),
            "wrap", "clamp", "constant" or "fill".
        dtype: the input's type (default) or FLOAT.
        mode: "same", or "valid" for the positions where the whole filter lies inside.

    Returns:
        Same layout; with mode "valid" less by the filter's extents minus 1.

    Raises:
        LayoutError: not two or three neighbouring data axes.
        ShapeError: a filter of another form, or larger than the image in mode "valid".
        ArgumentValueError: an unknown option, or an anchor outside the filter.
        DTypeError: `dtype` is neither the input's type nor FLOAT.

    Example:
        >>> images = fn.filter(images, np.full((3, 3), 1 / 9, np.float32))  # doctest: +SKIP
    """
    for name, value, options in (("border", border, (*_BORDERS, *_ALIASES)), ("mode", mode, _MODES)):
        if value not in options:
            raise ArgumentValueError(option_error_text(name, value, options))
    if dtype not in (None, data.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be the input's type ({data.dtype!s}), FLOAT, or left out; got {dtype!s}.")
    result = data.replace(dtype=data.dtype if dtype is None else dtype)
    first, axes = data_axes(_letters(data), data.ndim or 0)
    if axes < _IMAGE_AXES:
        raise LayoutError(f"images and volumes have two or three data axes; the layout {data.layout!r} has {axes}.")
    if data.shape is None or filter.shape is None:
        return result
    if len(filter.shape) not in (axes, axes + 1):
        raise ShapeError(f"a filter for {axes} data axes has as many; got the shape {filter.shape}.")
    if 0 in filter.shape:
        raise ShapeError(f"a filter needs at least one element; got the shape {filter.shape}.")
    if mode == "same":
        return result
    shape = list(data.shape)
    for axis, extent in zip(range(first, first + axes), filter.shape[-axes:], strict=True):
        shape[axis] += 1 - extent
        if shape[axis] < 1:
            raise ShapeError(
                f"the filter {filter.shape} is larger than the image {data.shape}; mode 'valid' has no pixels."
            )
    return result.replace(shape=tuple(shape))


def _letters(spec: Spec) -> str:
    """Return the layout; of data without one, that of an image or a volume of as many dimensions."""
    return spec.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(spec.ndim or 0, "")


def _planes(x: Any, layout: str, first: int, axes: int) -> Any:
    """Return a group as [N * F, planes, H, W, C], or with D before H: channels in front become planes."""
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
        raise ShapeError(f"there are filters for {stack.shape[1]} frames; the input has {frames}.")
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
        raise ArgumentValueError(f"anchor must lie within the filter of {extents}; got {anchors.tolist()}.")
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
    fill: float,
    depth: int,
    place: Any,
) -> np.ndarray:
    """Return the sums for one image, rounded where `depth` has bytes; in `place` where they can be written there."""
    (rows, columns), (row, column) = weights.shape, anchor
    if place is not None and _is_ours(image, weights):
        correlate_image(place, image, weights, (row, column) if mode == "same" else None, border, fill)
        return place
    if image.ndim > _IMAGE_AXES and image.shape[2] > _MOST_CHANNELS:
        parts = [image[..., first : first + _MOST_CHANNELS] for first in range(0, image.shape[2], _MOST_CHANNELS)]
        sums = [_sums(np.ascontiguousarray(part), weights, anchor, border, mode, fill, depth, None) for part in parts]
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in sums], axis=2)
    if mode == "same" and border != "wrap" and fill == 0:
        # OpenCV mirrors and repeats by itself; it neither wraps nor pads with a value other than 0.
        return cv2.filter2D(image, depth, weights, dst=place, anchor=(column, row), borderType=_BORDERS[border])
    height, width = image.shape[:2]
    if mode == "same":
        image = cv2.copyMakeBorder(
            image, row, rows - 1 - row, column, columns - 1 - column, _BORDERS[border], value=[fill] * 4
        )
    else:
        height, width = height + 1 - rows, width + 1 - columns
    # The anchor in the corner: the sums that use nothing but the image then come first.
    return cv2.filter2D(image, depth, weights, anchor=(0, 0))[:height, :width]


def _is_ours(image: np.ndarray, weights: np.ndarray) -> bool:
    """Whether our own kernel is faster than OpenCV's: direct sums for bytes, and the transforms of large matrices."""
    if weights.size >= _TRANSFORMED_FROM:
        return weights.size <= _TRANSFORMED_WELL_FROM
    return weights.size >= _OURS_FROM and image.dtype == np.uint8 and image.shape[2] >= _OURS_CHANNELS


def _volume_sums(
    volume: np.ndarray, weights: np.ndarray, anchor: list[int], border: str, mode: str, fill: float, out_depth: int
) -> np.ndarray:
    """Return the sums for one volume, float32: those of its slices with the slices of the filter, added up."""
    before = anchor[0] if mode == "same" else 0
    after = len(weights) - 1 - before if mode == "same" else 0
    index, outside = bordered_indices(len(volume), before, after, border)
    total: np.ndarray | None = None
    for d, matrix in enumerate(weights):
        for z in range(out_depth):
            image = np.full_like(volume[0], fill) if outside[z + d] else volume[index[z + d]]
            part = _sums(image, matrix, anchor[1:], border, mode, fill, cv2.CV_32F, None)
            if total is None:
                total = np.zeros((out_depth, *part.shape), np.float32)
            total[z] += part
    assert total is not None, "dalify bug: a filter or a result without elements"
    return total


def _arguments(spec: Spec, data: Any, out: Any) -> tuple[Any, Any, int, int]:
    """Return input and output as planes, the number of data axes and that of frames."""
    layout = _letters(spec)
    first, axes = data_axes(layout, len(spec.shape or ()))
    source, target = _planes(data, layout, first, axes), _planes(out, layout, first, axes)
    return source, target, axes, len(source) // len(data)


@filter.cpu
def _(out, data, filter, fill_value, *, anchor, border, mode, spec):
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


@filter.gpu
def _(out, data, filter, fill_value, *, anchor, border, mode, spec):
    border = border if border in _BORDERS else _ALIASES[border]
    source, target, axes, frames = _arguments(spec, data, out)
    filters, anchors = _filters(filter.cpu().numpy(), axes, anchor, len(data), frames, mode)
    given = None if fill_value is None else fill_value.cpu().numpy()
    fills = _fills(given, len(data), frames)
    extents = target.shape[2:-1]
    for images, results, weights, places, fill in zip(source, target, filters, anchors.tolist(), fills, strict=True):
        padded = images.float()
        if mode == "same":
            for axis, (before, extent) in enumerate(zip(places, weights.shape, strict=True), start=1):
                index, outside = bordered_indices(padded.shape[axis], before, extent - 1 - before, border)
                padded = padded.index_select(axis, torch.as_tensor(index, device=data.device))
                shape = [1] * padded.ndim
                shape[axis] = -1
                padded = padded.masked_fill(torch.as_tensor(outside, device=data.device).reshape(shape), fill)
        total = torch.zeros(results.shape, device=data.device)
        for at in np.ndindex(weights.shape):
            part = padded
            for axis, (begin, extent) in enumerate(zip(at, extents, strict=True), start=1):
                part = part.narrow(axis, begin, extent)
            total += part * float(weights[at])
        saturate_cast_torch(results, total)
