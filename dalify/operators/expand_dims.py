"""Insert axes of extent 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.registry import Spec, operator


@operator
def expand_dims(data: Spec, /, *, axes: list[int], new_axis_names: str = "") -> Spec:
    """Insert axes of extent 1. Nothing is copied.

    Args:
        data: any data.
        axes: positions of the new axes in the result, not negative.
        new_axis_names: a letter for each new axis; without letters the layout is dropped.

    Returns:
        the same elements.

    Raises:
        IndexingError: a position is out of range.
        ArgumentValueError: a position is repeated, or the number of letters differs.
        LayoutError: letters are specified for data that has dimensions but no layout.

    Example:
        >>> sequence = fn.expand_dims(images, axes=[0], new_axis_names="F")  # doctest: +SKIP
    """
    assert data.ndim is not None, "dalify bug: new axes of data of unknown dimensions"
    ndim = data.ndim + len(axes)
    if len(set(axes)) != len(axes):
        raise ArgumentValueError(f"axes must not contain a position twice; got {tuple(axes)}.")
    for axis in axes:
        if not 0 <= axis < ndim:
            raise IndexingError(f"axes contains {axis}; the result has the axes 0 to {ndim - 1}.")
    if not axes:
        return data
    letters: dict[int, str] = {}
    if new_axis_names:
        if len(new_axis_names) != len(axes):
            raise ArgumentValueError(
                f"new_axis_names must have {counted(len(axes), 'letter')}, one per axis; got {new_axis_names!r}."
            )
        if not data.layout and data.ndim:
            raise LayoutError("new_axis_names requires data with a layout.")
        letters = dict(zip(axes, new_axis_names, strict=True))
    old = iter(data.layout or "")
    layout = "".join(letters[axis] if axis in letters else next(old) for axis in range(ndim)) if letters else ""
    shape = None
    if data.shape is not None:
        extents = iter(data.shape)
        shape = tuple(1 if axis in axes else next(extents) for axis in range(ndim))
    return Spec(data.dtype, ndim, layout, shape, data.device)


@expand_dims.view
def _(data: np.ndarray | torch.Tensor, *, out_spec: Spec) -> Any:
    assert out_spec.shape is not None, "dalify bug: a kernel without the shape of its output"
    return data.reshape((data.shape[0], *out_spec.shape))
