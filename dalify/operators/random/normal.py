"""Draw normally distributed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.random.distributions import column, column_torch, standard_normal, standard_normal_torch
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import random_spec, store_drawn, store_torch, values_per_sample
from dalify.registry import VARIES, PerSample, Shaping, Spec, on_groups, operator


@operator(random=True)
def normal(
    shape_like: Spec | None = None,
    /,
    *,
    dtype: DALIDataType | None = None,
    mean: PerSample[float] = 0.0,
    shape: Shaping[list[int]] | None = None,
    stddev: PerSample[float] = 1.0,
) -> Spec:
    """Draw numbers from a normal distribution.

    Args:
        shape_like: data whose shape the result takes.
        dtype: type of the result, by default FLOAT; integers are rounded and saturated.
        mean: mean of the distribution.
        shape: shape of one sample; by default a scalar.
        stddev: standard deviation; a negative value mirrors the distribution.

    Returns:
        random numbers, without a layout.

    Example:
        >>> jitter = fn.random.normal(stddev=0.1, shape=[3])  # doctest: +SKIP
    """
    return random_spec(shape_like, shape, DALIDataType.FLOAT if dtype is None else dtype, is_known=shape is not VARIES)


@normal.cpu_samples
def _(out: Samples, _like: Samples | None, *, mean: np.ndarray, stddev: np.ndarray, draws: SampleDraws) -> None:
    def draw(draws: SampleDraws, count: int | np.ndarray, numbers: Any) -> np.ndarray:
        values = standard_normal(draws, count)
        values *= column(stddev[numbers], np.float32, count)
        values += column(mean[numbers], np.float32, count)
        return values

    store_drawn(out, draws, draw)


@normal.gpu_samples
@on_groups()
def _(
    out: torch.Tensor, _like: torch.Tensor | None, *, mean: np.ndarray, stddev: np.ndarray, draws: SampleDraws
) -> None:
    values = standard_normal_torch(draws, values_per_sample(out), out.device)
    store_torch(out, values * column_torch(stddev, out.device) + column_torch(mean, out.device))
