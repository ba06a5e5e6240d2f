"""Join data along an axis that they have."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.kernels.axes import normal_axis
from dalify.kernels.joining import check_joinable, first_layout
from dalify.registry import Spec, operator


@operator
def cat(first: Spec, /, *more: Spec, axis: int = 0, axis_name: str | None = None) -> Spec:
    """Join samples along one of their axes.

    Args:
        first: any data with at least one dimension.
        more: data of the same type, whose samples differ along the axis only.
        axis: the axis; negative ones count from the back.
        axis_name: the axis by its letter in the layout, instead of `axis`.

    Returns:
        the layout of the first input that has one.

    Raises:
        DTypeError: different element types.
        ShapeError: other extents differ.
        IndexingError: there is no such axis.
        ArgumentValueError: both `axis` and `axis_name`.

    Example:
        >>> wide = fn.cat(left, right, axis_name="W")  # doctest: +SKIP
    """
    parts = (first, *more)
    layout = first_layout(parts)
    at = _axis(layout, first.ndim or 0, axis, axis_name)
    check_joinable(parts, at)
    shape = None
    if first.shape is not None:
        total = sum(part.shape[at] for part in parts if part.shape is not None)
        shape = (*first.shape[:at], total, *first.shape[at + 1 :])
    return first.replace(layout=layout, shape=shape)


def _axis(layout: str, ndim: int, axis: int, axis_name: str | None) -> int:
    if axis_name is not None:
        if axis:
            raise ArgumentValueError(f"give either axis, {axis}, or axis_name, {axis_name!r}.")
        return Spec(layout=layout).axis(axis_name)
    return normal_axis(axis, ndim)


@cat.cpu
def _(out, *parts, axis, axis_name, out_spec):
    np.concatenate(parts, axis=_axis(out_spec.layout, out.ndim - 1, axis, axis_name) + 1, out=out)


@cat.gpu
def _(out, *parts, axis, axis_name, out_spec):
    out.copy_(torch.cat(parts, dim=_axis(out_spec.layout, out.dim() - 1, axis, axis_name) + 1))
