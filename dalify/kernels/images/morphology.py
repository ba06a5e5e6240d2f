"""Dilation and erosion by rectangles: maximum and minimum filters.

The border "constant" has no effect on the result.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, option_error_text
from dalify.base.optional import torch
from dalify.base.small_arrays import columns_at, counting
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.windows_torch import bordered_samples_torch, window_samples_torch
from dalify.kernels.images.frames import folded_frames, per_axis_of_samples
from dalify.kernels.images.image_planes import filter_layout, single_images

if TYPE_CHECKING:
    from torch import Tensor

_BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect_101": cv2.BORDER_REFLECT_101,
    "reflect101": cv2.BORDER_REFLECT_101,
    "wrap": cv2.BORDER_WRAP,
}
# DALI's names -> keys of `BORDERS_TORCH`.
_INDEX_TABLES = {
    "replicate": "clamp",
    "reflect": "reflect_1001",
    "reflect_101": "reflect_101",
    "reflect101": "reflect_101",
    "wrap": "wrap",
}
_MAX_CHANNELS = 4
_MAX_MASK = 1 << 15
# Other dtypes -> a dtype of OpenCV that represents all their values.
_CONVERTED_TO = {"i1": np.int16, "i4": np.float64, "u4": np.float64, "f2": np.float32}


def morphology_spec(x: Spec, border_mode: str, iterations: int) -> Spec:
    """Return the output spec, which equals the input spec.

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
        raise DTypeError(f"the input has dtype {x.dtype_text}; 64-bit integers are not supported.")
    return x


