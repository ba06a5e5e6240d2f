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
from dalify.kernels.frames import flat_frames, per_frame
from dalify.registry import PerSample, operator

_BORDERS = {
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect_1001": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
    "clamp": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
    "fill": cv2.BORDER_CONSTANT,
}
_MODES = ("same", "valid")


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
    """Weigh the neighbours of each pixel with the elements of a matrix.

    ``out[y, x] = sum over i, j of filter[i, j] * data[y + i - anchor_y, x + j - anchor_x]``: a correlation, the filter
    is not mirrored. Sums are in float32 and rounded once.

    Args:
        data: images with the data axes H and W, C first or last, F in front; any numeric type.
        filter: float32 [r, s], or [F, r, s] for frames.
        fill_value: what lies outside with border "constant", a single number per sample (or per frame); by default 0.
        anchor: the filter's element that lies on the pixel, row and column; -1 for the middle, rounded down; per frame
            as well. Mode "valid" takes no notice of it.
        border: what lies outside: "reflect_101" (dcb|abcd), "reflect_1001" (cba|abcd), "wrap", "clamp" or "constant"
            (also called "fill").
        dtype: the input's type (default) or FLOAT.
        mode: "same", or "valid" for the positions where the whole filter lies inside.

    Returns:
        Same layout; with mode "valid" less by the filter's extents minus 1.

    Raises:
        LayoutError: not two neighbouring data axes.
        ShapeError: a filter of another form, or larger than the image in mode "valid".
        ArgumentValueError: an unknown option, or an anchor outside the filter.
        DTypeError: `dtype` is neither the input's type nor FLOAT.

    Example:
        >>> images = fn.filter(images, np.full((3, 3), 1 / 9, np.float32))  # doctest: +SKIP
    """
    for name, value, options in (("border", border, _BORDERS), ("mode", mode, _MODES)):
        if value not in options:
            raise ArgumentValueError(option_error_text(name, value, options))
    if dtype not in (None, data.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be the input's type ({data.dtype!s}), FLOAT, or left out; got {dtype!s}.")
    result = data.replace(dtype=data.dtype if dtype is None else dtype)
    first, axes = data_axes(_letters(data), data.ndim or 0)
    if axes != 2:
        raise LayoutError(f"images have two data axes; the layout {data.layout!r} has {axes}.")
    if data.shape is None or filter.shape is None:
        return result
    if len(filter.shape) not in (2, 3):
        raise ShapeError(f"a filter is a matrix; got the shape {filter.shape}.")
    if mode == "same":
        return result
    shape = list(data.shape)
    for axis, extent in zip((first, first + 1), filter.shape[-2:], strict=True):
        shape[axis] += 1 - extent
        if shape[axis] < 1:
            raise ShapeError(
                f"the filter {filter.shape} is larger than the image {data.shape}; mode 'valid' has no pixels."
            )
    return result.replace(shape=tuple(shape))


def _letters(spec: Spec) -> str:
    """Return the layout; of data without one, that of an image or a volume of as many dimensions."""
    return spec.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(spec.ndim or 0, "")


def _planes(x: Any, layout: str, first: int) -> Any:
    """Return a group as [N * F, planes, H, W, C]: channels in front become planes."""
    flat = flat_frames(x, layout)
    at = first + 1 - layout.startswith("F")  # of H in the flat group
    channels = flat.shape[at + 2] if flat.ndim > at + 2 else 1
    return flat.reshape(flat.shape[0], -1, flat.shape[at], flat.shape[at + 1], channels)


def _filters(filters: np.ndarray, anchor: Any, count: int, frames: int, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return filters [N * F, r, s] and anchors [N * F, 2]."""
    stack = filters.reshape(count, -1, *filters.shape[-2:]).astype(np.float32)
    if stack.shape[1] not in (1, frames):
        raise ShapeError(f"there are filters for {stack.shape[1]} frames; the input has {frames}.")
    stack = np.broadcast_to(stack, (count, frames, *stack.shape[2:])).reshape(count * frames, *stack.shape[2:])
    size = np.array(stack.shape[1:])
    if mode == "valid":
        return stack, np.zeros((len(stack), 2), np.int64)
    given = np.stack(anchor) if isinstance(anchor, list) else anchor
    if given.shape[-1] == 1:
        given = np.repeat(given, 2, axis=-1)
    anchors = per_frame(given, frames, "anchor", 2).astype(np.int64)
    anchors = np.where(anchors == -1, size // 2, anchors)
    if (anchors < 0).any() or (anchors >= size).any():
        raise ArgumentValueError(f"anchor must lie within the filter of {size[0]} x {size[1]}; got {anchors.tolist()}.")
    return stack, anchors


def _fills(fill_value: Any, count: int, frames: int) -> list[float]:
    if fill_value is None:
        return [0.0] * (count * frames)
    values = np.asarray(fill_value, np.float32).reshape(count, -1)
    return per_frame(values, frames, "fill_value").tolist()


@filter.cpu
def _(out, data, filter, fill_value, *, anchor, border, mode, spec):
    layout = _letters(spec)
    first, _ = data_axes(layout, len(spec.shape))
    source, target = _planes(data, layout, first), _planes(out, layout, first)
    frames = len(source) // len(data)
    filters, anchors = _filters(filter, anchor, len(data), frames, mode)
    fills = _fills(fill_value, len(data), frames)
    bytes_only = data.dtype == np.uint8 and out.dtype == np.uint8
    is_direct = bytes_only or out.dtype == np.float32
    if data.dtype not in (np.uint8, np.float32):
        source = source.astype(np.float32)
    height, width = target.shape[2:4]
    for images, results, weights, (row, column), fill in zip(
        source, target, filters, anchors.tolist(), fills, strict=True
    ):
        rows, columns = weights.shape
        for image, result in zip(images, results, strict=True):
            depth = cv2.CV_8U if bytes_only else cv2.CV_32F
            if mode == "same" and border != "wrap" and fill == 0:
                # OpenCV mirrors and repeats by itself; it neither wraps nor pads with a value other than 0.
                place, at = result if is_direct else None, (column, row)
                sums = cv2.filter2D(image, depth, weights, dst=place, anchor=at, borderType=_BORDERS[border])
            else:
                if mode == "same":
                    image = cv2.copyMakeBorder(
                        image, row, rows - 1 - row, column, columns - 1 - column, _BORDERS[border], value=[fill] * 4
                    )
                # The anchor in the corner: the sums that use nothing but the image then come first.
                sums = cv2.filter2D(image, depth, weights, anchor=(0, 0))[:height, :width]
            if sums is result:
                continue
            if is_direct:
                result[...] = sums.reshape(result.shape)
            else:
                saturate_cast(result, np.ascontiguousarray(sums).reshape(result.shape))


@filter.gpu
def _(out, data, filter, fill_value, *, anchor, border, mode, spec):
    layout = _letters(spec)
    first, _ = data_axes(layout, len(spec.shape))
    source, target = _planes(data, layout, first), _planes(out, layout, first)
    frames = len(source) // len(data)
    filters, anchors = _filters(filter.cpu().numpy(), anchor, len(data), frames, mode)
    given = None if fill_value is None else fill_value.cpu().numpy()
    fills = _fills(given, len(data), frames)
    height, width = target.shape[2:4]
    for images, results, weights, (row, column), fill in zip(
        source, target, filters, anchors.tolist(), fills, strict=True
    ):
        padded = images.float()
        if mode == "same":
            for axis, before, extent in ((1, row, weights.shape[0]), (2, column, weights.shape[1])):
                index, outside = bordered_indices(padded.shape[axis], before, extent - 1 - before, border)
                padded = padded.index_select(axis, torch.as_tensor(index, device=data.device))
                shape = [1, 1, 1, 1]
                shape[axis] = -1
                padded = padded.masked_fill(torch.as_tensor(outside, device=data.device).reshape(shape), fill)
        total = torch.zeros(results.shape, device=data.device)
        for i, line in enumerate(weights.tolist()):
            for j, weight in enumerate(line):
                total += padded[:, i : i + height, j : j + width] * weight
        saturate_cast_torch(results, total)
