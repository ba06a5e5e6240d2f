"""Erase regions of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.array_at import array_at, copy_bytes
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import fill_in_range, saturate_cast
from dalify.kernels.arrays.gather import fill_run
from dalify.kernels.images.erase_torch import erase_samples_torch
from dalify.registry import AnySamples, PerSample, Spec, Vectors, operator

_MAX_COORDINATE = np.float32(2.0**62)


def _axes(x: Spec, axes: Sequence[int] | None, axis_names: str | None) -> tuple[int, ...]:
    """Return the axes that anchors and shapes refer to."""
    layout = x.layout or ""
    if axis_names:
        return tuple(x.axis(letter) for letter in axis_names)
    if axes:
        for axis in axes:
            if not 0 <= axis < (x.ndim or 0):
                raise IndexingError(f"axes contains {axis}; the data has {x.ndim} axes.")
        return tuple(axes)
    if not layout:
        raise LayoutError(
            "the data has no layout, so axes must specify what anchor and shape refer to.", hint="axes=[0, 1]"
        )
    return tuple(axis for axis, letter in enumerate(layout) if letter != "C")


@operator
def erase(
    x: Spec,
    /,
    *,
    anchor: PerSample[float | list[float]] | None = None,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    centered_anchor: bool = False,
    fill_value: PerSample[float | list[float]] = 0.0,
    normalized: bool = False,
    normalized_anchor: bool | None = None,
    normalized_shape: bool | None = None,
    shape: PerSample[float | list[float]] | None = None,
) -> Spec:
    """Fill one or more regions with a value.

    A region covers the positions from ``trunc(anchor)`` to ``trunc(anchor + shape)``, exclusive, along the specified
    axes, and all positions along the others. Positions outside the data are ignored.

    Args:
        x: any data.
        anchor: first corners of the regions, concatenated, a number for each axis; by default 0.
        axes: the axes that anchors and shapes refer to; by default all but C.
        axis_names: the same as letters of the layout; overrides `axes`.
        centered_anchor: the anchors are the centers of the regions.
        fill_value: one value, or one per channel. In integer types fractions are truncated, and what does not
            fit keeps its lowest bits: -1 is 255 in uint8.
        normalized: anchors and shapes are fractions of the extents.
        normalized_anchor: the same for anchors only.
        normalized_shape: the same for shapes only.
        shape: extents of the regions, as many numbers as `anchor`; by default nothing is erased.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: `normalized` together with one of the other two.
        ShapeError: the sizes of anchors, shapes and axes, or of fill values and channels, do not match.
        LayoutError: an axis is not in the layout.
        IndexingError: an axis does not exist.

    Example:
        >>> images = fn.erase(images, anchor=[0.2, 0.3], shape=[0.1, 0.2], normalized=True)  # doctest: +SKIP
    """
    if normalized and (normalized_anchor is not None or normalized_shape is not None):
        raise ArgumentValueError("specify either normalized, or normalized_anchor and normalized_shape.")
    _axes(x, axes, axis_names)
    return x


def _regions(anchor: Any, shape: Any, extents: np.ndarray, options: tuple[bool, bool, bool]) -> np.ndarray:
    """Return the regions of each sample as int [N, count, 2, axes]: starts and ends, within the extents [N, axes]."""
    centered, is_anchor_relative, is_shape_relative = options
    # In float32 and in the same order as DALI, since truncation can turn a rounding error into a pixel.
    sizes = np.asarray(shape, np.float32).reshape(len(shape), -1)
    starts = np.zeros_like(sizes) if anchor is None else np.asarray(anchor, np.float32).reshape(len(anchor), -1)
    if starts.shape != sizes.shape:
        raise ShapeError(
            f"anchor and shape must have the same size; got {starts.shape[1]} and {sizes.shape[1]} numbers."
        )
    axes = extents.shape[1]
    if sizes.shape[1] % axes:
        raise ShapeError(f"anchor and shape must have {axes} numbers per region, one per axis; got {sizes.shape[1]}.")
    form = (len(sizes), sizes.shape[1] // axes, axes)
    starts, sizes, scale = starts.reshape(form), sizes.reshape(form), extents.astype(np.float32)[:, None]
    starts = starts * scale if is_anchor_relative else starts
    sizes = sizes * scale if is_shape_relative else sizes
    starts = starts - sizes * np.float32(0.5) if centered else starts
    bounds = np.empty((len(sizes), form[1], 2, form[2]), np.float32)
    bounds[:, :, 0], bounds[:, :, 1] = starts, starts + sizes
    np.trunc(bounds, out=bounds)
    bounds[np.isnan(bounds)] = 0
    # In integers: float32 cannot represent all extents.
    return np.minimum(np.clip(bounds, 0, _MAX_COORDINATE).astype(np.int64), extents[:, None, None])


def _found_regions(anchor: Any, shape: Any, extents: np.ndarray, options: tuple[bool, bool, bool]) -> np.ndarray:
    """Return `_regions`, also for lists of different lengths; additional regions are empty."""
    if shape is None:
        return np.zeros((len(extents), 0, 2, extents.shape[1]), np.int64)
    if not isinstance(shape, list) and not isinstance(anchor, list):
        return _regions(anchor, shape, extents, options)
    found: list[np.ndarray] = []
    for n, sizes in enumerate(shape):
        own = None if anchor is None else anchor[n][None]
        try:
            found.append(_regions(own, sizes[None], extents[n : n + 1], options)[0])
        except ShapeError as error:
            error.sample = n
            raise
    regions = np.zeros((len(found), max(map(len, found)), 2, extents.shape[1]), np.int64)
    for row, of_sample in zip(regions, found, strict=True):
        row[: len(of_sample)] = of_sample
    return regions


def _fill_table(values: Vectors, spec: Spec, x: AnySamples) -> tuple[np.ndarray, int]:
    """Return the fill values of each sample, [N, K], one or one for each channel, and the axis of channels."""
    counts = np.array([len(row) for row in values] if isinstance(values, list) else [values.shape[1]] * len(values))
    axis = 0
    if (counts != 1).any():
        axis = spec.axis("C")
        wrong = np.flatnonzero((counts != 1) & (counts != x.shapes[:, axis]))
        if len(wrong):
            n = int(wrong[0])
            raise ShapeError(f"fill_value has {counts[n]} values; the data has {x.shapes[n, axis]} channels.", sample=n)
    if isinstance(values, list):
        values = np.stack([np.pad(row, (0, counts.max() - len(row)), "edge") for row in values])
    assert spec.dtype is not None, "dalify bug: a kernel without the type of its input"
    return fill_in_range(values, spec.dtype.numpy), axis


@njit(nogil=True, cache=True)
def _erase(out_at, x_at, shapes, regions, fills, channel_axis):
    """Copy samples and fill regions [N, R, 2, axes] by runs; the elements are unsigned integers of their size."""
    axes = shapes.shape[1]
    index = np.empty(axes, np.int64)
    for n in range(len(out_at)):
        shape, size = shapes[n], np.int64(1)
        for extent in shape:
            size *= extent
        copy_bytes(out_at[n], x_at[n], size * fills.itemsize)
        out = array_at(out_at[n], (size,), fills)
        for begin, end in regions[n]:
            is_empty = False
            for axis in range(axes):
                is_empty |= begin[axis] >= end[axis]
            if is_empty:
                continue
            last, run = axes - 1, np.int64(1)  # the axes after `last` are filled completely
            while last > 0 and begin[last] == 0 and end[last] == shape[last]:
                run *= shape[last]
                last -= 1
            run *= end[last] - begin[last]
            units = np.int64(1)
            for axis in range(channel_axis + 1, axes):
                units *= shape[axis]
            index[:] = begin
            while index[0] < end[0]:
                first = np.int64(0)
                for axis in range(axes):
                    first = first * shape[axis] + index[axis]
                if channel_axis < last and fills.shape[1] > 1:
                    channel = index[channel_axis]
                    fill_run(out, first, run, fills[n, channel : channel + 1], 0, 1)
                else:
                    fill_run(out, first, run, fills[n], index[channel_axis], units)
                if last == 0:
                    break
                axis = last - 1
                index[axis] += 1
                while axis > 0 and index[axis] == end[axis]:
                    index[axis] = begin[axis]
                    axis -= 1
                    index[axis] += 1


@erase.cpu_samples
@erase.gpu_samples
def _(
    out: Any,
    x: AnySamples,
    *,
    anchor: Vectors | None,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    centered_anchor: bool,
    fill_value: Vectors,
    normalized: bool,
    normalized_anchor: bool | None,
    normalized_shape: bool | None,
    shape: Vectors | None,
    spec: Spec,
) -> None:
    if shape is None and anchor is not None:
        raise ShapeError("anchor requires shape.")
    places = list(_axes(spec, axes, axis_names))
    options = (centered_anchor, normalized or bool(normalized_anchor), normalized or bool(normalized_shape))
    found = _found_regions(anchor, shape, x.shapes[:, places], options)
    regions = np.zeros((*found.shape[:3], x.ndim), np.int64)
    regions[:, :, 1] = x.shapes[:, None]
    regions[..., places] = found
    table, channel_axis = (np.zeros((len(x), 1)), 0) if shape is None else _fill_table(fill_value, spec, x)
    if isinstance(x, Samples):
        fills = np.empty(table.shape, x.dtype)
        saturate_cast(fills, table)
        _erase(out.addresses, x.addresses, x.shapes, regions, fills.view(f"u{x.dtype.itemsize}"), channel_axis)
    else:
        erase_samples_torch(out, x, regions, table, channel_axis)
