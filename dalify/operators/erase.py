"""Erase regions of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays.convert import fill_in_range
from dalify.kernels.images.erase_torch import erase_samples_torch
from dalify.registry import PerSample, Spec, Vectors, operator

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
    """Return the regions of each sample as int [N, count, 2, axes]: starts and ends, within the data."""
    centered, is_anchor_relative, is_shape_relative = options
    # In float32 and in the same order as DALI, since truncation can turn a rounding error into a pixel.
    sizes = np.asarray(shape, np.float32).reshape(len(shape), -1)
    starts = np.zeros_like(sizes) if anchor is None else np.asarray(anchor, np.float32).reshape(len(anchor), -1)
    if starts.shape != sizes.shape:
        raise ShapeError(
            f"anchor and shape must have the same size; got {starts.shape[1]} and {sizes.shape[1]} numbers."
        )
    if sizes.shape[1] % extents.size:
        raise ShapeError(
            f"anchor and shape must have {extents.size} numbers per region, one per axis; got {sizes.shape[1]}."
        )
    form = (len(sizes), sizes.shape[1] // extents.size, extents.size)
    starts, sizes, scale = starts.reshape(form), sizes.reshape(form), extents.astype(np.float32)
    starts = starts * scale if is_anchor_relative else starts
    sizes = sizes * scale if is_shape_relative else sizes
    starts = starts - sizes * np.float32(0.5) if centered else starts
    bounds = np.empty((len(sizes), form[1], 2, form[2]), np.float32)
    bounds[:, :, 0], bounds[:, :, 1] = starts, starts + sizes
    np.trunc(bounds, out=bounds)
    bounds[np.isnan(bounds)] = 0
    # In integers: float32 cannot represent all extents.
    return np.minimum(np.clip(bounds, 0, _MAX_COORDINATE).astype(np.int64), extents)


def _representable(values: Any, spec: Spec) -> np.ndarray:
    """Return fill values, float64, as the element type of the data can represent them."""
    dtype = spec.dtype
    assert dtype is not None, "dalify bug: a kernel without the type of its input"
    fills = np.asarray(values, np.float64)
    return (fills != 0).astype(np.float64) if dtype == DALIDataType.BOOL else fill_in_range(fills, dtype.numpy)


def _check_fills(count: int, channels: int, sample: int | None = None) -> None:
    if count not in (1, channels):
        raise ShapeError(f"fill_value has {count} values; the data has {channels} channels.", sample=sample)


def _fills(values: np.ndarray, spec: Spec) -> np.ndarray:
    """Return the fill of each sample, [N, ...], shaped to be broadcast over a region."""
    dtype = spec.dtype
    assert dtype is not None, "dalify bug: a kernel without the type of its input"
    assert spec.shape is not None, "dalify bug: a kernel without the shape of its input"
    fills = _representable(values, spec).reshape(len(values), -1).astype(dtype.numpy)
    axes = len(spec.shape)
    if fills.shape[1] == 1:
        return fills.reshape(-1, *[1] * axes)
    axis = spec.axis("C")
    channels = spec.shape[axis]
    _check_fills(fills.shape[1], channels)
    fills = fills.reshape(-1, *[1] * axis, channels, *[1] * (axes - 1 - axis))
    if axis == axes - 1 and axes > 1:  # a whole row: copying single pixels is twenty times as slow
        fills = np.repeat(fills, spec.shape[-2], axis=-2)
    return fills


def _is_same_for_all(values: np.ndarray) -> bool:
    return len(values) == 1 or bool((values == values[:1]).all())


def _erase(out: Any, x: Any, spec: Spec, convert: Any, **arguments: Any) -> None:
    """Fill `out`, an array or a tensor; `convert` moves fill values to its device."""
    shape, anchor, values = arguments["shape"], arguments["anchor"], arguments["fill_value"]
    out[...] = x
    if shape is None:
        if anchor is not None:
            raise ShapeError("anchor requires shape.")
        return
    axes = _axes(spec, arguments["axes"], arguments["axis_names"])
    assert spec.shape is not None, "dalify bug: a kernel without the shape of its input"
    extents = np.array([spec.shape[axis] for axis in axes])
    both = arguments["normalized"]
    options = (
        arguments["centered_anchor"],
        both or bool(arguments["normalized_anchor"]),
        both or bool(arguments["normalized_shape"]),
    )
    regions = _regions(anchor, shape, extents, options)
    is_one_fill = _is_same_for_all(values)
    fills = convert(_fills(values[:1] if is_one_fill else values, spec))
    if is_one_fill and _is_same_for_all(regions):
        regions, samples = regions[:1], [slice(None)]
    else:
        samples = [slice(n, n + 1) for n in range(len(x))]
    for sample, sample_regions in zip(samples, regions.tolist(), strict=True):
        fill = fills if is_one_fill else fills[sample]
        for begin, end in sample_regions:
            window = [sample, *[slice(None)] * len(spec.shape)]
            for axis, first, last in zip(axes, begin, end, strict=True):
                window[axis + 1] = slice(first, max(first, last))
            whole = [
                slice(None) if extent == 1 else part for extent, part in zip(fill.shape[1:], window[1:], strict=True)
            ]
            out[tuple(window)] = fill[(slice(None), *whole)]


@erase.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    anchor: np.ndarray | None,
    axes: tuple[int, ...] | None,
    axis_names: str | None,
    centered_anchor: bool,
    fill_value: np.ndarray,
    normalized: bool,
    normalized_anchor: bool | None,
    normalized_shape: bool | None,
    shape: np.ndarray | None,
    spec: Spec,
) -> None:
    _erase(
        out, x, spec, lambda fill: fill, anchor=anchor, axes=axes, axis_names=axis_names, shape=shape,
        centered_anchor=centered_anchor, fill_value=fill_value, normalized=normalized,
        normalized_anchor=normalized_anchor, normalized_shape=normalized_shape,
    )  # fmt: skip


@erase.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
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
    found: list[np.ndarray] = []
    for n, extents in enumerate(x.shapes):
        sizes = np.zeros((1, 0), np.float32) if shape is None else shape[n][None]
        try:
            found.append(_regions(None if anchor is None else anchor[n][None], sizes, extents[places], options)[0])
        except ShapeError as error:
            error.sample = n
            raise
    regions = np.zeros((len(x), max(map(len, found)), 2, x.ndim), np.int64)  # what is not set below is empty
    for n, of_sample in enumerate(found):
        regions[n, : len(of_sample), 1] = x.shapes[n]
        regions[n, : len(of_sample), :, places] = of_sample.transpose(2, 0, 1)
    fills = [_representable(row, spec) for row in fill_value]
    channel_axis = 0
    if any(len(row) > 1 for row in fills):
        channel_axis = spec.axis("C")
        for n, row in enumerate(fills):
            _check_fills(len(row), int(x.shapes[n, channel_axis]), sample=n)
    count = max(map(len, fills))
    table = np.stack([np.pad(row, (0, count - len(row)), "edge") for row in fills])
    erase_samples_torch(out, x, regions, table, channel_axis)
