"""Computes size and source window from the arguments of a resize, for all operators that resize.

The output rules need the size and the kernels need the window; both must agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, LimitError, option_error_text
from dalify.base.limits import check_shape

__all__ = [
    "MODES",
    "ROUNDINGS",
    "ResizeGeometry",
    "check_resize_arguments",
    "chunk_geometry",
    "for_each_axis",
    "resize_geometry",
    "spatial_axes",
    "tensor_geometry",
]

MODES = ("default", "stretch", "not_larger", "not_smaller")
ROUNDINGS = ("round", "truncate", "ceil")

_SHAPING = ("size", "resize_shorter", "resize_longer", "resize_x", "resize_y", "resize_z", "roi_start", "roi_end")
_NOT_GIVEN = dict.fromkeys(_SHAPING)
_MAX_EXTENT = 1 << 40
_MIDDLE = (0.5,)
_MIN_SIZE = 0.1  # pixels: DALI's minimum scale is that of this size
_MIN_ROI = 1e-3  # minimum extent of a region of interest
_WHOLE = {"round": lambda size: math.floor(size + 0.5), "truncate": math.floor, "ceil": math.ceil}


@dataclass(frozen=True, slots=True)
class ResizeGeometry:
    """Result of `resize_geometry`.

    Attributes:
        size: size of the result along each spatial axis, pixels.
        start: start of the source window on each axis, in pixel edges.
        end: end of the source window; before `start` on mirrored axes.
    """

    size: tuple[int, ...]
    start: tuple[float, ...]
    end: tuple[float, ...]


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
    if mode not in MODES:
        raise ArgumentValueError(option_error_text("mode", mode, MODES))
    separate = any(extent is not None for extent in (resize_x, resize_y, resize_z))
    ways = separate + sum(extent is not None for extent in (size, resize_shorter, resize_longer))
    if ways != 1:
        raise ArgumentValueError(
            "specify the size in exactly one way: size, resize_shorter, resize_longer, or resize_x and resize_y.",
            hint="Example: resize(x, size=[224, 224]) or resize(x, resize_shorter=256).",
        )
    if mode != "default" and (resize_shorter is not None or resize_longer is not None):
        raise ArgumentValueError("mode cannot be used with resize_shorter or resize_longer, which imply it.")
    if (roi_start is None) != (roi_end is None):
        raise ArgumentValueError("roi_start and roi_end must be used together.")


def resize_geometry(
    extents: Sequence[int],
    *,
    mode: str,
    max_size: Sequence[float] | None,
    roi_relative: bool,
    subpixel_scale: bool,
    size: Any,
    resize_shorter: Any,
    resize_longer: Any,
    resize_x: Any,
    resize_y: Any,
    resize_z: Any,
    roi_start: Any,
    roi_end: Any,
) -> ResizeGeometry:
    """Return size and source window for one sample.

    Args:
        extents: source pixels along each spatial axis, outermost first.
        mode: handling of the aspect ratio, one of `MODES`.
        max_size: maximum extents of the result, one for all axes or one each; 0 or less for no limit.
        roi_relative: whether the region of interest is in fractions of the extents.
        subpixel_scale: if the size was rounded, adjust the window about its center to keep the scale.
        size: extents, one for all axes or one each; 0 is determined by the others; negative mirrors.
        resize_shorter: extent of the shortest axis; 0 keeps it.
        resize_longer: extent of the longest axis.
        resize_x: extent of W, and the same for `resize_y`, H, and `resize_z`, D.
        resize_y: see `resize_x`.
        resize_z: see `resize_x`.
        roi_start: start of the region of interest, one number per axis, or None for the whole source.
        roi_end: end of the region of interest; before the start mirrors.

    Raises:
        ArgumentValueError: a list has the wrong length, or a size is not a number.
    """
    axes = len(extents)
    if resize_shorter is not None:
        wanted, mode = (float(resize_shorter),) * axes, "not_smaller"
    elif resize_longer is not None:
        wanted, mode = (float(resize_longer),) * axes, "not_larger"
    elif size is not None:
        wanted = for_each_axis("size", size, axes)
    else:
        wanted = tuple(float(value or 0) for value in (resize_z, resize_y, resize_x)[3 - axes :])
    # An empty axis stays empty, and does not affect the scale of the others.
    wanted = tuple(value if extent else 0.0 for value, extent in zip(wanted, extents, strict=True))
    largest = _limits(max_size, axes)
    start, end = (0.0,) * axes, tuple(float(max(extent, 1)) for extent in extents)
    if roi_start is not None:
        units = end if roi_relative else (1.0,) * axes
        start = _edges(for_each_axis("roi_start", roi_start, axes), units)
        end = _edges(for_each_axis("roi_end", roi_end, axes), units)
    found = _geometry(wanted, mode, largest, start, end, subpixel_scale, "round", _MIDDLE * axes)
    return _without_pixels(found, extents)


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
        extents: int64 [N, axes], source pixels along each spatial axis.
        mode: as in `resize_geometry`.
        max_size: as in `resize_geometry`.
        roi_relative: as in `resize_geometry`.
        subpixel_scale: as in `resize_geometry`.
        shaping: the other arguments of `resize_geometry`: None, [N], [N, k] or a list of N vectors.

    Returns:
        size, int64 [N, axes]; start and end, float64 [N, axes].

    Raises:
        ArgumentValueError: as in `resize_geometry`, with the sample.
        LimitError: an extent exceeds the limits.
    """
    given = {name: values for name, values in shaping.items() if values is not None}
    columns = [_hashable(values) for values in given.values()]
    limits = None if max_size is None else tuple(max_size)
    found = []
    for sample, row in enumerate(extents.tolist()):
        own = tuple((name, column[sample]) for name, column in zip(given, columns, strict=True))
        try:
            geometry = _known_geometry(tuple(row), mode, limits, roi_relative, subpixel_scale, own)
            if max(geometry.size) > _MAX_EXTENT:
                check_shape(geometry.size, 1, "a result")
            found.append(geometry)
        except (ArgumentValueError, LimitError) as error:
            error.sample = sample
            raise
    sizes = np.array([geometry.size for geometry in found], np.int64)
    return sizes, np.array([geometry.start for geometry in found]), np.array([geometry.end for geometry in found])


