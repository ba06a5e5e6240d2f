"""Pad samples to a shape, an alignment, or the maximum extents of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, IndexingError, LayoutError
from dalify.base.narrow import is_array
from dalify.base.wording import counted
from dalify.data import Batch, DeviceSamples, Samples
from dalify.kernels.arrays.axes import check_distinct
from dalify.kernels.arrays.convert import fill_elements, fill_in_range
from dalify.kernels.arrays.gather import copy_window_torch, pad_samples
from dalify.kernels.arrays.windows_torch import pad_samples_torch, window_samples_torch
from dalify.kernels.random.random_shapes import check_each
from dalify.registry import PerSample, Spec, Vectors, operator


@operator(whole_batch=lambda arguments: _needs_batch(arguments))
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
        shape: minimum extents; 0 or less: the maximum of the batch (the default). One number for all axes or one each.

    Returns:
        Same dtype and layout.

    Raises:
        ArgumentValueError: `axes` together with `axis_names`, an axis twice, or a wrong number of extents.
        IndexingError: an axis does not exist.
        LayoutError: a letter is not in the layout.

    Example:
        >>> boxes = fn.pad(boxes, axes=[0], fill_value=-1)  # doctest: +SKIP
    """
    if axes is not None and axis_names:
        raise ArgumentValueError("axes and axis_names are mutually exclusive.")
    if axis_names and not set(axis_names) <= set(x.layout or ""):
        raise LayoutError(f"axis_names {axis_names!r} must all be in the layout of the data, {x.layout!r}.")
    check_distinct(axis_names or "")
    return x.replace(shape=None)


def _axes_of(ndim: int, layout: str, axes: Any, axis_names: str | None) -> list[int]:
    if axis_names:
        return [layout.index(letter) for letter in axis_names]
    chosen = list(range(ndim)) if axes is None or len(axes) == 0 else [int(axis) for axis in axes]
    if not all(-ndim <= axis < ndim for axis in chosen):
        raise IndexingError(f"axes {chosen} are out of range for data with {counted(ndim, 'dimension')}.")
    chosen = [axis % ndim for axis in chosen]
    check_distinct(chosen)
    return chosen


def _per_axis(name: str, values: Any, axes: list[int], count: int, default: int) -> np.ndarray:
    """Return one number for each sample and axis, [N, axes], of an argument [N, k]."""
    numbers = np.full((count, 1), default, np.int64) if values is None or not values.shape[1] else values
    if numbers.shape[1] not in (1, len(axes)):
        raise ArgumentValueError(
            f"{name} must be one number or {len(axes)}, one for each axis; got {numbers.shape[1]}."
        )
    return numbers if numbers.shape[1] == len(axes) else numbers.repeat(len(axes), 1)


def _pad_shapes(
    shapes: np.ndarray, largest: np.ndarray, axes: list[int], shape: np.ndarray | None, align: np.ndarray | None
) -> None:
    """Replace the shapes of some samples, int64 [N, ndim], by the shapes of their results."""
    if shape is None and align is None:
        for axis in axes:
            shapes[:, axis] = largest[axis]
        return
    minima = _per_axis("shape", shape, axes, len(shapes), -1)
    multiples = _per_axis("align", align, axes, len(shapes), 1)
    check_each((multiples >= 1).all(axis=1), "align must be positive; got {}.", multiples)
    for place, axis in enumerate(axes):
        required = np.where(minima[:, place] <= 0, largest[axis], minima[:, place])
        steps = multiples[:, place]
        shapes[:, axis] = -(-np.maximum(required, shapes[:, axis]) // steps) * steps


def _needs_batch(arguments: Mapping[str, Any]) -> bool:
    """Return whether results may depend on the largest extents of the batch."""
    shape = arguments.get("shape")
    return not (isinstance(shape, tuple) and shape and all(isinstance(extent, int) and extent > 0 for extent in shape))


@pad.geometry
def _(
    x: Batch, *, axes: Vectors | None, axis_names: str | None, shape: Vectors | None, align: Vectors | None
) -> dict[str, Any]:
    shapes = x.shape_array().copy()
    if not x.ndim:
        return {"out_shapes": ()}
    largest = shapes.max(0)
    given = [values for values in (axes, shape, align) if values is not None]
    is_alike = all(map(is_array, given)) and (axes is None or bool(np.all(axes == axes[:1])))
    for part in [slice(None)] if is_alike else [slice(n, n + 1) for n in range(len(shapes))]:
        first = part.start or 0
        of_part = (
            None if values is None else np.atleast_2d(values[part if is_alike else first]) for values in (shape, align)
        )
        try:
            chosen = _axes_of(x.ndim, x.layout, None if axes is None else axes[first], axis_names)
            _pad_shapes(shapes[part], largest, chosen, *of_part)
        except DalifyError as error:
            if not is_alike:
                error.sample = first
            raise
    return {"out_shapes": shapes}


@pad.cpu_samples
def _(out: Samples, x: Samples, *, fill_value: np.ndarray) -> None:
    pad_samples(out, x, fill_elements(fill_value, x.dtype))


@pad.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, fill_value: np.ndarray, spec: Spec) -> None:
    assert spec.dtype is not None, "dalify bug: a kernel without the type of its input"
    elements = fill_elements(fill_value, spec.dtype.numpy)
    fill_value = fill_in_range(fill_value, spec.dtype.numpy)
    start = np.zeros_like(out.shapes)
    if out.ndim and (fill_value != fill_value[0]).any():
        pad_samples_torch(out, x, elements)
    elif out.dense is not None and x.dense is not None:
        copy_window_torch(out.dense, x.dense, start, fill_values=fill_value[0])
    else:
        window_samples_torch(out, x, start, fill_values=fill_value[0])
