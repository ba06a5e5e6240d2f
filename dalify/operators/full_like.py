"""Return data filled with a value, in the shape of other data."""

from __future__ import annotations

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data import Samples
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.filling import repeat_samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.promotion import broadcast_shape
from dalify.registry import Spec, operator


@operator
def full_like(data_like: Spec, fill_value: Spec, /) -> Spec:
    """Broadcast a value to the shape of other data.

    Args:
        data_like: any data; its values are ignored.
        fill_value: a number, or data that broadcasts to that shape, aligned at the last axis.

    Returns:
        data with the type, shape and layout of `data_like`; values are rounded and saturated.

    Raises:
        ShapeError: `fill_value` does not broadcast to the shape.

    Example:
        >>> background = fn.full_like(images, 128)  # doctest: +SKIP
    """
    shape = data_like.shape
    if shape is not None and fill_value.shape is not None and broadcast_shape(fill_value.shape, shape) != shape:
        raise ShapeError(f"a value of shape {fill_value.shape} does not broadcast to shape {shape}.")
    return data_like


@full_like.cpu_samples
def _(out: Samples, _like: Samples, value: Samples) -> None:
    repeat_samples(out, value)


@full_like.gpu_samples
@on_padded
def _(out: torch.Tensor, _like: torch.Tensor, value: torch.Tensor) -> None:
    missing = out.dim() - value.dim()
    converted = torch.empty(value.shape, dtype=out.dtype, device=out.device)
    saturate_cast_torch(converted, value)
    out.copy_(converted.reshape(value.shape[:1] + (1,) * missing + value.shape[1:]))
