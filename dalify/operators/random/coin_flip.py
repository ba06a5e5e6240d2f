"""Draw random zeros and ones."""

from __future__ import annotations

import math

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.random import distributions
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import check_each, random_spec, store_drawn, store_torch, values_per_sample
from dalify.kernels.random.scalar_draws import ScalarDraw
from dalify.registry import VARIES, PerSample, Shaping, Spec, on_groups, operator


@operator(random=True)
def coin_flip(
    shape_like: Spec | None = None,
    /,
    *,
    dtype: DALIDataType | None = None,
    probability: PerSample[float] = 0.5,
    shape: Shaping[list[int]] | None = None,
) -> Spec:
    """Draw 1 with a given probability, otherwise 0.

    Args:
        shape_like: data whose shape the result takes.
        dtype: type of the result, by default INT32.
        probability: probability of 1; below 0 it counts as 0, above 1 as 1.
        shape: shape of one sample; by default a scalar.

    Returns:
        random numbers, without a layout.

    Raises:
        ArgumentValueError: a probability is NaN.

    Example:
        >>> images = fn.flip(images, horizontal=fn.random.coin_flip())  # doctest: +SKIP
    """
    return random_spec(shape_like, shape, DALIDataType.INT32 if dtype is None else dtype, is_known=shape is not VARIES)


def _check(probability: np.ndarray) -> None:
    check_each(~np.isnan(probability), "probability must be a number from 0 to 1; got {}.", probability)


@coin_flip.cpu_samples
def _(out: Samples, _like: Samples | None, *, probability: np.ndarray, draws: SampleDraws) -> None:
    if out.dense is not None and distributions.flip_few(out.dense, draws, probability):
        return
    _check(probability)
    store_drawn(out, draws, lambda draws, count, n: distributions.coin_flip(draws, count, probability[n]))


@coin_flip.scalar_draw
def _(*, dtype: DALIDataType | None, probability: np.ndarray, shape: np.ndarray | None) -> ScalarDraw | None:
    is_int = dtype is None or dtype == DALIDataType.INT32
    limit = float(probability[0])
    is_scalar = is_int and shape is None and not math.isnan(limit)
    return ScalarDraw(is_flip=True, low=0.0, high=limit) if is_scalar else None


@coin_flip.gpu_samples
@on_groups()
def _(out: torch.Tensor, _like: torch.Tensor | None, *, probability: np.ndarray, draws: SampleDraws) -> None:
    _check(probability)
    store_torch(out, distributions.coin_flip_torch(draws, values_per_sample(out), probability, out.device))
