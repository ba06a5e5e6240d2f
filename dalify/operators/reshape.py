"""Change the shape of samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.data import Batch
from dalify.kernels.arrays.reshaping import filled_shape, ragged_shapes, reshaped, reshaped_spec
from dalify.registry import VARIES, Shaping, Spec, operator


@operator
def reshape(
    data: Spec,
    shape_input: Spec | None = None,
    /,
    *,
    layout: str | None = None,
    rel_shape: Shaping[list[float]] | None = None,
    shape: Shaping[list[int]] | None = None,
    src_dims: Shaping[list[int]] | None = None,
) -> Spec:
    """Change the shape of samples, their layout, or both, without copying data.

    Args:
        data: any data.
        shape_input: the new shape as integers, instead of `shape`.
        layout: layout of the result. By default kept if the number of dimensions does not change.
        rel_shape: new extents as multiples of the input extents: ``[0.5, 2]``. One negative entry is inferred.
        shape: new extents; one negative entry is inferred.
        src_dims: source dimension of each new one; -1 inserts a dimension of extent 1.

    Returns:
        the same elements in the same order.

    Raises:
        ShapeError: the number of elements differs, or more than one extent is negative.
        LayoutError: the layout does not match the dimensions.
        ArgumentValueError: no arguments, or contradictory ones.

    Example:
        >>> flat = fn.reshape(images, shape=[-1])  # doctest: +SKIP
    """
    if shape_input is layout is rel_shape is shape is src_dims is None:
        raise ArgumentValueError("specify a new shape or layout: shape, rel_shape, src_dims, layout or a second input.")
    ndim, layout, extents = reshaped_spec(data, shape_input, shape, rel_shape, src_dims, layout, VARIES)
    new_shape = None
    if shape_input is rel_shape is shape is src_dims is None:
        new_shape = data.shape
    elif extents is not None and data.shape is not None:
        new_shape = filled_shape(extents, math.prod(data.shape), data.shape)
    return Spec(data.dtype, ndim, layout, new_shape, data.device)


@reshape.prepare
def _(data: Batch, shape_input: Batch | None, *, rel_shape: Any, shape: Any, src_dims: Any) -> dict[str, Any]:
    return ragged_shapes(data, shape_input, shape, rel_shape, src_dims)


@reshape.view
def _(data: np.ndarray | torch.Tensor, shape_input: np.ndarray | torch.Tensor | None, *, out_spec: Spec) -> Any:
    return reshaped(data, None if shape_input is not None else out_spec.shape, shape_input)
