"""Operators for constants and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.wording import counted
from dalify.graph import constant as graph_constant
from dalify.mediapipe.media_types import dtype as types
from dalify.mediapipe.media_types import to_dalify_type
from dalify.mediapipe.node import Lowering, Value, operator, seed_of, with_layout


@operator()
def MediaConst(
    context: Lowering,
    /,
    *,
    data: Any,
    shape: Sequence[int],
    dtype: str = types.UINT8,
    batch_broadcast: bool = True,
    layout: str = "",
) -> Value:
    """Return constant numbers.

    Args:
        context: the graph.
        data: the numbers.
        shape: their extents, fastest dimension first.
        dtype: their dtype.
        batch_broadcast: use the same numbers for every sample; otherwise the last dimension of `shape` is the batch.
        layout: letters of the dimensions, fastest first.
    """
    kind = to_dalify_type(dtype)
    extents = [int(extent) for extent in shape][::-1]
    values = np.asarray(data).astype(kind.numpy)
    if values.size != int(np.prod(extents)):
        raise ShapeError(
            f"data of MediaConst has {counted(values.size, 'element')}, which does not match shape={list(shape)}."
        )
    values = values.reshape(extents)
    rounds = dtype == types.BFLOAT16
    if batch_broadcast:
        node = graph_constant(values, kind, layout[::-1])
        return Value(node, layout[::-1], batched=False, constant=values, is_bfloat16=rounds)
    if not extents or extents[0] != context.batch_size:
        raise ShapeError(f"shape={list(shape)} must end with the batch size {context.batch_size}.")
    (node,) = dali.external_source(source=lambda: (values,), num_outputs=1)
    letters = layout[:-1][::-1]
    return Value(with_layout(node, letters), letters, is_bfloat16=rounds)


@operator()
def Constant(*, constant: float, dtype: str = types.FLOAT32) -> Value:
    """Return one number, the same for every sample.

    Args:
        constant: the number.
        dtype: its dtype.
    """
    kind = to_dalify_type(dtype)
    value = np.asarray(constant).astype(kind.numpy)
    return Value(graph_constant(value, kind), constant=value, is_bfloat16=dtype == types.BFLOAT16)


def _sample_shape(shape: Sequence[int] | None, context: Lowering, dims: int | None) -> list[int] | None:
    if shape is None:
        return None
    extents = [int(extent) for extent in shape][: dims or len(shape)]
    if not extents or extents[-1] != context.batch_size:
        raise ShapeError(f"shape={list(shape)} must end with the batch size {context.batch_size}.")
    return extents[:-1][::-1] or None


@operator()
def CoinFlip(probability: Value, /, *, seed: int | None = 100, dtype: str = types.UINT8) -> Value:
    """Return 1 with a given probability, otherwise 0, for each sample.

    Args:
        probability: probability of 1; a constant, or one number per sample.
        seed: seed of the random numbers.
        dtype: dtype of the result.
    """
    chance: Any = probability.node
    if probability.constant is not None:
        chance = float(probability.constant.reshape(-1)[0])
        if not 0 <= chance <= 1:
            raise ArgumentValueError(f"the probability of CoinFlip must be in [0, 1]; got {chance}.")
    node = dali.random.coin_flip(probability=chance, dtype=to_dalify_type(dtype), seed=seed_of(seed))
    return Value(node, is_bfloat16=dtype == types.BFLOAT16)


@operator()
def RandomUniform(
    context: Lowering,
    /,
    *,
    low: float = 0.0,
    high: float = 1.0,
    seed: int | None = None,
    dtype: str = types.FLOAT32,
    shape: Sequence[int] | None = None,
    dims: int | None = None,
) -> Value:
    """Draw uniform random numbers from a range.

    Args:
        context: the graph.
        low: start of the range.
        high: end of the range.
        seed: seed of the random numbers.
        dtype: dtype of the result.
        shape: extents, fastest dimension first and batch last; one number per sample by default.
        dims: number of dimensions to use.
    """
    extents = _sample_shape(shape, context, dims)
    node = dali.random.uniform(range=(low, high), dtype=to_dalify_type(dtype), seed=seed_of(seed), shape=extents)
    return Value(node, is_bfloat16=dtype == types.BFLOAT16)


@operator()
def RandomNormal(
    context: Lowering,
    stddev: Value,
    like: Value | None = None,
    /,
    *,
    mean: float = 0.0,
    seed: int | None = None,
    dtype: str = types.FLOAT32,
    shape: Sequence[int] | None = None,
    dims: int | None = None,
) -> Value:
    """Draw random numbers from a normal distribution.

    Args:
        context: the graph.
        stddev: standard deviation; a constant, or one number per sample.
        like: data with the extents of the result.
        mean: mean of the distribution.
        seed: seed of the random numbers.
        dtype: dtype of the result.
        shape: extents, fastest dimension first and batch last; one number per sample by default.
        dims: number of dimensions to use.
    """
    extents = _sample_shape(shape, context, dims)
    deviation: Any = stddev.node if stddev.constant is None else float(stddev.constant.reshape(-1)[0])
    inputs = [] if like is None else [like.node]
    node = dali.random.normal(
        *inputs,
        mean=mean,
        stddev=deviation,
        dtype=to_dalify_type(dtype),
        seed=seed_of(seed),
        shape=extents if like is None else None,
    )
    layout = "" if like is None else like.layout
    return Value(with_layout(node, layout), layout, is_bfloat16=dtype == types.BFLOAT16)
