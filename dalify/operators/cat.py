"""Concatenate data along an existing axis."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.axes import normal_axis
from dalify.kernels.arrays.join_checks import check_joinable, first_layout, is_empty
from dalify.kernels.arrays.windows_torch import joined_samples_torch
from dalify.registry import Spec, operator


@operator
def cat(first: Spec, /, *more: Spec, axis: int = 0, axis_name: str | None = None) -> Spec:
    """Concatenate samples along one of their axes.

    Args:
        first: any data with at least one dimension.
        more: data of the same type, whose extents differ only along the axis. Empty samples are skipped, whatever
            their shape.
        axis: the axis; negative values count from the end.
        axis_name: letter of the axis in the layout, instead of `axis`.

    Returns:
        concatenated samples, with the layout of the first input that has one.

    Raises:
        DTypeError: different element types.
        ShapeError: other extents differ.
        IndexingError: an axis does not exist.
        ArgumentValueError: both `axis` and `axis_name`.

    Example:
        >>> wide = fn.cat(left, right, axis_name="W")  # doctest: +SKIP
    """
    parts = (first, *more)
    layout = first_layout(parts)
    at = _axis(layout, first.ndim or 0, axis, axis_name)
    check_joinable(parts, at, takes_empty=True)
    shape = None
    if first.shape is not None:
        joined = [part.shape for part in parts if part.shape is not None and not is_empty(part)] or [first.shape]
        shape = (*joined[0][:at], sum(extents[at] for extents in joined), *joined[0][at + 1 :])
    return first.replace(layout=layout, shape=shape)


def _axis(layout: str, ndim: int, axis: int, axis_name: str | None) -> int:
    if axis_name is not None:
        if axis:
            raise ArgumentValueError(f"specify either axis or axis_name, not both; got {axis} and {axis_name!r}.")
        return Spec(layout=layout).axis(axis_name)
    return normal_axis(axis, ndim)


@cat.cpu
def _(out: np.ndarray, *parts: np.ndarray, axis: int, axis_name: str | None, out_spec: Spec) -> None:
    if out.size:
        full = [part for part in parts if part.size]
        np.concatenate(full, axis=_axis(out_spec.layout or "", out.ndim - 1, axis, axis_name) + 1, out=out)


@cat.gpu_samples
def _(out: DeviceSamples, *parts: DeviceSamples, axis: int, axis_name: str | None, out_spec: Spec) -> None:
    joined_samples_torch(out, parts, _axis(out_spec.layout or "", out.ndim, axis, axis_name))
