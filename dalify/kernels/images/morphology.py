"""Dilation and erosion by rectangles: maximum and minimum filters.

Both are one algorithm with the order of numbers reversed. The filter is applied along rows and then along columns. The
constant border outside the image has the value that does not affect the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, option_error_text
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec
from dalify.kernels.images.convolve import bordered_indices
from dalify.kernels.images.frames import per_frame
from dalify.kernels.images.image_planes import filter_layout, planes

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["min_max_filter_cpu", "min_max_filter_gpu", "morphology_spec"]

# DALI's names -> names of our index tables.
_BORDERS = {
    "constant": "constant",
    "replicate": "clamp",
    "reflect": "reflect_1001",
    "reflect_101": "reflect_101",
    "reflect101": "reflect_101",
    "wrap": "wrap",
}
_MAX_CHANNELS = 4
_MAX_MASK = 1 << 15
_NATIVE = (np.uint8, np.uint16, np.int16, np.float32, np.float64)
# Other dtypes -> a dtype of OpenCV that represents all their values.
_CONVERTED_TO = {"b": np.uint8, "i1": np.int16, "i4": np.float64, "u4": np.float64, "f2": np.float32}


def morphology_spec(x: Spec, border_mode: str, iterations: int) -> Spec:
    """Return the output spec, which is that of the input.

    Raises:
        LayoutError: the input is not an image.
        ArgumentValueError: the border is unknown, or the number of iterations is negative.
        DTypeError: the dtype is a 64-bit integer.
    """
    filter_layout(x)
    if border_mode not in _BORDERS:
        options = [name for name in _BORDERS if name != "reflect101"]
        raise ArgumentValueError(option_error_text("border_mode", border_mode, options))
    if iterations < 0:
        raise ArgumentValueError(f"iterations must not be negative; got {iterations}.")
    if x.dtype in (DALIDataType.INT64, DALIDataType.UINT64):
        raise DTypeError(f"the input has dtype {x.dtype!s}; 64-bit integers are not supported.")
    return x


def _masks(mask_size: Any, anchor: Any, iterations: int, frames: int) -> list[tuple[int, int, int, int]]:
    """Return for each frame the extent of the mask to the left, right, up and down.

    Several iterations are equivalent to one with a larger mask.
    """
    vectors = []
    for name, values in (("mask_size", mask_size), ("anchor", anchor)):
        given = np.stack(values) if isinstance(values, list) else values
        given = np.repeat(given, 2, axis=-1) if given.shape[-1] == 1 else given
        vectors.append(per_frame(given, frames, name, 2).astype(np.int64))
    sizes, anchors = vectors
    reach = (sizes - 1) * min(iterations, _MAX_MASK + 1)
    if (sizes < 1).any() or (reach > _MAX_MASK).any():
        wrong = sizes[((sizes < 1) | (reach > _MAX_MASK)).any(axis=1)][0].tolist()
        raise ArgumentValueError(f"mask_size must be a width and a height in [1, {_MAX_MASK}]; got {wrong}.")
    middle = np.where(anchors == -1, sizes // 2, anchors)
    if ((middle < 0) | (middle >= sizes)).any():
        n = int(((middle < 0) | (middle >= sizes)).any(axis=1).argmax())
        width, height = sizes[n].tolist()
        raise ArgumentValueError(f"anchor must be inside the mask of {width} x {height}; got {anchors[n].tolist()}.")
    before = middle * iterations
    sides = zip(before.tolist(), (reach - before).tolist(), strict=True)
    return [(left, right, up, down) for (left, up), (right, down) in sides]


def _limited(reach: tuple[int, int, int, int], height: int, width: int) -> tuple[int, int, int, int]:
    """Limit the extent of a mask: beyond two extents of the image, every border repeats itself."""
    left, right, up, down = reach
    return min(left, 2 * width), min(right, 2 * width), min(up, 2 * height), min(down, 2 * height)


def min_max_filter_cpu(
    out: np.ndarray,
    x: np.ndarray,
    layout: str,
    mask_size: Any,
    anchor: Any,
    border: str,
    iterations: int,
    largest: bool,
) -> None:
    """Fill `out` with the maximum or minimum under the mask.

    Args:
        out: [N, ...] in a layout for filters.
        x: same shape and dtype.
        layout: layout of a sample.
        mask_size: width and height, int32 [N, 1 or 2], or [N, F, 1 or 2] for frames.
        anchor: the pixel of the mask at the output pixel, x and y, as `mask_size`; -1 for the center.
        border: DALI's name of the border.
        iterations: number of iterations; 0 copies.
        largest: True to dilate, False to erode.
    """
    source, frames = planes(x, layout)
    target, _ = planes(out, layout)
    reaches = _masks(mask_size, anchor, iterations, frames)
    held = _CONVERTED_TO.get(x.dtype.str[1:] if x.dtype.kind != "b" else "b")
    filter_image = cv2.dilate if largest else cv2.erode
    for images, results, reach in zip(source, target, reaches, strict=True):
        left, right, up, down = _limited(reach, *images.shape[1:3])
        element = np.ones((up + down + 1, left + right + 1), np.uint8)
        for image, result in zip(images, results, strict=True):
            height, width, channels = image.shape
            if channels > _MAX_CHANNELS:
                parts = [(image[..., c], result[..., c]) for c in range(channels)]
            else:
                parts = [(image, result)]
            for part, to_fill in parts:
                data = part if held is None else part.astype(held)
                if border != "constant":
                    rows, _ = bordered_indices(height, up, down, _BORDERS[border])
                    columns, _ = bordered_indices(width, left, right, _BORDERS[border])
                    data = data[rows[:, None], columns]
                # cv2's anchor is the pixel of the mask at the output pixel, as here.
                found = filter_image(np.ascontiguousarray(data), element, anchor=(left, up))
                if border != "constant":
                    found = found[up : up + height, left : left + width]
                to_fill[...] = found.reshape(to_fill.shape)


def min_max_filter_gpu(
    out: Tensor, x: Tensor, layout: str, mask_size: Any, anchor: Any, border: str, iterations: int, largest: bool
) -> None:
    """`min_max_filter_cpu` for torch tensors; masks are on the CPU."""
    source, frames = planes(x, layout)
    target, _ = planes(out, layout)
    groups: dict[tuple[int, int, int, int], list[int]] = {}
    for n, reach in enumerate(_masks(mask_size, anchor, iterations, frames)):
        groups.setdefault(_limited(reach, *source.shape[2:4]), []).append(n)
    for (left, right, up, down), members in groups.items():
        # Wide integers: torch does not compare most of the others.
        data = (source if source.dtype.is_floating_point else source.long())[members]
        for axis, before, after in ((2, up, down), (3, left, right)):
            if before + after:
                data = _extreme_along(data, axis, before, after, border, largest)
        for n, image in zip(members, data, strict=True):
            target[n].copy_(image)


def _extreme_along(data: Tensor, axis: int, before: int, after: int, border: str, largest: bool) -> Tensor:
    length, window = data.shape[axis], before + after + 1
    index, outside = bordered_indices(length, before, after, _BORDERS[border])
    padded = data.index_select(axis, torch.as_tensor(index, device=data.device))
    if outside.any():
        info = torch.finfo(data.dtype) if data.dtype.is_floating_point else torch.iinfo(data.dtype)
        least = -float("inf") if data.dtype.is_floating_point else info.min
        most = float("inf") if data.dtype.is_floating_point else info.max
        shape = [1] * data.ndim
        shape[axis] = -1
        hidden = torch.as_tensor(outside, device=data.device).reshape(shape)
        padded = padded.masked_fill(hidden, least if largest else most)
    # Doubling: a window of 2 n from two windows of n, so that the cost is logarithmic in the width.
    combine = torch.maximum if largest else torch.minimum
    reached = 1
    while reached < window:
        step = min(reached, window - reached)
        size = padded.shape[axis] - step
        padded = combine(padded.narrow(axis, 0, size), padded.narrow(axis, step, size))
        reached += step
    return padded
