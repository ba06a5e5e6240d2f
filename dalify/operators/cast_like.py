"""Convert data to the element type of other data."""

from __future__ import annotations

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.arrays.convert import saturate_cast, saturate_cast_torch
from dalify.registry import Spec, operator


@operator
def cast_like(x: Spec, like: Spec, /) -> Spec:
    """Convert elements to the type of other data, with the rules of ``fn.cast``.

    Args:
        x: any data.
        like: data of the output type; its values and shapes are ignored.

    Returns:
        same shape and layout as `x`.

    Example:
        >>> noise = fn.cast_like(noise, images)  # doctest: +SKIP
    """
    return x.replace(dtype=like.dtype)


@cast_like.cpu
def _(out: np.ndarray, x: np.ndarray, _like: np.ndarray) -> None:
    saturate_cast(out, x)


@cast_like.gpu
def _(out: torch.Tensor, x: torch.Tensor, _like: torch.Tensor) -> None:
    saturate_cast_torch(out, x)
