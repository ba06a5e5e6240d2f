"""Brighten dark values."""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DTypeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays.frozen import read_only
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
    if x.dtype != DALIDataType.UINT8:
        raise DTypeError(f"the input must have uint8 elements; got {x.dtype!s}.")
    return x


@njit(nogil=True, cache=True)
def _solarize_add(out: np.ndarray, x: np.ndarray, shifts: np.ndarray) -> None:
    for n in range(x.shape[0]):
        source, target, shift = x[n], out[n], shifts[n]
        for i in range(source.size):
            value = source[i]
            raised = value + min(shift, np.uint8(255) - value)
            target[i] = raised if value < _THRESHOLD else value


@solarize_add.cpu
def _(out: np.ndarray, x: np.ndarray, *, shift: np.ndarray) -> None:
    shifts = np.clip(shift, 0, 255).astype(np.uint8)
    _solarize_add(out.reshape(len(x), -1), read_only(x.reshape(len(x), -1)), shifts)


@solarize_add.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, shift: np.ndarray) -> None:
    shifts = uploaded(np.clip(shift, 0, 255), x.device).reshape(-1, *[1] * (x.ndim - 1))
    out.copy_(torch.where(x < _THRESHOLD, (x + shifts).clamp(max=255), x.to(shifts.dtype)).to(torch.uint8))
