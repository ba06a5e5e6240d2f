"""Replace each pixel by the median of its neighborhood."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.base.small_arrays import counting, rows_at
from dalify.data import DeviceSamples, Samples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.convolve import bordered_indices
from dalify.kernels.images.frames import folded_frames, per_axis_of_samples
from dalify.kernels.images.image_planes import filter_layout, single_images
from dalify.registry import PerSampleOrFrame, Spec, Vectors, operator

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
    window_size: PerSampleOrFrame[int | list[int]] = [3, 3],  # noqa: B006 -- the signature is the schema; the list is never mutated
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
def _median_bytes(out_at, x_at, shapes, like, windows):
    """Filter uint8 images [H, W, C] with a histogram that slides along each row (Huang, Yang, Tang, 1979)."""
    counts = np.empty(256, np.int32)
    for n in range(len(x_at)):
        rows, columns, channels = shapes[n]
        width, height = windows[n]
        middle = (width * height) // 2
        source = array_at(x_at[n], (rows, columns, channels), like)
        target = array_at(out_at[n], (rows, columns, channels), like)
        padded = np.empty((rows + height - 1, columns + width - 1), np.uint8)
        for channel in range(channels):
            for i in range(padded.shape[0]):
                y = min(max(i - height // 2, 0), rows - 1)
                for j in range(padded.shape[1]):
                    padded[i, j] = source[y, min(max(j - width // 2, 0), columns - 1), channel]
            for y in range(rows):
                counts[:] = 0
                for i in range(height):
                    for j in range(width):
                        counts[padded[y + i, j]] += 1
                median, below = 0, 0
                for x in range(columns):
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
                    target[y, x, channel] = median


def _median_any(out: np.ndarray, image: np.ndarray, width: int, height: int) -> None:
    """Filter an image of any type, in blocks of rows."""
    rows, _ = bordered_indices(image.shape[0], height // 2, height // 2, "clamp")
    columns, _ = bordered_indices(image.shape[1], width // 2, width // 2, "clamp")
    views = np.lib.stride_tricks.sliding_window_view(image[rows[:, None], columns], (height, width), (0, 1))
    count = width * height
    step = max(1, _MAX_ELEMENTS // max(1, count * math.prod(out.shape[1:])))
    for first in range(0, len(out), step):
        part = views[first : first + step].reshape(-1, *out.shape[1:], count)
        out[first : first + step] = np.partition(part, count // 2, axis=-1)[..., count // 2]


@median_blur.cpu_samples
def _(out: Samples, x: Samples, *, window_size: Vectors, spec: Spec) -> None:
    layout = filter_layout(spec)
    target, source, windows = single_images(out, x, layout, _windows(window_size, x, layout))
    widths = windows[:, 0]
    is_square = widths == windows[:, 1]
    if x.dtype not in _CV_TYPES:
        is_square[:] = False
    elif x.dtype != np.uint8:
        is_square &= widths <= _CV_MAX_WINDOW
    if source.ndim == 3:
        is_square &= np.isin(source.extents(2), _CV_CHANNELS)
    else:
        target, source = target.with_axis(2), source.with_axis(2)
    others = np.flatnonzero(~is_square)
    if len(others) and x.dtype == np.uint8:
        target_at, source_at = target.addresses[others], source.addresses[others]
        _median_bytes(target_at, source_at, rows_at(source.shapes, others), x.like, rows_at(windows, others))
        others = others[:0]
    for result, image, (width, height) in _each(target, source, windows, others):
        _median_any(result, image, width, height)
    for result, image, (width, _) in _each(target, source, windows, np.flatnonzero(is_square)):
        cv2.medianBlur(image, width, dst=result)


def _each(out: Samples, x: Samples, windows: np.ndarray, numbers: np.ndarray) -> Iterator[tuple[Any, Any, list[int]]]:
    """Yield results, images and windows of some images."""
    if len(numbers) < len(x):
        out, x, windows = out.take(numbers), x.take(numbers), rows_at(windows, numbers)
    return zip(out.arrays(), x.arrays(), windows.tolist(), strict=True)


def _windows(window_size: Vectors, x: Samples | DeviceSamples, layout: str) -> np.ndarray:
    """Return the width and height of the window for each frame of all samples."""
    rows = per_axis_of_samples(window_size, x, layout, "window_size", 2)
    owners = x.folded(int(layout.startswith("F")))[1]
    _check_windows(rows, counting(len(x)) if owners is None else owners)
    return rows


@median_blur.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, window_size: Vectors, spec: Spec) -> None:
    layout = filter_layout(spec)
    rows = _windows(window_size, x, layout)
    axis = layout.index("H") - layout.startswith("F")
    _blur_padded(folded_frames(out, layout), folded_frames(x, layout), windows=rows, axis=axis)


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
            found = _median_torch(part.flatten(-2)).to(out.dtype)
            results = movable_torch(target[:, :, first : first + rows])
            if picked is None:
                results.copy_(movable_torch(found))
            else:
                results.index_copy_(0, picked, movable_torch(found))


def _median_torch(values: torch.Tensor) -> torch.Tensor:
    """Return the medians along the last axis, which has an odd extent; NaN if one of the values is NaN."""
    if not torch.are_deterministic_algorithms_enabled():
        return values.median(dim=-1).values
    # On CUDA, torch then refuses its median, because it also returns one of several possible indices.
    ordered = values.sort(dim=-1).values  # NaN last
    middle, last = ordered[..., values.shape[-1] // 2], ordered[..., -1]
    return torch.where(last.isnan(), last, middle)
