"""Replace each pixel by the median of its neighborhood."""

from __future__ import annotations

import math

import cv2
import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.torch_unsigned import movable_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.convolve import bordered_indices
from dalify.kernels.images.frames import folded_frames, pairs, per_frame, per_frame_of_samples
from dalify.kernels.images.image_planes import filter_layout, planes
from dalify.registry import PerSample, Spec, Vectors, operator

_MAX_WINDOW = 255
_CV_CHANNELS = (1, 3, 4)
_CV_TYPES = (np.uint8, np.uint16, np.int16, np.float32)
_CV_MAX_WINDOW = 5  # of types other than uint8
_MAX_ELEMENTS = 1 << 24  # in the windows that are processed together


@operator
def median_blur(
    x: Spec,
    /,
    *,
    window_size: PerSample[int | list[int]] = [3, 3],  # noqa: B006 -- the signature is the schema; the list is never mutated
) -> Spec:
    """Replace each pixel by the median of a window around it, per channel. The border is replicated.

    Args:
        x: images HW, HWC or CHW, or sequences FHWC or FCHW, of any numeric type.
        window_size: width and height of the window, odd, 1 to 255, or one number for both. Can be per frame.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        ArgumentValueError: a window size is even or out of range.

    Example:
        >>> images = fn.experimental.median_blur(images, window_size=[5, 5])  # doctest: +SKIP
    """
    filter_layout(x)
    return x


def _check_windows(rows: np.ndarray, owners: np.ndarray) -> None:
    """Raise an error for a wrong size; `owners` is the sample of each row."""
    wrong = np.flatnonzero(((rows % 2 == 0) | (rows < 1) | (rows > _MAX_WINDOW)).any(axis=1))
    if len(wrong):
        raise ArgumentValueError(
            f"window_size must be odd and between 1 and {_MAX_WINDOW}; got {rows[wrong[0]].tolist()}.",
            hint="For example window_size=[3, 3].",
            sample=int(owners[wrong[0]]),
        )


@njit(nogil=True, cache=True)
def _median_bytes(out, padded, width, height):
    """Filter a uint8 plane with a histogram that slides along each row (Huang, Yang, Tang, 1979)."""
    counts = np.empty(256, np.int32)
    middle = (width * height) // 2
    for y in range(out.shape[0]):
        counts[:] = 0
        for i in range(height):
            for j in range(width):
                counts[padded[y + i, j]] += 1
        median, below = 0, 0
        for x in range(out.shape[1]):
            if x:
                for i in range(height):
                    gone, come = padded[y + i, x - 1], padded[y + i, x + width - 1]
                    counts[gone] -= 1
                    counts[come] += 1
                    below += np.int64(come < median) - np.int64(gone < median)
            while below > middle:
                median -= 1
                below -= counts[median]
            while below + counts[median] <= middle:
                below += counts[median]
                median += 1
            out[y, x] = median


def _median_any(out: np.ndarray, padded: np.ndarray, width: int, height: int) -> None:
    """Filter a plane of any type, in blocks of rows."""
    views = np.lib.stride_tricks.sliding_window_view(padded, (height, width))
    count = width * height
    rows = max(1, _MAX_ELEMENTS // max(1, count * out.shape[1]))
    for first in range(0, len(out), rows):
        part = views[first : first + rows].reshape(-1, out.shape[1], count)
        out[first : first + rows] = np.partition(part, count // 2, axis=-1)[..., count // 2]


def _blur(out: np.ndarray, image: np.ndarray, width: int, height: int) -> None:
    is_plain = width == height and image.shape[2] in _CV_CHANNELS and image.dtype in _CV_TYPES
    if is_plain and (image.dtype == np.uint8 or width <= _CV_MAX_WINDOW):
        out[...] = cv2.medianBlur(image, width).reshape(out.shape)
        return
    rows, _ = bordered_indices(image.shape[0], height // 2, height // 2, "clamp")
    columns, _ = bordered_indices(image.shape[1], width // 2, width // 2, "clamp")
    for channel in range(image.shape[2]):
        padded = image[:, :, channel][rows[:, None], columns]
        if image.dtype == np.uint8:
            result = np.empty(image.shape[:2], np.uint8)
            _median_bytes(result, read_only(padded), width, height)
            out[:, :, channel] = result
        else:
            _median_any(out[:, :, channel], padded, width, height)


@median_blur.cpu
def _(out: np.ndarray, x: np.ndarray, *, window_size: np.ndarray, spec: Spec) -> None:
    layout = filter_layout(spec)
    source, frames = planes(x, layout)
    target, _ = planes(out, layout)
    windows = per_frame(pairs(window_size), frames, "window_size", 2)
    _check_windows(windows, np.repeat(np.arange(len(x)), frames))
    for images, results, (width, height) in zip(source, target, windows.tolist(), strict=True):
        for image, result in zip(images, results, strict=True):
            _blur(result, image, width, height)


@median_blur.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, window_size: Vectors, spec: Spec) -> None:
    layout = filter_layout(spec)
    rows = per_frame_of_samples(pairs(window_size), x, layout, "window_size", 2)
    source, owners = x.folded(int(layout.startswith("F")))
    _check_windows(rows, np.arange(len(x)) if owners is None else owners)
    axis = layout.index("H") - layout.startswith("F")
    _blur_padded(folded_frames(out, layout), source, windows=rows, axis=axis)


@on_padded  # the border repeats the edges, as padding does
def _blur_padded(out: torch.Tensor, x: torch.Tensor, *, windows: np.ndarray, axis: int) -> None:
    form = (len(x), math.prod(x.shape[1 : axis + 1]), *x.shape[axis + 1 : axis + 3], -1)
    source, target = x.reshape(form), out.view(form)
    # torch.median supports few integer types.
    source = source if source.dtype.is_floating_point else source.long()
    kinds = np.unique(windows, axis=0)
    for width, height in kinds.tolist():
        numbers = np.flatnonzero((windows == (width, height)).all(axis=1))
        picked = None if len(kinds) == 1 else uploaded(numbers, x.device)
        data = source if picked is None else source.index_select(0, picked)
        extents = data.shape[2:4]
        for place, extent, radius in zip((2, 3), extents, (height // 2, width // 2), strict=True):
            index, _ = bordered_indices(extent, radius, radius, "clamp")
            data = data.index_select(place, uploaded(index, x.device))
        rows = max(1, _MAX_ELEMENTS // max(1, width * height * data[:, :, 0].numel()))
        for first in range(0, extents[0], rows):
            part = data[:, :, first : first + rows + height - 1].unfold(2, height, 1).unfold(3, width, 1)
            found = part.flatten(-2).median(dim=-1).values.to(out.dtype)
            results = movable_torch(target[:, :, first : first + rows])
            if picked is None:
                results.copy_(movable_torch(found))
            else:
                results.index_copy_(0, picked, movable_torch(found))
