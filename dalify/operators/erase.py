"""Erase regions of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.registry import PerSample, Spec, operator


def _axes(x: Spec, axes: Sequence[int] | None, axis_names: str | None) -> tuple[int, ...]:
    """Return the axes that anchors and shapes refer to."""
    layout = x.layout or ""
    if axis_names:
        return tuple(x.axis(letter) for letter in axis_names)
    if axes:
        for axis in axes:
            if not 0 <= axis < (x.ndim or 0):
                raise IndexingError(f"axes has the entry {axis}; the data have {x.ndim} axes.")
        return tuple(axes)
    if not layout:
        raise LayoutError(
            "the data have no layout, so `axes` must say what anchor and shape refer to.", hint="axes=[0, 1]"
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

    A region covers the positions from ``trunc(anchor)`` up to, not including, ``trunc(anchor + shape)`` in each axis
    that is named, and all positions of the others; what lies outside the data is ignored.

    Args:
        x: any data.
        anchor: first corner of the regions, one after the other, a number for each axis; by default 0.
        axes: the axes that anchors and shapes refer to; by default, without `axis_names`, all but C.
        axis_names: the same by letters of the layout; goes before `axes`.
        centered_anchor: the anchors are the middles of the regions.
        fill_value: one value, or one per channel; integers are truncated and saturated.
        normalized: anchors and shapes are parts of the extents.
        normalized_anchor: the same for anchors alone.
        normalized_shape: the same for shapes alone.
        shape: extents of the regions, as many numbers as `anchor`; none erases nothing.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: `normalized` together with one of the other two.
        ShapeError: anchors and shapes do not fit each other, or the axes; or fill values do not fit the channels.
        LayoutError: an axis that the layout does not name.
        IndexingError: an axis that the data do not have.

    Example:
        >>> images = fn.erase(images, anchor=[0.2, 0.3], shape=[0.1, 0.2], normalized=True)  # doctest: +SKIP
    """
    if normalized and (normalized_anchor is not None or normalized_shape is not None):
        raise ArgumentValueError("give either `normalized`, or `normalized_anchor` and `normalized_shape`.")
    _axes(x, axes, axis_names)
    return x


def _regions(anchor: Any, shape: Any, extents: np.ndarray, options: tuple[bool, bool, bool]) -> np.ndarray:
    """Return the regions of one sample as int [count, 2, axes]: starts and ends, within the data."""
    centered, anchor_is_part, shape_is_part = options
    sizes = np.asarray(shape, np.float64).reshape(-1)
    starts = np.zeros(sizes.size) if anchor is None else np.asarray(anchor, np.float64).reshape(-1)
    if starts.size != sizes.size:
        raise ShapeError(f"anchor has {starts.size} numbers and shape {sizes.size}; they must be as many.")
    if sizes.size % extents.size:
        raise ShapeError(f"anchor and shape need {extents.size} numbers per region, one per axis; got {sizes.size}.")
    # In float32 and in this order like DALI, since truncating makes a pixel of a rounding error.
    starts, sizes = (
        starts.reshape(-1, extents.size).astype(np.float32),
        sizes.reshape(-1, extents.size).astype(np.float32),
    )
    scale = extents.astype(np.float32)
    starts = starts * scale if anchor_is_part else starts
    sizes = sizes * scale if shape_is_part else sizes
    starts = starts - sizes * np.float32(0.5) if centered else starts
    bounds = np.stack([starts, starts + sizes], axis=1)
    return np.clip(np.nan_to_num(np.trunc(bounds)), 0, extents).astype(np.int64)


def _fill(values: np.ndarray, spec: Spec) -> np.ndarray:
    """Return the fill of one sample, shaped to be broadcast over a region."""
    dtype = spec.dtype
    assert dtype is not None, "dalify bug: a kernel without the type of its input"
    fill = np.asarray(values, np.float64)
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        fill = np.clip(np.trunc(fill), limits.min, limits.max)
    elif dtype == DALIDataType.BOOL:
        fill = fill != 0
    if fill.size == 1:
        return fill.astype(dtype.numpy).reshape(())
    assert spec.shape is not None, "dalify bug: a kernel without the shape of its input"
    axis = spec.axis("C")
    if fill.size != spec.shape[axis]:
        raise ShapeError(f"fill_value has {fill.size} values; the data have {spec.shape[axis]} channels.")
    return fill.astype(dtype.numpy).reshape(-1, *[1] * (len(spec.shape) - 1 - axis))


def _erase(out: Any, x: Any, spec: Spec, convert: Any, **arguments: Any) -> None:
    """Fill `out`; works on arrays and on tensors, `convert` brings a fill value to the device."""
    shape, anchor = arguments["shape"], arguments["anchor"]
    out[...] = x
    if shape is None:
        if anchor is not None:
            raise ShapeError("anchor is given without shape.")
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
    for n in range(len(x)):
        fill = convert(_fill(arguments["fill_value"][n], spec))
        for begin, end in _regions(None if anchor is None else anchor[n], shape[n], extents, options):
            window: list[Any] = [slice(None)] * len(spec.shape)
            for axis, first, last in zip(axes, begin.tolist(), end.tolist(), strict=True):
                window[axis] = slice(first, last)
            out[(n, *window)] = fill


@erase.cpu
def _(
    out, x, *, anchor, axes, axis_names, centered_anchor, fill_value, normalized, normalized_anchor, normalized_shape,
    shape, spec,
):  # fmt: skip
    _erase(
        out, x, spec, lambda fill: fill, anchor=anchor, axes=axes, axis_names=axis_names, shape=shape,
        centered_anchor=centered_anchor, fill_value=fill_value, normalized=normalized,
        normalized_anchor=normalized_anchor, normalized_shape=normalized_shape,
    )  # fmt: skip


@erase.gpu
def _(
    out, x, *, anchor, axes, axis_names, centered_anchor, fill_value, normalized, normalized_anchor, normalized_shape,
    shape, spec,
):  # fmt: skip
    def convert(fill: np.ndarray) -> Any:
        return x.new_tensor(fill.tolist()).reshape(fill.shape)

    _erase(
        out, x, spec, convert, anchor=anchor, axes=axes, axis_names=axis_names, shape=shape,
        centered_anchor=centered_anchor, fill_value=fill_value, normalized=normalized,
        normalized_anchor=normalized_anchor, normalized_shape=normalized_shape,
    )  # fmt: skip
