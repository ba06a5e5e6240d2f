"""Shapes of random numbers: a scalar per sample, a requested shape, or the shape of an input."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.narrow import is_list
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.arrays.convert import saturate_cast, saturate_cast_torch, store_joined
from dalify.kernels.arrays.joined import blocks
from dalify.kernels.random.philox import SampleDraws

_JOINED_VALUES = 1 << 15  # samples with fewer values are drawn together


def requested_shape(shape: Any, is_known: bool) -> tuple[int, ...] | None:
    """Convert a shape argument to a shape; None if it is unknown.

    Raises:
        ShapeError: an extent is negative.
    """
    if not is_known:
        return None
    extents = tuple(int(extent) for extent in (shape if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)))
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"shape {extents} has a negative extent.")
    return extents


def random_spec(shape_like: Spec | None, shape: Any, dtype: DALIDataType, *, is_known: bool) -> Spec:
    """Return the spec of random numbers.

    Args:
        shape_like: spec of the input whose shape is used, or None.
        shape: the argument ``shape``, or None.
        dtype: dtype of the numbers.
        is_known: whether the value of `shape` is known.

    Raises:
        ArgumentValueError: both an input and a shape are given.
    """
    if shape_like is not None:
        if shape is not None or not is_known:
            raise ArgumentValueError("specify either an input whose shape is used, or shape, not both.")
        return Spec(dtype, shape_like.ndim, "", shape_like.shape, shape_like.device)
    if not is_known:
        return Spec(dtype, None, "")
    return Spec(dtype, None, "", () if shape is None else requested_shape(shape, is_known=True))


def values_per_sample(out: Any) -> int:
    """Return the number of elements of one sample of ``out[N, ...]``."""
    return math.prod(out.shape[1:])


@functools.cache  # str(dtype) takes 6 microseconds
def precision(dtype: Any) -> type[np.floating]:
    """Return the float type of random numbers for a NumPy or torch dtype: float32 if its 24 bits are sufficient."""
    name = str(dtype).removeprefix("torch.")
    return np.float64 if name in ("float64", "int32", "uint32", "int64", "uint64") else np.float32


def store_drawn(
    out: Samples, draws: SampleDraws, draw: Callable[[SampleDraws, int | np.ndarray, Any], np.ndarray]
) -> None:
    """Fill samples with random numbers, rounded and saturated for integers.

    Args:
        out: output.
        draws: random numbers of the samples.
        draw: function of the random numbers of some samples, the number of values of each (an int, or int64 [N]), and
            an index that selects the samples; returns the values, [N, count] or concatenated.
    """
    if out.dense is not None:
        values = draw(draws, values_per_sample(out.dense), slice(None))
        saturate_cast(out.dense, values.reshape(out.dense.shape))
        return
    sizes = out.shapes.prod(1)
    for numbers in blocks(sizes, _JOINED_VALUES):
        count = sizes[numbers] if len(numbers) > 1 else int(sizes[numbers[0]])
        store_joined(out.take(numbers), draw(draws.take(numbers), count, numbers))


def store_torch(out: torch.Tensor, values: torch.Tensor) -> None:
    """Write numbers [N, count] into a tensor ``out[N, ...]``."""
    saturate_cast_torch(out, values.reshape(out.shape))


def check_probability(name: str, values: Any) -> None:
    """Raise an ArgumentValueError for the first of the probabilities [N] outside [0, 1]."""
    check_each((values >= 0) & (values <= 1), f"{name} must be a probability in [0, 1]; got {{}}.", values)


def check_each(is_good: Any, message: str, values: Any) -> None:
    """Raise an ArgumentValueError for the first invalid sample.

    Args:
        is_good: booleans [N] or one boolean.
        message: error text with ``{}`` for the value.
        values: per-sample values, an array or a list of them, for the message.
    """
    if not np.all(is_good):
        good = np.atleast_1d(is_good)
        sample = int(np.argmin(good))
        rows: Any = values if is_list(values) else np.atleast_1d(np.asarray(values))
        shown = rows[sample] if len(rows) == len(good) else rows
        raise ArgumentValueError(message.format(shown.tolist()), sample=sample)
