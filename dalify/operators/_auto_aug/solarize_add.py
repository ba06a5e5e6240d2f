"""Brighten dark values."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import PerSample, Spec, operator

_THRESHOLD = 128


@operator
def solarize_add(x: Spec, /, *, shift: PerSample[int] = 0) -> Spec:
    """Add a number to values below 128: ``min(x + shift, 255) if x < 128 else x``.

    Args:
        x: uint8 of any shape.
        shift: clipped to 0 to 255.

    Returns:
        Same shape, type and layout.

    Raises:
        DTypeError: elements are not uint8.
    """
    x.check_dtype(DALIDataType.UINT8)
    return x


@njit(nogil=True, cache=True)
def _solarize_add(out_at, out_shapes, out_like, x_at, x_shapes, x_like, shifts):
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        shift = shifts[n]
        for i in range(source.size):
            value = source[i]
            raised = value + min(shift, np.uint8(255) - value)
            target[i] = raised if value < _THRESHOLD else value


@solarize_add.cpu_samples
def _(out: Samples, x: Samples, *, shift: np.ndarray) -> None:
    shifts = np.clip(shift, 0, 255).astype(np.uint8)
    _solarize_add(*out.compiled, *x.compiled, shifts)


@solarize_add.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, shift: np.ndarray) -> None:
    shifts = uploaded(np.clip(shift, 0, 255), x.device).reshape(-1, *[1] * (x.ndim - 1))
    out.copy_(torch.where(x < _THRESHOLD, (x + shifts).clamp(max=255), x.to(shifts.dtype)).to(torch.uint8))
