"""Computes size and source window from the arguments of a resize, for all operators that resize.

Output rules use the size, and kernels the window, so both are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, LimitError, check_option
from dalify.base.limits import check_shape
from dalify.base.small_arrays import zeros

MODES = ("default", "stretch", "not_larger", "not_smaller")
ROUNDINGS = ("round", "truncate", "ceil")

_DEFAULT, _NOT_LARGER, _NOT_SMALLER = (MODES.index(mode) for mode in ("default", "not_larger", "not_smaller"))
_ROUND, _TRUNCATE = ROUNDINGS.index("round"), ROUNDINGS.index("truncate")
_MAX_EXTENT = 1 << 40
_LARGEST = float(1 << 62)
_MIN_SIZE = 0.1  # pixels: DALI's minimum scale is the scale to this size
_MIN_ROI = 1e-3  # minimum extent of a region of interest
# Arguments that are the same for all samples.
_OF_CHUNK = ("mode", "max_size", "roi_relative", "subpixel_scale", "size_rounding")
_NO_LIMITS, _CENTER = np.zeros(0), np.zeros((0, 0))
_inner = njit(cache=True, error_model="numpy", no_cpython_wrapper=True)  # only called by `_fit`


@dataclass(frozen=True, slots=True)
class ResizeGeometry:
    """Size and source window of one sample.

    Attributes:
        size: size of the result along each spatial axis, pixels.
        start: start of the source window on each axis, in pixel edges.
        end: end of the source window; before `start` on mirrored axes.
    """

    size: tuple[int, ...]
    start: tuple[float, ...]
    end: tuple[float, ...]


@cache
def spatial_axes(layout: str) -> tuple[int, int]:
    """Return start and end of the spatial axes (D, H, W) of a layout, which are adjacent."""
    first = next(index for index, letter in enumerate(layout) if letter in "DHW")
    return first, first + sum(letter in "DHW" for letter in layout)


def check_resize_arguments(
    *,
    mode: str,
    size: Any,
    resize_shorter: Any,
    resize_longer: Any,
    resize_x: Any,
    resize_y: Any,
    resize_z: Any,
    roi_start: Any,
    roi_end: Any,
) -> None:
    """Check arguments for contradictions, as far as they are known when a graph is built.

    Raises:
        ArgumentValueError: the size is not specified in exactly one way, a region of interest is incomplete, or the
            mode is unknown.
    """
    check_option("mode", mode, MODES)
    separate = any(extent is not None for extent in (resize_x, resize_y, resize_z))
    extents = {"size": size, "resize_shorter": resize_shorter, "resize_longer": resize_longer, "resize_x": resize_x}
    ways = separate + sum(extent is not None for extent in (size, resize_shorter, resize_longer))
    if ways != 1:
        raise ArgumentValueError(
            "specify the size in exactly one way: size, resize_shorter, resize_longer, or resize_x and resize_y.",
            hint="Example: resize(x, size=[224, 224]) or resize(x, resize_shorter=256).",
            argument=next((name for name, extent in extents.items() if extent is not None), None),
        )
    if mode != "default" and (resize_shorter is not None or resize_longer is not None):
        raise ArgumentValueError(
            "mode cannot be used with resize_shorter or resize_longer, which imply it.", argument="mode"
        )
    if (roi_start is None) != (roi_end is None):
        name = "roi_start" if roi_end is None else "roi_end"
        raise ArgumentValueError("roi_start and roi_end must be used together.", argument=name)


def resize_geometry(extents: Sequence[int], **arguments: Any) -> ResizeGeometry:
    """`chunk_geometry` for the extents and arguments of one sample."""
    return _of_sample(chunk_geometry, extents, arguments)


def tensor_geometry(extents: Sequence[int], **arguments: Any) -> ResizeGeometry:
    """`chunk_tensor_geometry` for the extents and arguments of one sample."""
    return _of_sample(chunk_tensor_geometry, extents, arguments)


def _of_sample(compute: Callable[..., Any], extents: Sequence[int], arguments: dict[str, Any]) -> ResizeGeometry:
    rows = {
        name: value if value is None or name in _OF_CHUNK else np.array([value], np.float64)
        for name, value in arguments.items()
    }
    size, start, end = (tuple(values[0].tolist()) for values in compute(np.array([extents], np.int64), **rows))
    return ResizeGeometry(size, start, end)


def chunk_geometry(
    extents: np.ndarray,
    *,
    mode: str,
    max_size: Sequence[float] | None,
    roi_relative: bool,
    subpixel_scale: bool,
    **shaping: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return size and source window of the samples of a chunk.

    Args:
        extents: int64 [N, axes], source pixels along each spatial axis, outermost first.
        mode: handling of the aspect ratio, one of `MODES`.
        max_size: maximum extents of the result, one for all axes or one each; 0 or less for no limit.
        roi_relative: whether the region of interest is in fractions of the extents.
        subpixel_scale: whether to adjust the window about its center, so that rounding the size keeps the scale.
        shaping: the following arguments, each None, [N], [N, k] or a list of N vectors:
            size: extents, one for all axes or one each; 0 is determined by the others; negative mirrors.
            resize_shorter: extent of the shortest axis; 0 keeps it.
            resize_longer: extent of the longest axis.
            resize_x: extent of W; resize_y: of H; resize_z: of D.
            roi_start: start of the region of interest, one number per axis, or None for the whole source.
            roi_end: end of the region of interest; before the start mirrors.

    Returns:
        size, int64 [N, axes]; start and end, float64 [N, axes].

    Raises:
        ArgumentValueError: a list has the wrong length, or a size is not a number, with the sample.
        LimitError: an extent exceeds the limits.
    """
    count, axes = extents.shape
    if (shorter := shaping.get("resize_shorter")) is not None:
        wanted, mode = _columns([shorter] * axes, count), "not_smaller"
    elif (longer := shaping.get("resize_longer")) is not None:
        wanted, mode = _columns([longer] * axes, count), "not_larger"
    elif (size := shaping.get("size")) is not None:
        wanted = _for_each_axis("size", size, axes)
    else:
        wanted = _columns([shaping.get(name) for name in ("resize_z", "resize_y", "resize_x")][3 - axes :], count)
    region = _region(extents, shaping.get("roi_start"), shaping.get("roi_end"), roi_relative)
    return _fitted(extents, wanted, mode, max_size, region, subpixel_scale, "round", None)


