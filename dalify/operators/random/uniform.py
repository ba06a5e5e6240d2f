"""Draw uniformly distributed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import torch
from dalify.base.small_arrays import counting
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.random import distributions
from dalify.kernels.random.philox import SampleDraws
from dalify.kernels.random.random_shapes import (
    check_each,
    precision,
    random_spec,
    store_drawn,
    store_torch,
    values_per_sample,
)
from dalify.kernels.random.scalar_draws import ScalarDraw
from dalify.registry import VARIES, PerSample, Shaping, Spec, on_groups, operator


@operator(random=True)
def uniform(
    shape_like: Spec | None = None,
    /,
    *,
    dtype: DALIDataType | None = None,
    range: PerSample[list[float] | tuple[float, ...]] = (-1.0, 1.0),
    shape: Shaping[list[int]] | None = None,
    values: PerSample[list[float]] | None = None,
) -> Spec:
    """Draw numbers uniformly from a range or from a list of values.

    For integer types, a number is drawn from the range and rounded, so that both ends of the range can occur, with half
    the probability of the others. Values out of the range of the type are saturated (they wrap in DALI).

    Args:
        shape_like: data whose shape the result takes.
        dtype: type of the result, by default FLOAT.
        range: start (inclusive) and end (exclusive) of the range.
        shape: shape of one sample; by default a scalar.
        values: values to draw from, instead of `range`.

    Returns:
        random numbers, without a layout.

    Raises:
        ArgumentValueError: the range is empty or does not have two numbers, or the list of values is empty.

    Example:
        >>> angle = fn.random.uniform(range=(-15, 15))  # doctest: +SKIP
    """
    if values is None and range is not VARIES and len(range) != 2:
        raise ArgumentValueError(f"range must have two numbers, start and end; got {len(range)}.")
    if values is not None and values is not VARIES and not len(values):
        raise ArgumentValueError("values must have at least one number.")
    return random_spec(shape_like, shape, DALIDataType.FLOAT if dtype is None else dtype, is_known=shape is not VARIES)


def _limits(range: Any) -> tuple[np.ndarray, np.ndarray]:
    range = np.asarray(range)
    if range.shape[-1] != 2:
        raise ArgumentValueError(f"range must have two numbers, start and end; got {range.shape[-1]}.")
    low, high = range[..., 0], range[..., 1]
    check_each(low < high, "range {} is empty: its end must be greater than its start.", range)
    return low, high


def _choices(values: Any) -> np.ndarray:
    if isinstance(values, list) or not np.shape(values)[-1]:
        raise ArgumentValueError("values must have at least one number, and the same number for all samples.")
    return np.asarray(values)


@uniform.cpu_samples
def _(out: Samples, _like: Samples | None, *, range: np.ndarray, values: np.ndarray | None, draws: SampleDraws) -> None:
    if values is not None:
        rows = _choices(values)

        def chosen(draws: SampleDraws, count: int | np.ndarray, numbers: Any) -> np.ndarray:
            index = distributions.choice(draws, count, rows.shape[1])
            index += distributions.column(counting(len(draws)) * rows.shape[1], np.int64, count)
            return rows[numbers].reshape(-1)[index]

        store_drawn(out, draws, chosen)
    elif out.dense is None or not distributions.uniform_few(out.dense, draws, range):
        low, high = _limits(range)
        dtype = precision(out.dtype)
        store_drawn(out, draws, lambda draws, count, n: distributions.uniform(draws, count, low[n], high[n], dtype))


@uniform.scalar_draw
def _(
    *, dtype: DALIDataType | None, range: np.ndarray, shape: np.ndarray | None, values: np.ndarray | None
) -> ScalarDraw | None:
    low, high = range[0].tolist()
    is_float = dtype is None or dtype == DALIDataType.FLOAT
    is_scalar = is_float and shape is None and values is None and low < high
    return ScalarDraw(is_flip=False, low=low, high=high) if is_scalar else None


@uniform.gpu_samples
@on_groups()
def _(
    out: torch.Tensor, _like: torch.Tensor | None, *, range: np.ndarray, values: np.ndarray | None, draws: SampleDraws
) -> None:
    count = values_per_sample(out)
    if values is None:
        low, high = _limits(range)
        store_torch(out, distributions.uniform_torch(draws, count, low, high, out.device, precision(out.dtype)))
    else:
        values = _choices(values)
        index = distributions.choice_torch(draws, count, values.shape[-1], out.device)
        store_torch(out, uploaded(values, out.device).gather(1, index))
