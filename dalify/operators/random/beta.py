"""Draw beta-distributed numbers."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import DTypeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels import rejection
from dalify.kernels.random_shapes import check_each, random_spec, store, values_per_sample
from dalify.registry import VARIES, PerSample, Shaping, Spec, operator


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
        shape_like: data whose shape the numbers take.
        alpha: first parameter, positive.
        beta: second parameter, positive.
        dtype: FLOAT (default), FLOAT64 or FLOAT16.
        shape: of the numbers of one sample; a single number without it.

    Returns:
        numbers, without layout.

    Raises:
        DTypeError: `dtype` is no float.
        ArgumentValueError: a parameter that is not positive and finite.

    Example:
        >>> share = fn.random.beta(alpha=0.2, beta=0.2)  # of two mixed images  # doctest: +SKIP
    """
    if dtype is not None and not dtype.is_float:
        raise DTypeError(f"beta-distributed numbers lie between 0 and 1: dtype must be a float; got {dtype.name}.")
    return random_spec(shape_like, shape, DALIDataType.FLOAT if dtype is None else dtype, is_known=shape is not VARIES)


def _drawn(count: int, alpha: np.ndarray, beta: np.ndarray, draws) -> np.ndarray:
    check_each((alpha > 0) & np.isfinite(alpha), "alpha must be positive and finite; got {}.", alpha)
    check_each((beta > 0) & np.isfinite(beta), "beta must be positive and finite; got {}.", beta)
    return rejection.beta(draws, count, alpha, beta)


@beta.cpu
def _(out, _like, *, alpha, beta, draws):
    store(out, _drawn(values_per_sample(out), alpha, beta, draws))


@beta.gpu
def _(out, _like, *, alpha, beta, draws):
    # Few numbers, made by rejection: drawn on the CPU, which also gives the same ones.
    values = _drawn(values_per_sample(out), alpha, beta, draws)
    out.copy_(torch.as_tensor(values).reshape(out.shape))
