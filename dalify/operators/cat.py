"""Concatenate data along an existing axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import Batch, DeviceSamples, Samples
from dalify.kernels.arrays.axes import normal_axis
from dalify.kernels.arrays.join_checks import check_joinable, first_layout
from dalify.kernels.arrays.strided import join_samples
from dalify.kernels.arrays.windows_torch import joined_samples_torch
from dalify.registry import Spec, operator


@operator
def cat(first: Spec, /, *more: Spec, axis: int | None = None, axis_name: str | None = None) -> Spec:
    """Concatenate samples along one of their axes.

    Args:
        first: any data with at least one dimension.
        more: data of the same type, whose extents differ only along the axis. Samples without elements may have any
            extents. The other extents of the result are those of the samples with elements; if there are none, those
            of `first`.
        axis: the axis, by default 0; negative values count from the end.
        axis_name: letter of the axis in the layout, instead of `axis`.

    Returns:
        concatenated samples, with the layout of the first input that has one.

    Raises:
        DTypeError: different element types.
        ShapeError: other extents differ.
        IndexingError: an axis does not exist.
        ArgumentValueError: both `axis` and `axis_name`, or `axis_name` is not one letter.

    Example:
        >>> wide = fn.cat(left, right, axis_name="W")  # doctest: +SKIP
    """
    parts = (first, *more)
    layout = first_layout(parts)
    at = _axis(layout, first.ndim or 0, axis, axis_name)
    check_joinable(parts, at, takes_empty=True)
    shapes = [part.shape for part in parts if part.shape is not None]
    if len(shapes) < len(parts):
        return first.replace(layout=layout, shape=None)
    joined = next((shape for shape in shapes if 0 not in shape), shapes[0])
    before, after = joined[:at], joined[at + 1 :]
    extent = sum(shape[at] for shape in shapes if shape[:at] == before and shape[at + 1 :] == after)
    return first.replace(layout=layout, shape=(*before, extent, *after))


def _axis(layout: str, ndim: int, axis: int | None, axis_name: str | None) -> int:
    if axis_name is not None:
        if len(axis_name) != 1:
            raise ArgumentValueError(f"axis_name must be one letter; got {axis_name!r}.")
        if axis is not None:
            raise ArgumentValueError(f"specify either axis or axis_name, not both; got {axis} and {axis_name!r}.")
        return Spec(layout=layout).axis(axis_name)
    return normal_axis(axis or 0, ndim)


@cat.geometry
def _(first: Batch, *more: Batch, axis: int | None, axis_name: str | None) -> dict[str, Any]:
    parts = (first, *more)
    shapes = [part.shape_array() for part in parts]
    at = _axis(next((part.layout for part in parts if part.layout), ""), shapes[0].shape[1], axis, axis_name)
    if any(each.shape != shapes[0].shape or not each.all() for each in shapes):
        return {}  # the rule handles these, sample by sample
    joined = shapes[0].copy()
    joined[:, at] = np.sum([each[:, at] for each in shapes], axis=0)
    differing = [(each != joined).any(0) for each in shapes]
    return {} if any(axes.nonzero()[0].tolist() not in ([], [at]) for axes in differing) else {"out_shapes": joined}


@cat.cpu_samples
def _(out: Samples, *parts: Samples, axis: int | None, axis_name: str | None, out_spec: Spec) -> None:
    join_samples(out, parts, _axis(out_spec.layout or "", out.ndim, axis, axis_name))


@cat.gpu_samples
def _(out: DeviceSamples, *parts: DeviceSamples, axis: int | None, axis_name: str | None, out_spec: Spec) -> None:
    joined_samples_torch(out, parts, _axis(out_spec.layout or "", out.ndim, axis, axis_name))
