"""Convert class indices to one-hot vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from dalify.base.optional import torch
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays.convert import fill_in_range, saturate_cast
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import Spec, operator


@operator(whole_batch=lambda arguments: arguments.get("axis") is None)
def one_hot(
    x: Spec,
    /,
    *,
    axis: int | None = None,
    axis_name: str | None = None,
    dtype: DALIDataType = DALIDataType.FLOAT,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
) -> Spec:
    """Replace each class index by a vector with `on_value` at that index and `off_value` elsewhere.

    Indices that are negative or too large give vectors of `off_value`. If `axis` is not specified and all samples of a
    batch hold a single number, ``[1]`` as the labels of readers or ``[1, 1]``, the result has one dimension, and its
    layout is that of the new axis.

    Args:
        x: class indices; fractions are truncated.
        axis: position of the class axis in the result, 0 to the number of dimensions of `x`; -1 (the default): last.
        axis_name: letter of that axis; without it the layout is dropped.
        dtype: type of the result.
        num_classes: length of the vectors.
        off_value: entry of the other classes. In integer types fractions are truncated, and what does not fit keeps
            its lowest bits: -1 is 255 in uint8.
        on_value: entry of the class.

    Returns:
        data with one dimension more than `x`.

    Raises:
        IndexingError: `axis` is out of range.
        LayoutError: a letter is specified for data that has dimensions but no layout.

    Example:
        >>> targets = fn.one_hot(labels, num_classes=1000)  # doctest: +SKIP
    """
    ndim = x.ndim or 0
    if num_classes < 0:
        raise ArgumentValueError(f"num_classes must not be negative; got {num_classes}.")
    is_open = axis is None and ndim > 0 and x.shape is None
    is_single = axis is None and ndim > 0 and x.shape is not None and math.prod(x.shape) == 1
    axis = -1 if axis is None else axis
    if not -1 <= axis <= ndim:
        raise IndexingError(f"axis {axis} is out of range for {ndim}-D class indices: it must be in [-1, {ndim}].")
    at = ndim if axis < 0 else axis
    layout = ""
    if axis_name is not None:
        if len(axis_name) != 1:
            raise ArgumentValueError(f"axis_name must be one letter; got {axis_name!r}.")
        if ndim and not x.layout and not is_open and not is_single:
            raise LayoutError("axis_name requires data with a layout.")
        layout = (x.layout or "")[:at] + axis_name + (x.layout or "")[at:]
    shape = None if x.shape is None else (*x.shape[:at], num_classes, *x.shape[at:])
    return Spec(dtype, None if is_open else ndim + 1, None if is_open else layout, shape, x.device)


@one_hot.prepare
def _(x: Batch, *, axis: int | None, axis_name: str | None, num_classes: int) -> dict[str, Any]:
    if axis is None and x.ndim and all(math.prod(shape) == 1 for shape in x.shapes()):
        return {"out_shapes": [(num_classes,)] * len(x), "out_layout": axis_name or ""}
    if axis_name is not None and x.ndim and not x.layout:
        raise LayoutError("axis_name requires data with a layout.")
    return {}


def _entries(dtype, off_value, on_value):
    entries = np.empty(2, dtype)
    saturate_cast(entries, fill_in_range([off_value, on_value], dtype))
    return entries


@one_hot.cpu
def _(out: np.ndarray, x: np.ndarray, *, axis: int | None, num_classes: int, off_value: float, on_value: float) -> None:
    entries = _entries(out.dtype, off_value, on_value)
    last = np.moveaxis(out, 1 + axis, -1) if axis is not None and axis >= 0 else out
    last[...] = entries[0]
    with np.errstate(invalid="ignore"):  # values that are not finite become indices out of range
        classes = x.astype(np.int64).reshape(last.shape[:-1])
    places = np.nonzero((classes >= 0) & (classes < num_classes))
    last[(*places, classes[places])] = entries[1]


@one_hot.gpu_samples
@on_padded
def _(
    out: torch.Tensor,
    x: torch.Tensor,
    *,
    axis: int | None,
    num_classes: int,
    off_value: float,
    on_value: float,
    out_spec: Spec,
) -> None:
    assert out_spec.dtype is not None, "dalify bug: a kernel without the type of its output"
    entries = uploaded(_entries(out_spec.dtype.numpy, off_value, on_value), out.device)
    at = -1 if axis is None else axis
    rows = x.reshape(out.shape[:-1]) if at < 0 else x
    is_class = rows.to(torch.int64)[..., None] == torch.arange(num_classes, device=out.device)
    values = torch.where(is_class, entries[1], entries[0])
    out.copy_(values.movedim(-1, 1 + at) if at >= 0 else values)
