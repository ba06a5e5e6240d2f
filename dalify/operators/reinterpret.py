"""Reinterpret the bytes of samples as another type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data import Batch, DALIDataType
from dalify.kernels.arrays.reshaping import filled_shape, ragged_shapes, reshaped, reshaped_spec
from dalify.registry import VARIES, Shaping, Spec, operator


@operator
def reinterpret(
    data: Spec,
    shape_input: Spec | None = None,
    /,
    *,
    dtype: DALIDataType | None = None,
    layout: str | None = None,
    rel_shape: Shaping[list[float]] | None = None,
    shape: Shaping[list[int]] | None = None,
    src_dims: Shaping[list[int]] | None = None,
) -> Spec:
    """Reinterpret the bytes of each sample as another type, and optionally another shape.

    Args:
        data: any data.
        shape_input: the new shape as integers, instead of `shape`.
        dtype: the new type; by default the type of `data`.
        layout: layout of the result. By default kept if the number of dimensions does not change.
        rel_shape: new extents as multiples of the input extents; one negative entry is inferred.
        shape: new extents; one negative entry is inferred. Without any of these, the innermost extent is adapted.
        src_dims: source dimension of each new one; -1 inserts a dimension of extent 1.

    Returns:
        the same bytes.

    Raises:
        ShapeError: the number of bytes differs, or the bytes of the innermost extent are not a multiple of the new item
            size.

    Example:
        >>> pairs = fn.reinterpret(int32, dtype=types.INT16)  # doctest: +SKIP
    """
    assert data.dtype is not None, "dalify bug: bytes of unknown type"
    new = data.dtype if dtype is None else dtype
    ndim, layout, extents = reshaped_spec(data, shape_input, shape, rel_shape, src_dims, layout, VARIES)
    new_shape = None
    if extents is not None and data.shape is not None:
        bytes_now = math.prod(data.shape) * data.dtype.numpy.itemsize
        item = new.numpy.itemsize
        if shape is rel_shape is src_dims is None:
            extents = (
                [*extents[:-1], _innermost(data, item)] if extents or item != data.dtype.numpy.itemsize else extents
            )
        if bytes_now % item:
            raise ShapeError(
                f"a sample of {bytes_now} bytes cannot be divided into {new.text} elements of {item} bytes."
            )
        new_shape = filled_shape(extents, bytes_now // item, data.shape)
    return Spec(new, ndim, layout, new_shape, data.device)


def _innermost(data: Spec, item: int) -> int:
    """Return the innermost extent in units of the new elements."""
    assert data.dtype is not None, "dalify bug: bytes of unknown type"
    if not data.shape:
        raise ShapeError("scalars can only be reinterpreted as types of the same size.")
    row = data.shape[-1] * data.dtype.numpy.itemsize
    if row % item:
        raise ShapeError(f"the innermost extent has {row} bytes, which is not a multiple of {item}, the new item size.")
    return row // item


@reinterpret.prepare
def _(
    data: Batch, shape_input: Batch | None, *, dtype: DALIDataType | None, rel_shape: Any, shape: Any, src_dims: Any
) -> dict[str, Any]:
    if data.dense is not None or (data.device == "gpu" and data.ragged is None):
        return {}
    item, old = (data.dtype if dtype is None else dtype).numpy.itemsize, data.shape_array()
    # Rows of bytes of any length may start at any address.
    size_bytes = old.prod(1) * data.dtype.numpy.itemsize
    if (size_bytes % item).any():
        return {}
    if data.ragged is not None and ((data.ragged[1] % item).any() or len(data.ragged[0]) % item):
        return {}
    if shape_input is shape is rel_shape is src_dims is None:
        rows = old[:, -1:] * data.dtype.numpy.itemsize
        if not rows.size or (rows % item).any():
            return {}
        return {"out_shapes": np.concatenate([old[:, :-1], rows // item], axis=1)}
    return ragged_shapes(data, shape_input, shape, rel_shape, src_dims, size_bytes // item)


@reinterpret.view
def _(data: np.ndarray | torch.Tensor, shape_input: np.ndarray | torch.Tensor | None, *, out_spec: Spec) -> Any:
    assert out_spec.dtype is not None, "dalify bug: a kernel without the type of its output"
    shape = None if shape_input is not None else out_spec.shape
    if isinstance(data, np.ndarray):
        flat = np.ascontiguousarray(data).reshape(len(data), -1).view(out_spec.dtype.numpy)
        return reshaped(flat, shape, shape_input)
    dtype = torch.from_numpy(np.empty(0, out_spec.dtype.numpy)).dtype
    # torch rejects the strides of empty views.
    rows = (
        data.contiguous().reshape(len(data), -1).view(dtype)
        if data.numel()
        else data.new_empty((len(data), 0), dtype=dtype)
    )
    return reshaped(rows, shape, shape_input)
