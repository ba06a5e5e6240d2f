"""Invert bright values."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import PerSample, Spec, operator


@operator
def solarize(x: Spec, /, *, threshold: PerSample[float] = 256.0) -> Spec:
    """Invert values that are not below a threshold: ``x if x < threshold else 255 - x``.

    Args:
        x: uint8 of any shape.
        threshold: 0 inverts all values, 256 none.

    Returns:
        Same shape, type and layout.

    Raises:
        DTypeError: elements are not uint8.
    """
    x.check_dtype(DALIDataType.UINT8)
    return x


@njit(nogil=True, cache=True)
def _solarize(out_at, out_shapes, out_like, x_at, x_shapes, x_like, limits):
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        if limits[n] > 255:
            for i in range(source.size):
                target[i] = source[i]
            continue
        limit = np.uint8(limits[n])
        for i in range(source.size):
            value = source[i]
            target[i] = value if value < limit else np.uint8(255) - value


@solarize.cpu_samples
def _(out: Samples, x: Samples, *, threshold: np.ndarray) -> None:
    limits = np.clip(np.ceil(np.nan_to_num(threshold)), 0, 256).astype(np.int64)
    _solarize(*out.compiled, *x.compiled, limits)


@solarize.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, threshold: np.ndarray) -> None:
    limit = uploaded(threshold, x.device).reshape(-1, *[1] * (x.ndim - 1))
    out.copy_(torch.where(x < limit, x, 255 - x))