def _reaches(
    sizes: np.ndarray, anchors: np.ndarray, iterations: int, extents: np.ndarray, owners: np.ndarray
) -> np.ndarray:
    """Return for each frame the extent of the mask to the left, right, up and down, int64 [frames, 4].

    Several iterations are equivalent to one with a larger mask.

    Args:
        sizes: width and height, integers [frames of all samples, 2].
        anchors: x and y, as `sizes`.
        iterations: number of iterations.
        extents: height and width of the frames, int64 [frames, 2].
        owners: the sample of each frame, int64 [frames], for errors.
    """
    sizes, anchors = sizes.astype(np.int64), anchors.astype(np.int64)
    reach = (sizes - 1) * min(iterations, _MAX_MASK + 1)
    wrong = ((sizes < 1) | (reach > _MAX_MASK)).any(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        text = f"mask_size must be a width and a height in [1, {_MAX_MASK}]; got {sizes[n].tolist()}."
        raise ArgumentValueError(text, sample=int(owners[n]))
    middle = np.where(anchors == -1, sizes // 2, anchors)
    wrong = ((middle < 0) | (middle >= sizes)).any(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        width, height = sizes[n].tolist()
        text = f"anchor must be inside the mask of {width} x {height}; got {anchors[n].tolist()}."
        raise ArgumentValueError(text, sample=int(owners[n]))
    before = middle * iterations
    reach = np.stack([before, reach - before], axis=2).reshape(-1, 4)
    # All borders are periodic, with a period of at most two extents.
    return np.minimum(reach, 2 * columns_at(extents, (1, 1, 0, 0)))


def min_max_filter_samples(
    out: Samples,
    x: Samples,
    layout: str,
    mask_size: Any,
    anchor: Any,
    border_mode: str,
    iterations: int,
    largest: bool,
) -> None:
    """Fill `out` with the maximum or minimum under the mask.

    Args:
        out: N samples with the shapes and the dtype of `x`, output.
        x: N samples in one of `FILTER_LAYOUTS`, none empty.
        layout: layout of a sample.
        mask_size: width and height, int32 [N, 1 or 2], or [N, F, 1 or 2] for frames.
        anchor: the pixel of the mask at the output pixel, x and y, as `mask_size`; -1 for the center.
        border_mode: DALI's name of the border.
        iterations: number of iterations; 0 copies.
        largest: True to dilate, False to erode.
    """
    if x.dtype == np.bool_:
        out, x = (Samples(given.addresses, given.shapes, np.dtype(np.uint8), given) for given in (out, x))
    reaches = _reaches_of_frames(x, layout, mask_size, anchor, iterations)
    target, source, reaches = single_images(out, x, layout, reaches)
    held = _CONVERTED_TO.get(x.dtype.str[1:])
    is_direct = held is None and (source.ndim == 2 or source.extents(2).max() <= _MAX_CHANNELS)
    filter_image = cv2.dilate if largest else cv2.erode
    kind = _BORDERS[border_mode]
    for image, result, (left, right, up, down) in zip(source.arrays(), target.arrays(), reaches.tolist(), strict=True):
        height, width = up + down + 1, left + right + 1
        element = _rectangle(height, width)
        if is_direct and kind != cv2.BORDER_WRAP:
            filter_image(image, element, dst=result, anchor=(left, up), borderType=kind)
            continue
        data = image if held is None else image.astype(held)
        parts = [(data, result)]
        if image.ndim > 2 and image.shape[2] > _MAX_CHANNELS:
            parts = [(data[..., c], result[..., c]) for c in range(image.shape[2])]
        for part, to_fill in parts:
            if kind != cv2.BORDER_WRAP:
                found = filter_image(np.ascontiguousarray(part), element, anchor=(left, up), borderType=kind)
            else:  # OpenCV's filters do not support this border
                wider = cv2.copyMakeBorder(np.ascontiguousarray(part), up, down, left, right, kind)
                found = filter_image(wider, element, anchor=(left, up))
                found = found[up : up + len(image), left : left + image.shape[1]]
            to_fill[...] = found.reshape(to_fill.shape)


@lru_cache(maxsize=64)
def _rectangle(height: int, width: int) -> np.ndarray:
    return np.ones((height, width), np.uint8)


def _reaches_of_frames(
    x: Samples | DeviceSamples, layout: str, mask_size: Any, anchor: Any, iterations: int
) -> np.ndarray:
    """Return the result of `_reaches` for the frames of all samples."""
    sizes = per_axis_of_samples(mask_size, x, layout, "mask_size", 2)
    anchors = per_axis_of_samples(anchor, x, layout, "anchor", 2)
    frames, owners = x.folded(int(layout.startswith("F")))
    height = layout.index("H") - layout.startswith("F")
    owners = counting(len(x)) if owners is None else owners
    return _reaches(sizes, anchors, iterations, frames.shapes[:, height : height + 2], owners)


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
    """`min_max_filter_samples` for samples on the device; masks are on the host."""
    source, target = folded_frames(x, layout), folded_frames(out, layout)
    height = layout.index("H") - layout.startswith("F")
    left, right, up, down = _reaches_of_frames(x, layout, mask_size, anchor, iterations).T
    shapes, begin = source.shapes.copy(), np.zeros_like(source.shapes)
    shapes[:, height] += up + down
    shapes[:, height + 1] += left + right
    begin[:, height], begin[:, height + 1] = -up, -left
    padded = DeviceSamples.empty(shapes, _compared_as(x.dtype), x.device)
    if border_mode == "constant":
        window_samples_torch(padded, source, begin, fill_values=_neutral(x.dtype, largest))
    else:
        bordered_samples_torch(padded, source, begin, _INDEX_TABLES[border_mode])
    block = padded.block
    for axis, windows in ((height, up + down + 1), (height + 1, left + right + 1)):
        block = _extreme_of_windows(block, padded, windows, shapes[:, axis + 1 :].prod(1), largest)
    found = DeviceSamples(block, padded.offsets, shapes)
    window_samples_torch(target, found, np.zeros_like(shapes))


def _compared_as(dtype: Any) -> Any:
    """Return a type that represents all values of a type, and that torch can compare."""
    return {torch.uint16: torch.int32, torch.uint32: torch.int64}.get(dtype, dtype)


def _neutral(dtype: Any, largest: bool) -> float:
    """Return the identity of the maximum, or of the minimum."""
    if dtype.is_floating_point:
        return -math.inf if largest else math.inf
    if dtype == torch.bool:
        return 0 if largest else 1
    return torch.iinfo(dtype).min if largest else torch.iinfo(dtype).max


def _extreme_of_windows(
    block: Tensor, samples: DeviceSamples, windows: np.ndarray, strides: np.ndarray, largest: bool
) -> Tensor:
    """Return the maximum or minimum of each window of elements along an axis, at the position of its first element.

    The results of windows that exceed the axis are arbitrary. Elements after the last whole window may be missing.

    Args:
        block: elements of the samples.
        samples: samples with the same offsets and shapes.
        windows: number of elements of a window, int64 [N].
        strides: stride of the axis in elements, int64 [N].
        largest: True for the maximum.
    """
    combine = torch.maximum if largest else torch.minimum
    flat = samples.flattened().ragged()
    grid: Grid | None = None
    # A window of 2 n elements is computed from two windows of n, so the cost is logarithmic in the width.
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
