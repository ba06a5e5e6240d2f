"""Pre-emphasis: amplify the high frequencies of audio."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import DTypeError, check_option
from dalify.base.optional import torch
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.audio import preemphasis
from dalify.registry import PerSample, Spec, operator

_OTHER_TYPES = (DALIDataType.FLOAT16, DALIDataType.BOOL)


@operator
def preemphasis_filter(
    x: Spec,
    /,
    *,
    border: str = "clamp",
    dtype: DALIDataType = DALIDataType.FLOAT,
    preemph_coeff: PerSample[float] = 0.97,
) -> Spec:
    """Subtract a fraction of the previous sample from each sample: ``y[t] = x[t] - preemph_coeff * x[t - 1]``.

    Args:
        x: audio of any numeric type except FLOAT16 and BOOL; data with several dimensions is filtered as one sequence
            of all elements.
        border: value before the first sample: "zero", "clamp" (the first sample) or "reflect" (the second one, or
            the first if there is no second).
        dtype: type of the result; integers are rounded and saturated.
        preemph_coeff: fraction of the previous sample; 0 has no effect.

    Returns:
        Same shape and layout.

    Raises:
        ArgumentValueError: an unknown border.
        DTypeError: the input or result type is FLOAT16 or BOOL.

    Example:
        >>> audio = fn.preemphasis_filter(audio, preemph_coeff=0.97)  # doctest: +SKIP
    """
    check_option("border", border, preemphasis.BORDERS)
    for what, kind in (("dtype", dtype), ("the input type", x.dtype)):
        if kind is not None and kind in _OTHER_TYPES:
            raise DTypeError(
                f"{what} cannot be {kind.text}.",
                hint="Use types.FLOAT, for example fn.cast(x, dtype=types.FLOAT).",
                argument="dtype",
            )
    return x.replace(dtype=dtype)


@preemphasis_filter.cpu_samples
def _(out: Samples, x: Samples, *, border: str, preemph_coeff: np.ndarray) -> None:
    preemphasis.preemphasis(out, x, preemph_coeff, border)


@preemphasis_filter.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, border: str, preemph_coeff: np.ndarray) -> None:
    _filtered(out.flattened(), x.flattened(), border=border, preemph_coeff=preemph_coeff)


@on_padded
def _filtered(out: torch.Tensor, x: torch.Tensor, *, border: str, preemph_coeff: np.ndarray) -> None:
    preemphasis.preemphasis_torch(out, x, preemph_coeff, border)
