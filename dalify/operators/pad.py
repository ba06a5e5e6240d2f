"""Pad samples to a shape, an alignment, or the maximum extents of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from dalify.base.limits import check_shape
from dalify.base.optional import torch
from dalify.data.batch import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.convert import fill_in_range, saturate_cast
from dalify.kernels.arrays.gather import copy_window, copy_window_torch
from dalify.kernels.arrays.windows_torch import pad_samples_torch, window_samples_torch
from dalify.registry import Memory, PerSample, Spec, Vectors, operator

_SMALL_BYTES = 1 << 15


@operator(batchwise=True)
def pad(
    x: Spec,
    /,
    *,
    align: PerSample[list[int]] | None = None,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    fill_value: PerSample[float] = 0.0,
    shape: PerSample[list[int]] | None = None,
) -> Spec:
    """Pad samples at the end of the specified axes. Samples are never cropped.

    Args:
        x: any data.
        align: extents become multiples of these, after `shape`; one number for all axes or one each.
        axes: axes to pad; negative axes count from the end. By default, without `axis_names`, all axes.
        axis_names: letters of the axes to pad.
        fill_value: value of the padding.
        shape: minimum extents; -1 (the default): the maximum of the batch. One number for all axes or one each.

    Returns:
        Same dtype and layout.

    Raises:
        ArgumentValueError: `axes` together with `axis_names`, or a wrong number of extents.
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> boxes = fn.pad(boxes, axes=[0], fill_value=-1)  # doctest: +SKIP
    """
    if axes is not None and axis_names:
        raise ArgumentValueError("axes and axis_names are mutually exclusive.")
    if axis_names and not set(axis_names) <= set(x.layout or ""):
        raise LayoutError(f"axis_names {axis_names!r} must all be in the layout of the data, {x.layout!r}.")
    return x.replace(shape=None)


def _axes_of(ndim: int, layout: str, axes: Any, axis_names: str | None) -> list[int]:
    if axis_names:
        return [layout.index(letter) for letter in axis_names]
    chosen = list(range(ndim)) if axes is None or len(axes) == 0 else [int(axis) for axis in axes]
    if not all(-ndim <= axis < ndim for axis in chosen):
        raise IndexingError(f"axes {chosen} are out of range for data with {ndim} dimensions.")
    return [axis % ndim for axis in chosen]


def _per_axis(name: str, values: Any, axes: list[int], default: int) -> list[int]:
    numbers = [default] if values is None or not len(values) else [int(value) for value in values]
    if len(numbers) not in (1, len(axes)):
        raise ArgumentValueError(f"{name} must be one number or {len(axes)}, one for each axis; got {len(numbers)}.")
    return numbers * len(axes) if len(numbers) == 1 else numbers


def _padded_shapes(x: Batch, axes: Any, axis_names: str | None, shape: Any, align: Any) -> list[tuple[int, ...]]:
    shapes = [list(extents) for extents in x.shapes()]
    given = [values for values in (axes, shape, align) if values is not None]
    is_uniform = x.dense is not None and all(
        isinstance(rows, np.ndarray) and (rows == rows[:1]).all() for rows in given
    )
    count = len(shapes)
    shapes = shapes[:1] if is_uniform else shapes
    largest = np.max(shapes, axis=0) if shapes and shapes[0] else []
    results = []
    for n, extents in enumerate(shapes):
        chosen = _axes_of(len(extents), x.layout, None if axes is None else axes[n], axis_names)
        minima = _per_axis("shape", None if shape is None else shape[n], chosen, -1)
        multiples = _per_axis("align", None if align is None else align[n], chosen, 1)
        for axis, extent, multiple in zip(chosen, minima, multiples, strict=True):
            if multiple < 1:
                raise ArgumentValueError(f"align must be positive; got {multiple}.")
            required = max(int(largest[axis]) if extent < 0 else extent, extents[axis])
            extents[axis] = -(-required // multiple) * multiple
        check_shape(extents, x.dtype.numpy.itemsize if x.dtype is not None else 1, "a result")
        results.append(tuple(extents))
    return results * count if is_uniform else results


@pad.cpu
@pad.gpu
def _(
    x: Batch,
    *,
    axes: Vectors | None,
    axis_names: str | None,
    shape: Vectors | None,
    align: Vectors | None,
    fill_value: np.ndarray,
    memory: Memory,
) -> Any:
    shapes = _padded_shapes(x, axes, axis_names, shape, align)
    count = len(shapes)
    assert x.ndim is not None, "dalify bug: a batch without a number of dimensions"
    fills = fill_in_range(fill_value, x.dtype.numpy)
    if x.device == "gpu":
        return _padded_torch(x, shapes, fills, memory)
    results = memory(0, count, shapes[0]) if len(set(shapes)) == 1 else None
    if results is not None and x.dense is not None and (fills == fills[0]).all():
        copy_window(results, x.dense, np.zeros((count, x.ndim), np.int64), fill_values=fills[0])
        return results
    if results is None:
        results = [memory(n, 1, extents)[0, ...] for n, extents in enumerate(shapes)]
    begin = np.zeros((1, x.ndim), np.int64)
    values = _converted(fills, x)
    for n, (sample, result) in enumerate(zip(x.samples, results, strict=True)):
        if result.nbytes < _SMALL_BYTES:  # filling everything is faster than computing the border
            result[...] = values[n]
            result[tuple(slice(extent) for extent in sample.shape)] = sample
        else:
            copy_window(result[None], sample[None], begin, fill_values=fills[n])
    return results


def _converted(fills: np.ndarray, x: Batch) -> np.ndarray:
    """Return fill values in the element type of the data."""
    values = np.empty(len(fills), x.dtype.numpy)
    saturate_cast(values, fills)
    return values


def _padded_torch(x: Batch, shapes: list[tuple[int, ...]], fills: np.ndarray, memory: Memory) -> Any:
    """Return the results on the device, computed together."""
    count = len(shapes)
    is_one_fill = bool((fills == fills[0]).all())
    results: Any = memory(0, count, shapes[0]) if len(set(shapes)) == 1 else None
    if results is not None and x.dense is not None and is_one_fill:
        copy_window_torch(results, x.dense, np.zeros((count, len(shapes[0])), np.int64), fill_values=fills[0])
        return results
    source = DeviceSamples.of_batch(x)
    if results is None:
        target = DeviceSamples.empty(np.array(shapes, np.int64), source.dtype, source.device)
    else:
        target = DeviceSamples.of_dense(results)
    filled = np.flatnonzero(target.shapes.all(1))
    if len(filled) < count:
        kept, given, fills = target.take(filled), source.take(filled), fills[filled]
    else:
        kept, given = target, source
    if len(filled) and (is_one_fill or target.ndim == 0):
        window_samples_torch(kept, given, np.zeros_like(kept.shapes), fill_values=fills[0])
    elif len(filled):
        pad_samples_torch(kept, given, _converted(fills, x))
    if results is not None:
        return results
    ragged = target.block.view(torch.uint8), target.offsets * x.dtype.numpy.itemsize, target.shapes
    return Batch(None, None, x.layout, "gpu", x.origins, x.dtype, ragged)
