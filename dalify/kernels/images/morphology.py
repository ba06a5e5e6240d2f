"""Dilation and erosion by rectangles: maximum and minimum filters.

Both are one algorithm with the order of numbers reversed. The filter is applied along rows and then along columns. The
constant border outside the image has the value that does not affect the result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, option_error_text
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.windows_torch import bordered_samples_torch, window_samples_torch
from dalify.kernels.images.convolve import bordered_indices
from dalify.kernels.images.frames import folded_frames, pairs, per_frame, per_frame_of_samples
from dalify.kernels.images.image_planes import filter_layout, planes

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["min_max_filter_cpu", "min_max_filter_samples_torch", "morphology_spec"]

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


def _masks(
    sizes: np.ndarray, anchors: np.ndarray, iterations: int, owners: np.ndarray
) -> list[tuple[int, int, int, int]]:
    """Return for each frame the extent of the mask to the left, right, up and down.

    Several iterations are equivalent to one with a larger mask.

    Args:
        sizes: width and height, integers [frames of all samples, 2].
        anchors: x and y, as `sizes`.
        iterations: number of iterations.
        owners: the sample of each frame, int64 [frames], for errors.
    """
    sizes, anchors = sizes.astype(np.int64), anchors.astype(np.int64)
    reach = (sizes - 1) * min(iterations, _MAX_MASK + 1)
    wrong = ((sizes < 1) | (reach > _MAX_MASK)).any(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        error = ArgumentValueError(
            f"mask_size must be a width and a height in [1, {_MAX_MASK}]; got {sizes[n].tolist()}."
        )
        error.sample = int(owners[n])
        raise error
    middle = np.where(anchors == -1, sizes // 2, anchors)
    wrong = ((middle < 0) | (middle >= sizes)).any(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        width, height = sizes[n].tolist()
        error = ArgumentValueError(f"anchor must be inside the mask of {width} x {height}; got {anchors[n].tolist()}.")
        error.sample = int(owners[n])
        raise error
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
    border_mode: str,
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
        border_mode: DALI's name of the border.
        iterations: number of iterations; 0 copies.
        largest: True to dilate, False to erode.
    """
    source, frames = planes(x, layout)
    target, _ = planes(out, layout)
    sizes, anchors = (
        per_frame(pairs(values), frames, name, 2) for name, values in (("mask_size", mask_size), ("anchor", anchor))
    )
    reaches = _masks(sizes, anchors, iterations, np.repeat(np.arange(len(x)), frames))
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
                if border_mode != "constant":
                    rows, _ = bordered_indices(height, up, down, _BORDERS[border_mode])
                    columns, _ = bordered_indices(width, left, right, _BORDERS[border_mode])
                    data = data[rows[:, None], columns]
                # cv2's anchor is the pixel of the mask at the output pixel, as here.
                found = filter_image(np.ascontiguousarray(data), element, anchor=(left, up))
                if border_mode != "constant":
                    found = found[up : up + height, left : left + width]
                to_fill[...] = found.reshape(to_fill.shape)


def min_max_filter_samples_torch(
    out: DeviceSamples,
    x: DeviceSamples,
    layout: str,
    mask_size: Any,
    anchor: Any,
    border_mode: str,
    iterations: int,
    largest: bool,
) -> None:
    """`min_max_filter_cpu` for all samples of a chunk on the device, none of them empty; masks are on the host."""
    rows = [
        per_frame_of_samples(pairs(v), x, layout, name, 2) for name, v in (("mask_size", mask_size), ("anchor", anchor))
    ]
    source, owners = x.folded(int(layout.startswith("F")))
    target = folded_frames(out, layout)
    height = layout.index("H") - layout.startswith("F")
    reaches = _masks(rows[0], rows[1], iterations, np.arange(len(x)) if owners is None else owners)
    extents = source.shapes[:, height : height + 2].tolist()
    left, right, up, down = np.array([_limited(reach, *size) for reach, size in zip(reaches, extents, strict=True)]).T
    shapes, begin = source.shapes.copy(), np.zeros_like(source.shapes)
    shapes[:, height] += up + down
    shapes[:, height + 1] += left + right
    begin[:, height], begin[:, height + 1] = -up, -left
    padded = DeviceSamples.empty(shapes, _compared_as(x.dtype), x.device)
    if border_mode == "constant":
        window_samples_torch(padded, source, begin, fill_values=_neutral(x.dtype, largest))
    else:
        bordered_samples_torch(padded, source, begin, _BORDERS[border_mode])
    block = padded.block
    for axis, windows in ((height, up + down + 1), (height + 1, left + right + 1)):
        block = _extreme_of_windows(block, padded, windows, shapes[:, axis + 1 :].prod(1), largest)
    found = DeviceSamples(block, padded.offsets, shapes)
    window_samples_torch(target, found, np.zeros_like(shapes))


def _compared_as(dtype: Any) -> Any:
    """Return a type that has all values of a type, and that torch compares."""
    return {torch.uint16: torch.int32, torch.uint32: torch.int64}.get(dtype, dtype)


def _neutral(dtype: Any, largest: bool) -> float:
    """Return the value that changes no maximum, or no minimum."""
    if dtype.is_floating_point:
        return -math.inf if largest else math.inf
    if dtype == torch.bool:
        return 0 if largest else 1
    return torch.iinfo(dtype).min if largest else torch.iinfo(dtype).max


def _extreme_of_windows(
    block: Tensor, samples: DeviceSamples, windows: np.ndarray, strides: np.ndarray, largest: bool
) -> Tensor:
    """Return the maximum or minimum of each element and those behind it along an axis.

    Where a window exceeds the axis, the result may have any values; behind the last whole window it may have none.

    Args:
        block: elements of the samples.
        samples: their places and shapes.
        windows: number of elements of a window, int64 [N].
        strides: elements of the block from one to the next along the axis, int64 [N].
        largest: True for the maximum.
    """
    combine = torch.maximum if largest else torch.minimum
    flat = samples.flattened().ragged()
    grid: Grid | None = None
    # Doubling: a window of 2 n from two windows of n, so that the cost is logarithmic in the width.
    reached = np.ones_like(windows)
    while (reached < windows).any():
        steps = np.minimum(reached, windows - reached)
        reached = reached + steps
        shifts = steps * strides
        if (shifts == shifts[0]).all():
            size = block.numel() - int(shifts[0])
            block = combine(block[:size], block[-size:])
            continue
        grid = Grid(flat, flat, 1) if grid is None else grid
        size = block.numel()
        index = grid.coordinates[0] + grid.of_sample(flat.offsets + shifts)
        block = combine(block, block.index_select(0, index[:size].clamp(max=size - 1)))
    return block
