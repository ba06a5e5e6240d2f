"""Draw beta-distributed numbers."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import DTypeError
from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.random import rejection
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import check_each, random_spec, store_drawn, values_per_sample
from dalify.registry import VARIES, PerSample, Shaping, Spec, on_groups, operator


@operator(random=True)
def beta(
    shape_like: Spec | None = None,
    /,
    *,
    alpha: PerSample[float] = 1.0,
    beta: PerSample[float] = 1.0,
    dtype: DALIDataType | None = None,
    shape: Shaping[list[int]] | None = None,
) -> Spec:
    """Draw numbers in [0, 1] from a beta distribution.

    Args:
        shape_like: data whose shape the result takes.
        alpha: first parameter, positive.
        beta: second parameter, positive.
        dtype: FLOAT (default), FLOAT64 or FLOAT16.
        shape: shape of one sample; by default a scalar.

    Returns:
        random numbers, without a layout.

    Raises:
        DTypeError: `dtype` is not a floating-point type.
        ArgumentValueError: a parameter is not positive and finite.

    Example:
        >>> weight = fn.random.beta(alpha=0.2, beta=0.2)  # for MixUp  # doctest: +SKIP
    """
    if dtype is not None and not dtype.is_float:
        raise DTypeError(f"dtype must be a floating-point type, since results are between 0 and 1; got {dtype.text}.")
    return random_spec(shape_like, shape, DALIDataType.FLOAT if dtype is None else dtype, is_known=shape is not VARIES)


def _check(alpha: np.ndarray, beta: np.ndarray) -> None:
    check_each((alpha > 0) & np.isfinite(alpha), "alpha must be positive and finite; got {}.", alpha)
    check_each((beta > 0) & np.isfinite(beta), "beta must be positive and finite; got {}.", beta)


@beta.cpu_samples
def _(out: Samples, _like: Samples | None, *, alpha: np.ndarray, beta: np.ndarray, draws: SampleDraws) -> None:
    _check(alpha, beta)
    store_drawn(out, draws, lambda draws, count, n: rejection.beta(draws, count, alpha[n], beta[n]))


@beta.gpu_samples
@on_groups()
def _(
    out: torch.Tensor, _like: torch.Tensor | None, *, alpha: np.ndarray, beta: np.ndarray, draws: SampleDraws
) -> None:
    # Drawn by rejection sampling on the CPU, because the numbers are few, and must be the same on both devices.
    _check(alpha, beta)
    values = rejection.beta(draws, values_per_sample(out), alpha, beta)
    out.copy_(uploaded(values, out.device).reshape(out.shape))
