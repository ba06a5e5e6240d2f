"""Give samples another shape."""

from __future__ import annotations

import math

from dalify.base.errors import ArgumentValueError
from dalify.kernels.reshaping import filled_shape, reshaped, reshaped_spec
from dalify.registry import VARIES, Shaping, Spec, operator


@operator(allocating=True)
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
    """Give samples another shape of as many elements, another layout, or both. Nothing is copied.

    Args:
        data: any data.
        shape_input: the shape wanted, integers, instead of `shape`.
        layout: letters for the result. Without it the layout is kept if the number of dimensions is, else dropped.
        rel_shape: extents as factors of the present ones: ``[0.5, 2]``. One negative entry takes what is left.
        shape: extents; one negative entry takes what is left.
        src_dims: which present dimension each new one comes from; -1 makes one of extent 1.

    Returns:
        the same elements in the same order.

    Raises:
        ShapeError: another number of elements, or more than one extent left open.
        LayoutError: the layout does not fit the dimensions.
        ArgumentValueError: nothing or contradicting things are asked for.

    Example:
        >>> flat = fn.reshape(images, shape=[-1])  # doctest: +SKIP
    """
    if shape_input is layout is rel_shape is shape is src_dims is None:
        raise ArgumentValueError("give a new shape or layout: shape, rel_shape, src_dims, layout or a second input.")
    ndim, layout, extents = reshaped_spec(data, shape_input, shape, rel_shape, src_dims, layout, VARIES)
    new_shape = None
    if extents is not None and data.shape is not None:
        new_shape = filled_shape(extents, math.prod(data.shape), data.shape)
    return Spec(data.dtype, ndim, layout, new_shape, data.device)


@reshape.view
def _(data, shape_input, *, out_spec):
    return reshaped(data, None if shape_input is not None else out_spec.shape, shape_input)
