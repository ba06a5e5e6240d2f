"""Stack data along a new axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, LayoutError
from dalify.base.small_arrays import with_column
from dalify.data import Batch, DeviceSamples, Samples
from dalify.kernels.arrays.axes import normal_axis
from dalify.kernels.arrays.join_checks import check_joinable, first_layout
from dalify.kernels.arrays.strided import join_samples
from dalify.kernels.arrays.windows_torch import joined_samples_torch
from dalify.registry import Spec, operator


@operator
def stack(first: Spec, /, *more: Spec, axis: int = 0, axis_name: str | None = None) -> Spec:
    """Stack samples of equal shape along a new axis.

    Args:
        first: any data.
        more: data of the same type and shape.
        axis: position of the new axis in the result; negative values count from the end.
        axis_name: a letter for the new axis; without it the layout is dropped.

    Returns:
        data with one dimension more than the inputs.

    Raises:
        DTypeError: different element types.
        ShapeError: different shapes.
        IndexingError: `axis` is out of range.
        LayoutError: a letter is specified for data that has dimensions but no layout.

    Example:
        >>> frames = fn.stack(before, after, axis_name="F")  # doctest: +SKIP
    """
    parts = (first, *more)
    check_joinable(parts)
    ndim = first.ndim or 0
    at = normal_axis(axis, ndim, extra=1)
    layout = ""
    if axis_name is not None:
        if len(axis_name) != 1:
            raise ArgumentValueError(f"axis_name must be one letter; got {axis_name!r}.")
        inner = first_layout(parts)
        if ndim and not inner:
            raise LayoutError("axis_name requires inputs with a layout.")
        layout = inner[:at] + axis_name + inner[at:]
    shape = None if first.shape is None else (*first.shape[:at], len(parts), *first.shape[at:])
    return Spec(first.dtype, ndim + 1, layout, shape, first.device)


@stack.geometry
def _(first: Batch, *more: Batch, axis: int) -> dict[str, Any]:
    shapes = first.shape_array()
    if not all(np.array_equal(part.shape_array(), shapes) for part in more):
        return {}  # the rule refuses them
    return {"out_shapes": with_column(shapes, normal_axis(axis, shapes.shape[1], extra=1), len(more) + 1)}


@stack.cpu_samples
def _(out: Samples, *parts: Samples, axis: int) -> None:
    at = normal_axis(axis, out.ndim - 1, extra=1)
    join_samples(out, [part.with_axis(at) for part in parts], at)


@stack.gpu_samples
def _(out: DeviceSamples, *parts: DeviceSamples, axis: int) -> None:
    at = normal_axis(axis, out.ndim - 1, extra=1)
    joined_samples_torch(out, [part.with_axis(at) for part in parts], at)
