"""Erase regions of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalify.base.array_at import array_at, copy_bytes
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from dalify.base.wording import counted
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import fill_elements, fill_in_range
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.gather import fill_run
from dalify.kernels.images.erase_torch import erase_samples_torch
from dalify.registry import AnySamples, AnyShape, Parameters, PerSample, Spec, Vectors, operator

_MAX_COORDINATE = np.float32(2.0**62)


@dataclass(slots=True)
class Coordinates(Parameters):
    """What anchors and shapes refer to.

    Attributes:
        axes: the axes that anchors and shapes refer to; by default all but C.
        axis_names: the same as letters of the layout; overrides `axes`.
        centered_anchor: the anchors are the centers of the regions.
        normalized: anchors and shapes are fractions of the extents.
        normalized_anchor: the same for anchors only.
        normalized_shape: the same for shapes only.
    """

    axes: list[int] | None = None
    axis_names: str | None = None
    centered_anchor: bool = False
    normalized: bool = False
    normalized_anchor: bool | None = None
    normalized_shape: bool | None = None

    @property
    def options(self) -> tuple[bool, bool, bool]:
        """Whether anchors are centers, anchors are fractions, and shapes are fractions."""
        return (
            self.centered_anchor,
            self.normalized or bool(self.normalized_anchor),
            self.normalized or bool(self.normalized_shape),
        )

    def chosen_axes(self, x: Spec) -> list[int]:
        """Return the axes that anchors and shapes refer to."""
        layout = x.layout or ""
        if self.axis_names:
            return [x.axis(letter) for letter in self.axis_names]
        if self.axes:
            for axis in self.axes:
                if not 0 <= axis < (x.ndim or 0):
                    raise IndexingError(f"axes contains {axis}; the data has {counted(x.ndim, 'axis')}.")
            return list(self.axes)
        if not layout:
            raise LayoutError(
                "the data has no layout, so axes must specify what anchor and shape refer to.", hint="axes=[0, 1]"
            )
        return [axis for axis, letter in enumerate(layout) if letter != "C"]


@operator(alphabetical=True)
def erase(
    x: Spec,
    /,
    *,
    anchor: PerSample[AnyShape[float | list[float]]] | None = None,
    coordinates: Coordinates,
    fill_value: PerSample[float | list[float]] = 0.0,
    shape: PerSample[AnyShape[float | list[float]]] | None = None,
) -> Spec:
    """Fill one or more regions with a value.

    A region covers the positions from ``trunc(anchor)`` to ``trunc(anchor + shape)``, exclusive, along the specified
    axes, and all positions along the others. Positions outside the data are ignored.

    Args:
        x: any data.
        anchor: first corners of the regions, concatenated, a number for each axis; by default 0.
        fill_value: one value, or one per channel. In integer types fractions are truncated, and values out of
            range keep their lowest bits: -1 is 255 in uint8.
        shape: extents of the regions, as many numbers as `anchor`; by default nothing is erased.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: `normalized` together with `normalized_anchor` or `normalized_shape`.
        ShapeError: the sizes of anchors, shapes and axes, or of fill values and channels, do not match.
        LayoutError: an axis is not in the layout.
        IndexingError: an axis does not exist.

    Example:
        >>> images = fn.erase(images, anchor=[0.2, 0.3], shape=[0.1, 0.2], normalized=True)  # doctest: +SKIP
    """
    one, other = coordinates.normalized_anchor, coordinates.normalized_shape
    if coordinates.normalized and (one is not None or other is not None):
        raise ArgumentValueError("specify either normalized, or normalized_anchor and normalized_shape.")
    coordinates.chosen_axes(x)
    return x


def _regions(
    anchor: np.ndarray | None, shape: np.ndarray, extents: np.ndarray, axes: list[int], options: tuple[bool, bool, bool]
) -> np.ndarray:
    """Return the regions of each sample as int64 [N, count, 2, ndim]: starts and ends, within the extents [N, ndim]."""
    sizes = np.asarray(shape, np.float32).reshape(len(shape), -1)
    starts = np.zeros_like(sizes) if anchor is None else np.asarray(anchor, np.float32).reshape(len(anchor), -1)
    if starts.shape != sizes.shape:
        raise ShapeError(
            f"anchor and shape must have the same size; got {starts.shape[1]} and {counted(sizes.shape[1], 'number')}."
        )
    if sizes.shape[1] % len(axes):
        raise ShapeError(
            f"anchor and shape must have {counted(len(axes), 'number')} per region, one per axis; got {sizes.shape[1]}."
        )
    regions = np.empty((len(sizes), sizes.shape[1] // len(axes), 2, extents.shape[1]), np.int64)
    _fill_regions(regions, read_only(starts), read_only(sizes), extents, np.array(axes), *options)
    return regions


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _fill_regions(regions, starts, sizes, extents, axes, is_centered, is_anchor_relative, is_shape_relative):
    # In float32 and in the same order as DALI, since truncation can turn a rounding error into a pixel.
    for n in range(len(regions)):
        for number in range(regions.shape[1]):
            for axis in range(extents.shape[1]):  # assigning slices would compile for longer
                regions[n, number, 0, axis], regions[n, number, 1, axis] = 0, extents[n, axis]
            for k in range(len(axes)):
                start, size = starts[n, number * len(axes) + k], sizes[n, number * len(axes) + k]
                extent = extents[n, axes[k]]
                start = start * np.float32(extent) if is_anchor_relative else start
                size = size * np.float32(extent) if is_shape_relative else size
                start = start - size * np.float32(0.5) if is_centered else start
                bounds = start, start + size
                for side in range(2):
                    # As integers they are compared with the extent: float32 cannot represent all extents.
                    bound = min(max(bounds[side], np.float32(0)), _MAX_COORDINATE)
                    is_number = bounds[side] == bounds[side]
                    regions[n, number, side, axes[k]] = min(np.int64(bound), extent) if is_number else 0


def _found_regions(
    anchor: Vectors | None,
    shape: Vectors | None,
    extents: np.ndarray,
    axes: list[int],
    options: tuple[bool, bool, bool],
) -> np.ndarray:
    """Return `_regions`, also for lists of different lengths; additional regions are empty."""
    if shape is None:
        return np.zeros((len(extents), 0, 2, extents.shape[1]), np.int64)
    if not isinstance(shape, list) and not isinstance(anchor, list):
        return _regions(anchor, shape, extents, axes, options)
    found: list[np.ndarray] = []
    for n, sizes in enumerate(shape):
        own = None if anchor is None else anchor[n][None]
        try:
            found.append(_regions(own, sizes[None], extents[n : n + 1], axes, options)[0])
        except ShapeError as error:
            error.sample = n
            raise
    regions = np.zeros((len(found), max(map(len, found)), 2, extents.shape[1]), np.int64)
    for row, of_sample in zip(regions, found, strict=True):
        row[: len(of_sample)] = of_sample
    return regions


def _fill_table(values: Vectors, spec: Spec, x: AnySamples) -> tuple[np.ndarray, int]:
    """Return the fill values of each sample, [N, K], one or one for each channel, and the axis of channels."""
    counts = np.array([len(row) for row in values]) if isinstance(values, list) else values.shape[1]
    axis = 0
    if np.any(counts != 1):
        axis = spec.axis("C")
        wrong = np.flatnonzero((counts != 1) & (counts != x.shapes[:, axis]))
        if len(wrong):
            n = int(wrong[0])
            raise ShapeError(
                f"fill_value has {counted(len(values[n]), 'value')}; the data has "
                f"{counted(x.shapes[n, axis], 'channel')}.",
                sample=n,
            )
    if isinstance(values, list):
        longest = max(map(len, values))
        values = np.stack([np.pad(row, (0, longest - len(row)), "edge") for row in values])
    return values, axis


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


def _is_empty(values: Vectors | None) -> bool:
    return isinstance(values, np.ndarray) and not values.shape[-1]


@erase.cpu_samples
@erase.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    anchor: Vectors | None,
    coordinates: Coordinates,
    fill_value: Vectors,
    shape: Vectors | None,
    spec: Spec,
) -> None:
    # As in DALI, an empty list is an argument that is not given.
    anchor, shape = (None if _is_empty(values) else values for values in (anchor, shape))
    fill_value = np.zeros((len(x), 1), np.float32) if _is_empty(fill_value) else fill_value
    if shape is None and anchor is not None:
        raise ShapeError("anchor requires shape.")
    regions = _found_regions(anchor, shape, x.shapes, coordinates.chosen_axes(spec), coordinates.options)
    table, channel_axis = (np.zeros((len(x), 1)), 0) if shape is None else _fill_table(fill_value, spec, x)
    if isinstance(x, Samples):
        assert isinstance(out, Samples), "dalify bug: input and output on two devices"
        fills = fill_elements(table, x.dtype).view(f"u{x.dtype.itemsize}")
        _erase(out.addresses, x.addresses, x.shapes, regions, fills, channel_axis)
    else:
        assert isinstance(out, DeviceSamples), "dalify bug: input and output on two devices"
        assert spec.dtype is not None, "dalify bug: a kernel without the type of its input"
        erase_samples_torch(out, x, regions, fill_in_range(table, spec.dtype.numpy), channel_axis)