def _hashable(values: Any) -> list[Any]:
    rows = [value.tolist() for value in values] if isinstance(values, list) else values.tolist()
    return [tuple(row) if isinstance(row, list) else row for row in rows]


@lru_cache(maxsize=4096)
def _known_geometry(
    extents: tuple[int, ...],
    mode: str,
    max_size: tuple[float, ...] | None,
    roi_relative: bool,
    subpixel_scale: bool,
    given: tuple[tuple[str, Any], ...],
) -> ResizeGeometry:
    options: dict[str, Any] = {"mode": mode, "max_size": max_size, "roi_relative": roi_relative}
    return resize_geometry(extents, **options, subpixel_scale=subpixel_scale, **{**_NOT_GIVEN, **dict(given)})


def tensor_geometry(
    extents: Sequence[int],
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
) -> ResizeGeometry:
    """Return size and source window for the resized axes of one sample of any data.

    Args:
        extents: extents of the source along each resized axis; an empty axis stays empty.
        sizes: requested extents, or None with `scales`.
        scales: factors of the source's extents.
        mode: as in `resize_geometry`.
        max_size: as in `resize_geometry`.
        roi_start: as in `resize_geometry`.
        roi_end: as in `resize_geometry`.
        roi_relative: as in `resize_geometry`.
        subpixel_scale: as in `resize_geometry`.
        size_rounding: rounding of the size, one of `ROUNDINGS`.
        alignment: fixed point of the window when the size is rounded, 0 (start) to 1 (end).

    Raises:
        ArgumentValueError: a list has the wrong length, or a size is not a number.
    """
    axes = len(extents)
    whole = tuple(float(max(extent, 1)) for extent in extents)
    if sizes is not None:
        wanted = for_each_axis("sizes", sizes, axes)
    else:
        factors = for_each_axis("scales", scales, axes)
        # In float32, as in DALI: 5 * 0.7 is a tie there, and the output rule, whose constants have higher precision,
        # and the kernel must agree.
        wanted = tuple(
            float(np.float32(extent) * np.float32(factor)) for extent, factor in zip(whole, factors, strict=True)
        )
    largest = _limits(max_size, axes)
    start, end = (0.0,) * axes, whole
    if roi_start is not None:
        units = whole if roi_relative else (1.0,) * axes
        start = _edges(for_each_axis("roi_start", roi_start, axes), units)
        end = _edges(for_each_axis("roi_end", roi_end, axes), units)
    points = for_each_axis("alignment", alignment, axes)
    found = _geometry(wanted, mode, largest, start, end, subpixel_scale, size_rounding, points)
    return _without_pixels(found, extents)