def _columns(columns: Sequence[Any], count: int) -> np.ndarray:
    """Return columns [N] as float64 [N, k]; zeros for None."""
    found = zeros((count, len(columns)))
    for axis, values in enumerate(columns):
        if values is not None:
            found[:, axis] = values
    return found


def _for_each_axis(name: str, values: Any, axes: int) -> np.ndarray:
    """Return an argument, [N, k] or a list of N vectors, as float64 [N, axes].

    Raises:
        ArgumentValueError: as in `for_each_axis`, with the sample.
    """
    found = np.empty((len(values), axes))
    if not isinstance(values, list) and values.shape[1] in (1, axes) and _repeat_finite(values, found):
        return found
    for sample, row in enumerate(values):
        try:
            found[sample] = for_each_axis(name, row, axes)
        except ArgumentValueError as error:
            error.sample = sample
            raise
    return found


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _repeat_finite(values, found):
    """Write finite values, [N, 1 or axes], to [N, axes]; return False if one is not finite."""
    for n in range(found.shape[0]):
        for axis in range(found.shape[1]):
            value = values[n, axis if values.shape[1] > 1 else 0]
            if not np.isfinite(value):
                return False
            found[n, axis] = value
    return True


def _region(extents: np.ndarray, start: Any, end: Any, roi_relative: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Return start and end of the regions of interest in pixels, float64 [N, axes]; None without any.

    In float32, as in DALI: the rounding of the size may depend on it.
    """
    if start is None and end is None:
        return None
    if start is None or end is None:  # rules do not see values that vary per sample
        name = "roi_start" if end is None else "roi_end"
        raise ArgumentValueError("roi_start and roi_end must be specified together.", argument=name)
    units = np.maximum(extents, 1).astype(np.float32) if roi_relative else np.ones(extents.shape, np.float32)
    axes = extents.shape[1]
    edges = [_for_each_axis(name, values, axes) for name, values in (("roi_start", start), ("roi_end", end))]
    first, last = ((values.astype(np.float32) * units).astype(np.float64) for values in edges)
    return first, last


def chunk_tensor_geometry(
    extents: np.ndarray,
    *,
    sizes: Any,
    scales: Any,
    mode: str,
    max_size: Sequence[float] | None,
    roi_start: Any,
    roi_end: Any,
    roi_relative: bool,
    subpixel_scale: bool,
    size_rounding: str,
    alignment: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return size and source window for the resized axes of the samples of a chunk.

    Args:
        extents: extents of the sources along each resized axis, int64 [N, axes]; an empty axis stays empty.
        sizes: requested extents, [N, k] or a list of N vectors; None with `scales`.
        scales: factors of the source's extents, like `sizes`.
        mode: as in `chunk_geometry`.
        max_size: as in `chunk_geometry`.
        roi_start: start of the region of interest, like `sizes`, or None for the whole source.
        roi_end: end of the region of interest.
        roi_relative: as in `chunk_geometry`.
        subpixel_scale: as in `chunk_geometry`.
        size_rounding: rounding of the size, one of `ROUNDINGS`.
        alignment: fixed point of the window when the size is rounded, 0 (start) to 1 (end), like `sizes`.

    Returns:
        size, int64 [N, axes]; start and end, float64 [N, axes].

    Raises:
        ArgumentValueError: a list has the wrong length, or a size is not a number, with the sample.
        LimitError: an extent exceeds the limits.
    """
    axes = extents.shape[1]
    if sizes is not None:
        wanted = _for_each_axis("sizes", sizes, axes)
    else:
        # In float32, as in DALI: 5 * 0.7 is a tie there, and the output rule, whose constants have higher precision,
        # and the kernel must agree.
        factors = _for_each_axis("scales", scales, axes).astype(np.float32)
        wanted = (np.maximum(extents, 1).astype(np.float32) * factors).astype(np.float64)
    region = _region(extents, roi_start, roi_end, roi_relative)
    points = _for_each_axis("alignment", alignment, axes)
    return _fitted(extents, wanted, mode, max_size, region, subpixel_scale, size_rounding, points)


def for_each_axis(name: str, values: Any, axes: int) -> tuple[float, ...]:
    """Return an argument as one number per axis.

    Raises:
        ArgumentValueError: there are neither one nor `axes` numbers, or one is not finite.
    """
    numbers = tuple(float(value) for value in values)
    if len(numbers) not in (1, axes) or not all(map(math.isfinite, numbers)):
        raise ArgumentValueError(
            f"{name} must be one number or {axes}, one per resized axis; got {list(numbers)}.", argument=name
        )
    return numbers * axes if len(numbers) == 1 else numbers


def _fitted(
    extents: np.ndarray,
    wanted: np.ndarray,
    mode: str,
    max_size: Sequence[float] | None,
    region: tuple[np.ndarray, np.ndarray] | None,
    subpixel_scale: bool,
    size_rounding: str,
    alignment: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sizes, int64 [N, axes], and source windows, float64 [N, axes], that have the requested extents.

    Without an `alignment`, windows are adjusted about their center, and empty axes do not affect the scale of others.

    Raises:
        LimitError: an extent exceeds the limits.
    """
    sizes = np.empty(extents.shape, np.int64)
    starts, ends = (np.empty(extents.shape), np.empty(extents.shape)) if region is None else region
    largest = _fit(
        extents,
        wanted,
        MODES.index(mode),
        _NO_LIMITS if max_size is None else np.array(for_each_axis("max_size", max_size, extents.shape[1])),
        subpixel_scale,
        ROUNDINGS.index(size_rounding),
        region is not None,
        _CENTER if alignment is None else alignment,
        starts,
        ends,
        sizes,
    )
    if largest > _MAX_EXTENT:
        sample = int(sizes.max(1).argmax())
        try:
            check_shape(tuple(sizes[sample].tolist()), 1, "a result")
        except LimitError as error:
            error.sample = sample
            raise
    return sizes, starts, ends


# Scales and sizes before rounding are float32, as in DALI, because for two pixels at equal distance, the nearest one
# depends on it.
@_inner
def _single(value):
    """Return a number rounded to float32, as float64."""
    return np.float64(np.float32(value))


@_inner
def _extended(start, end):
    """Return a region of interest, extended about its center to the minimum extent."""
    if abs(end - start) >= _MIN_ROI:
        return start, end
    low, high = _single(min(start, end) - _MIN_ROI / 2), _single(max(start, end) + _MIN_ROI / 2)
    return (low, high) if start <= end else (high, low)


@_inner
def _scale(extents, wanted, mode, limits):
    """Return the scale of a sample along all axes, or along those without a size if `mode` allows different scales."""
    product, count, smallest, greatest, limit = 1.0, 0, np.inf, 0.0, np.inf
    for axis in range(len(extents)):
        if len(limits) and limits[axis] > 0:
            limit = min(limit, _single(limits[axis] / extents[axis]))
        if wanted[axis] != 0:
            scale = _single(abs(wanted[axis]) / extents[axis])
            product *= scale
            smallest, greatest = min(smallest, scale), max(greatest, scale)
            count += 1
    if mode in (_NOT_LARGER, _NOT_SMALLER):
        scale = smallest if mode == _NOT_LARGER else greatest
        return min(scale if count else 1.0, limit)
    return _single(product ** (1.0 / count)) if mode == _DEFAULT and count else 1.0


@_inner
def _exact_size(value, extent, scale, mode, limit):
    """Return the size of an axis before rounding; `value` is the requested size, `limit` is 0 for no limit."""
    if mode in (_NOT_LARGER, _NOT_SMALLER):
        # The axis that determines the scale gets exactly its requested extent, which the product may not equal.
        if limit > 0 and _single(limit / extent) == scale:
            value = limit
        elif value == 0 or _single(value / extent) != scale:
            value = extent * scale
    else:
        value = value if value != 0 else extent * scale
        value = limit if 0 < limit < value else value
    return _single(max(value, _MIN_SIZE)) if value != 0 else value


@_inner
def _rounded(value, size_rounding):
    """Return a size in pixels, at least 1."""
    if value > _LARGEST:  # larger sizes exceed all limits
        return np.int64(_LARGEST)
    if size_rounding == _ROUND:
        pixels = math.floor(value + 0.5)
    else:
        pixels = math.floor(value) if size_rounding == _TRUNCATE else math.ceil(value)
    return max(np.int64(pixels), np.int64(1))


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True, error_model="numpy")
def _fit(extents, wanted, mode, limits, subpixel_scale, size_rounding, has_regions, alignment, starts, ends, sizes):
    """Compute sizes, and replace the starts and ends of the regions of interest by those of the source windows.

    Args:
        extents: extents of the sources, int64 [N, axes]. Empty axes stay empty.
        wanted: float64 [N, axes], requested extents; 0: determined by the others; negative: mirrored.
        mode: index in `MODES`.
        limits: float64 [axes], maximum extents; 0 or less for no limit. Empty for no limits.
        subpixel_scale: whether windows are adjusted to rounded sizes.
        size_rounding: index in `ROUNDINGS`.
        has_regions: whether `starts` and `ends` are regions of interest; otherwise whole samples are resized.
        alignment: float64 [N, axes], fixed point of an adjusted window, 0 (start) to 1 (end). Empty for the center;
            requested extents of empty axes are then ignored.
        starts: float64 [N, axes], in pixels; replaced.
        ends: float64 [N, axes], in pixels; replaced.
        sizes: int64 [N, axes], output.

    Returns:
        the largest size.
    """
    axes, largest_size = extents.shape[1], np.int64(0)
    window = np.empty(axes)
    for n in range(extents.shape[0]):
        for axis in range(axes):
            if not has_regions:
                starts[n, axis], ends[n, axis] = 0, max(extents[n, axis], 1)
            if extents[n, axis] == 0 and alignment.size == 0:
                wanted[n, axis] = 0  # so that it does not affect the scale of other axes
            starts[n, axis], ends[n, axis] = _extended(starts[n, axis], ends[n, axis])
            window[axis] = _single(abs(ends[n, axis] - starts[n, axis]))
        scale = _scale(window, wanted[n], mode, limits)
        for axis in range(axes):
            limit = limits[axis] if limits.size else 0.0
            value = _exact_size(abs(wanted[n, axis]), window[axis], scale, mode, limit)
            rounded = _rounded(value, size_rounding)
            start, end = starts[n, axis], ends[n, axis]
            if wanted[n, axis] < 0:
                start, end = end, start
            if subpixel_scale and rounded != value and value > 0:
                part = alignment[n, axis] if alignment.size else 0.5
                fixed, factor = (1 - part) * start + part * end, rounded / value
                start, end = fixed + (start - fixed) * factor, fixed + (end - fixed) * factor
            starts[n, axis], ends[n, axis] = start, end
            sizes[n, axis] = rounded if extents[n, axis] else 0
            largest_size = max(largest_size, sizes[n, axis])
    return largest_size
