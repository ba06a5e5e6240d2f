"""Remove axes of extent 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.optional import torch
from dalify.kernels.arrays.axes import chosen_axes, without_axes
from dalify.registry import Spec, operator


@operator
def squeeze(data: Spec, /, *, axes: list[int] | None = None, axis_names: str | None = None) -> Spec:
    """Remove axes of extent 1. Nothing is copied.

    Negative axes count from the end, unlike in DALI, which ignores them. Axes after the last one are ignored, as in
    DALI.

    Args:
        data: any data.
        axes: the axes to remove.
        axis_names: the axes as letters of the layout, instead of `axes`.

    Returns:
        the same elements; the letters of the axes are removed.

    Raises:
        ArgumentValueError: neither or both of `axes` and `axis_names` are specified.
        IndexingError: a negative axis is out of range.
        LayoutError: a letter is not in the layout.
        ShapeError: the extent of an axis is not 1.

    Example:
        >>> gray = fn.squeeze(gray, axis_names="C")  # doctest: +SKIP
    """
    if axes is None and axis_names is None:
        raise ArgumentValueError("specify the axes to remove with axes or axis_names.")
    if axes is not None and axis_names is None and data.ndim is not None:
        axes = [axis for axis in axes if axis < data.ndim]
    chosen = chosen_axes(data, axes, axis_names)
    result = without_axes(data, chosen)
    if data.shape is not None and result.shape is not None:
        wrong = next((axis for axis in chosen if data.shape[axis] != 1), None)
        if wrong is not None and math.prod(data.shape) != math.prod(result.shape):
            raise ShapeError(f"axis {wrong} of a sample of shape {data.shape} cannot be removed: its extent is not 1.")
    return result


@squeeze.view
def _(data: np.ndarray | torch.Tensor, *, out_spec: Spec) -> Any:
    assert out_spec.shape is not None, "dalify bug: a kernel without the shape of its output"
    return data.reshape((data.shape[0], *out_spec.shape))
