"""Return data filled with a value."""

from __future__ import annotations

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data import Samples
from dalify.kernels.arrays.axes import check_layout
from dalify.kernels.arrays.filling import repeat_samples
from dalify.kernels.arrays.promotion import broadcast_shape
from dalify.kernels.random.random_shapes import requested_shape
from dalify.registry import VARIES, Shaping, Spec, on_groups, operator


@operator
def full(fill_value: Spec, /, *, layout: str | None = None, shape: Shaping[list[int]] | None = None) -> Spec:
    """Broadcast a value to a shape.

    Args:
        fill_value: a number, or data that broadcasts to `shape`, aligned at the last axis.
        layout: one letter for each dimension.
        shape: shape of one sample; by default the shape of `fill_value` (DALI then returns only its first element).

    Returns:
        data of the type of `fill_value`.

    Raises:
        ShapeError: `fill_value` does not broadcast to the shape.
        LayoutError: the layout does not match the shape.

    Example:
        >>> gray = fn.full(128, shape=[64, 64, 3], layout="HWC")  # doctest: +SKIP
    """
    extents = fill_value.shape if shape is None else requested_shape(shape, is_known=shape is not VARIES)
    ndim = fill_value.ndim if shape is None else None
    if extents is not None:
        ndim = len(extents)
    elif ndim is None and layout:
        ndim = len(layout)
    check_layout(layout or "", ndim)
    if extents is not None and fill_value.shape is not None and broadcast_shape(fill_value.shape, extents) != extents:
        raise ShapeError(f"a value of shape {fill_value.shape} does not broadcast to shape {extents}.")
    return Spec(fill_value.dtype, ndim, layout or "", extents, fill_value.device)


@full.cpu_samples
def _(out: Samples, value: Samples) -> None:
    repeat_samples(out, value)


@full.gpu_samples
@on_groups()
def _(out: torch.Tensor, value: torch.Tensor) -> None:
    missing = out.dim() - value.dim()
    out.copy_(value.reshape(value.shape[:1] + (1,) * missing + value.shape[1:]))
