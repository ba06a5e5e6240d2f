"""Draw normally distributed numbers."""

from __future__ import annotations

from dalify.data.dtypes import DALIDataType
from dalify.kernels.distributions import column, column_torch, standard_normal, standard_normal_torch
from dalify.kernels.random_shapes import random_spec, store, store_torch, values_per_sample
from dalify.registry import VARIES, PerSample, Shaping, Spec, operator


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
        shape_like: data whose shape the numbers take.
        dtype: of the numbers, FLOAT by default; integers are rounded and saturated.
        mean: of the distribution.
        shape: of the numbers of one sample; a single number without it.
        stddev: standard deviation; a negative one mirrors the numbers.

    Returns:
        numbers, without layout.

    Example:
        >>> jitter = fn.random.normal(stddev=0.1, shape=[3])  # doctest: +SKIP
    """
    return random_spec(shape_like, shape, DALIDataType.FLOAT if dtype is None else dtype, is_known=shape is not VARIES)


@normal.cpu
def _(out, _like, *, mean, stddev, draws):
    values = standard_normal(draws, values_per_sample(out))
    values *= column(stddev)
    values += column(mean)
    store(out, values)


@normal.gpu
def _(out, _like, *, mean, stddev, draws):
    values = standard_normal_torch(draws, values_per_sample(out), out.device)
    store_torch(out, values * column_torch(stddev, out.device) + column_torch(mean, out.device))
