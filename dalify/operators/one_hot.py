"""Convert class indices to one-hot vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from dalify.base.optional import torch
from dalify.base.small_arrays import with_column
from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.arrays.convert import fill_elements
from dalify.kernels.arrays.joined import joined
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

    An index that is negative or too large gives a vector of `off_value`. If `axis` is not specified and all samples of
    a batch contain a single number, with shape ``[1]`` (like the labels of readers) or ``[1, 1]``, the result has one
    dimension, and its layout is the letter of the new axis.

    Args:
        x: class indices; fractions are truncated.
        axis: position of the class axis in the result, 0 to the number of dimensions of `x`; -1 (the default): last.
        axis_name: letter of the class axis; without a letter, the result has no layout.
        dtype: type of the result.
        num_classes: length of the vectors.
        off_value: entry of the other classes. In integer types, fractions are truncated, and values out of range keep
            their lowest bits: -1 is 255 in uint8.
        on_value: entry of the class.

    Returns:
        data with one dimension more than `x`.

    Raises:
        ArgumentValueError: `num_classes` is negative, or `axis_name` is not one letter.
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
        layout = _with_letter(x.layout or "", at, axis_name)
    shape = None if x.shape is None else (*x.shape[:at], num_classes, *x.shape[at:])
    return Spec(dtype, None if is_open else ndim + 1, None if is_open else layout, shape, x.device)


def _with_letter(layout: str, at: int, letter: str) -> str:
    return layout[:at] + letter + layout[at:]


@one_hot.geometry
def _(x: Batch, *, axis: int | None, axis_name: str | None, num_classes: int) -> dict[str, Any]:
    given = np.array([x.dense.shape[1:]], np.int64) if x.dense is not None else x.shape_array()
    ndim = given.shape[1]
    if axis is None and ndim and (given == 1).all():
        return {"out_shapes": (num_classes,), "out_layout": axis_name or ""}
    if axis_name is not None and ndim and not x.layout:
        raise LayoutError("axis_name requires data with a layout.")
    at = ndim if axis is None or axis < 0 else axis
    shapes = with_column(given, at, num_classes)
    found = shapes if x.dense is None else tuple(shapes[0].tolist())
    return {"out_shapes": found, "out_layout": "" if axis_name is None else _with_letter(x.layout, at, axis_name)}


@njit(nogil=True, cache=True)
def _encode(out_at, shapes, axis, classes, num_classes, entries):
    """Fill samples with the first entry, and the elements of their classes with the second.

    Args:
        out_at: addresses of the results.
        shapes: shapes of the class indices of each sample, int64 [N, ndim].
        axis: axis of the classes in the results.
        classes: class indices of all samples, int64 [total].
        num_classes: number of classes.
        entries: two values, as unsigned integers.
    """
    first = 0
    for n in range(len(out_at)):
        size, step = 1, 1  # the step from one class of the result to the next
        for number in range(shapes.shape[1]):
            size *= shapes[n, number]
            step *= shapes[n, number] if number >= axis else 1
        out = array_at(out_at[n], (size * num_classes,), entries)
        out[:] = entries[0]
        for i in range(size):
            chosen = classes[first + i]
            if 0 <= chosen < num_classes:
                outer = i // step if step > 1 else i
                out[outer * (num_classes - 1) * step + chosen * step + i] = entries[1]
        first += size


@one_hot.cpu_samples
def _(out: Samples, x: Samples, *, axis: int | None, num_classes: int, off_value: float, on_value: float) -> None:
    entries = fill_elements(np.array([off_value, on_value]), out.dtype)
    with np.errstate(invalid="ignore"):  # values that are not finite become indices out of range
        classes = joined(x).astype(np.int64).reshape(-1)
    at = x.ndim if axis is None or axis < 0 else axis
    _encode(out.addresses, x.shapes, at, classes, num_classes, entries.view(f"u{entries.itemsize}"))


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
    entries = uploaded(fill_elements(np.array([off_value, on_value]), out_spec.dtype.numpy), out.device)
    at = -1 if axis is None else axis
    rows = x.reshape(out.shape[:-1]) if at < 0 else x
    is_class = rows.to(torch.int64)[..., None] == torch.arange(num_classes, device=out.device)
    values = torch.where(is_class, entries[1], entries[0])
    out.copy_(values.movedim(-1, 1 + at) if at >= 0 else values)