def _without_pixels(found: ResizeGeometry, extents: Sequence[int]) -> ResizeGeometry:
    """Return a geometry in which empty axes stay empty."""
    if all(extents):
        return found
    size = tuple(pixels if extent else 0 for extent, pixels in zip(extents, found.size, strict=True))
    return ResizeGeometry(size, found.start, found.end)


def for_each_axis(name: str, values: Any, axes: int) -> tuple[float, ...]:
    """Return an argument as one number per axis.

    Raises:
        ArgumentValueError: there are neither one nor `axes` numbers, or one is not finite.
    """
    numbers = tuple(float(value) for value in values)
    if len(numbers) not in (1, axes) or not all(map(math.isfinite, numbers)):
        raise ArgumentValueError(f"{name} must be one number or {axes}, one per resized axis; got {list(numbers)}.")
    return numbers * axes if len(numbers) == 1 else numbers


def _limits(max_size: Sequence[float] | None, axes: int) -> tuple[float, ...] | None:
    """Return the maximum extents, infinite for 0 or less; None for no limits."""
    if max_size is None:
        return None
    return tuple(limit if limit > 0 else math.inf for limit in for_each_axis("max_size", max_size, axes))


def _edges(values: Sequence[float], units: Sequence[float]) -> tuple[float, ...]:
    """Return edges of a region in pixels. In float32, as in DALI: the rounding of the size may depend on it."""
    return tuple(float(np.float32(value) * np.float32(unit)) for value, unit in zip(values, units, strict=True))


def _float32(value: float) -> float:
    return float(np.float32(value))


def _widened(start: Sequence[float], end: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Widen empty extents of a region of interest: by 1/2000 of a pixel on each side."""
    begins, ends = list(start), list(end)
    for axis, (begin, stop) in enumerate(zip(start, end, strict=True)):
        if abs(stop - begin) < _MIN_ROI:
            half = _MIN_ROI / 2
            low, high = _float32(min(begin, stop) - half), _float32(max(begin, stop) + half)
            begins[axis], ends[axis] = (low, high) if begin <= stop else (high, low)
    return tuple(begins), tuple(ends)


@lru_cache(maxsize=1024)
def _geometry(
    wanted: tuple[float, ...],
    mode: str,
    largest: tuple[float, ...] | None,
    start: tuple[float, ...],
    end: tuple[float, ...],
    subpixel_scale: bool,
    size_rounding: str,
    alignment: tuple[float, ...],
) -> ResizeGeometry:
    start, end = _widened(start, end)
    extents = [_float32(abs(stop - begin)) for begin, stop in zip(start, end, strict=True)]
    adjusted = _sizes([abs(value) for value in wanted], extents, mode, largest)
    size, begins, ends = [], [], []
    for unbounded, value, begin, stop, part in zip(adjusted, wanted, start, end, alignment, strict=True):
        exact = _float32(max(unbounded, _MIN_SIZE)) if unbounded else unbounded
        rounded = max(1, _WHOLE[size_rounding](exact))
        if value < 0:
            begin, stop = stop, begin
        if subpixel_scale and rounded != exact and exact > 0:
            fixed, factor = (1 - part) * begin + part * stop, rounded / exact
            begin, stop = fixed + (begin - fixed) * factor, fixed + (stop - fixed) * factor
        size.append(rounded)
        begins.append(begin)
        ends.append(stop)
    return ResizeGeometry(tuple(size), tuple(begins), tuple(ends))


def _sizes(wanted: list[float], extents: list[float], mode: str, largest: tuple[float, ...] | None) -> list[float]:
    """Return the size before it is rounded.

    Scales are float32, as in DALI, and so is the size in `_geometry`: for two pixels at equal distance, the
    nearest depends on it.
    """
    scales = [_float32(value / extent) for value, extent in zip(wanted, extents, strict=True) if value]
    if mode in ("not_larger", "not_smaller"):
        scale = (min if mode == "not_larger" else max)(scales, default=1.0)
        if largest is not None:
            scale = min(scale, *(_float32(limit / extent) for limit, extent in zip(largest, extents, strict=True)))
        return [extent * scale for extent in extents]
    missing = 1.0 if mode == "stretch" or not scales else _float32(math.prod(scales) ** (1 / len(scales)))
    sizes = [value or extent * missing for value, extent in zip(wanted, extents, strict=True)]
    return sizes if largest is None else [min(value, limit) for value, limit in zip(sizes, largest, strict=True)]
