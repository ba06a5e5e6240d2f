"""Read the bytes of samples as elements of another type."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.reshaping import filled_shape, reshaped, reshaped_spec
from dalify.registry import VARIES, Shaping, Spec, operator


@operator(allocating=True)
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
    """Take the bytes of each sample for elements of another type, and optionally of another shape.

    Args:
        data: any data.
        shape_input: the shape wanted, integers, instead of `shape`.
        dtype: type that the bytes are read as; the present one by default.
        layout: letters for the result. Without it the layout is kept if the number of dimensions is, else dropped.
        rel_shape: extents as factors of the present ones; one negative entry takes what is left.
        shape: extents; one negative entry takes what is left. Without any of these, the innermost extent adapts.
        src_dims: which present dimension each new one comes from; -1 makes one of extent 1.

    Returns:
        the same bytes.

    Raises:
        ShapeError: another number of bytes, or an innermost extent that is no multiple of the new elements.

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
            raise ShapeError(f"a sample of {bytes_now} bytes cannot be read as {new.name}: {item} bytes each.")
        new_shape = filled_shape(extents, bytes_now // item, data.shape)
    return Spec(new, ndim, layout, new_shape, data.device)


def _innermost(data: Spec, item: int) -> int:
    """Return the innermost extent in units of the new elements."""
    assert data.dtype is not None, "dalify bug: bytes of unknown type"
    if not data.shape:
        raise ShapeError("samples without dimensions can only be read as elements of the same size.")
    row = data.shape[-1] * data.dtype.numpy.itemsize
    if row % item:
        raise ShapeError(f"the innermost extent has {row} bytes, no multiple of the {item} bytes of a new element.")
    return row // item


@reinterpret.cpu
def _(data, shape_input, *, out_spec):
    flat = np.ascontiguousarray(data).reshape(len(data), -1).view(out_spec.dtype.numpy)
    return reshaped(flat, None if shape_input is not None else out_spec.shape, shape_input)


@reinterpret.gpu
def _(data, shape_input, *, out_spec):
    dtype = torch.from_numpy(np.empty(0, out_spec.dtype.numpy)).dtype
    # A view of nothing has strides that torch refuses.
    flat = (
        data.contiguous().reshape(len(data), -1).view(dtype)
        if data.numel()
        else data.new_empty((len(data), 0), dtype=dtype)
    )
    return reshaped(flat, None if shape_input is not None else out_spec.shape, shape_input)
