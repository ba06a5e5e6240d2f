"""Gathers elements by index, and finds the indices of elements.

Implemented with NumPy, single-threaded and sample by sample, because dalify has no compiled operators for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dalify import fn as dali
from dalify.base.errors import DTypeError, ShapeError
from dalify.graph import DataNode
from dalify.mediapipe.node import Operation, Value, operator, with_layout
from dalify.mediapipe.nodes.arithmetic import axis_of

_Array = np.ndarray[Any, Any]


def _computed(function: Callable[..., _Array], *xs: Value) -> DataNode:
    return dali.python_function(*[x.node.cpu() for x in xs], function=function)


def _check_integers(numbers: _Array, name: str) -> None:
    if numbers.dtype.kind not in "iu":
        raise DTypeError(f"{name} needs integer indices; got {numbers.dtype}.", hint="Use fn.Cast(dtype=dtype.INT32).")


@operator()
def Gather(x: Value, indices: Value, /, *, axis: int = 0) -> Value:
    """Gather elements along a dimension, counted from the fastest, by per-sample or constant indices.

    As in ONNX: the dimensions of `indices` replace the indexed dimension; negative indices count from the end.
    """
    dimension = axis_of(x, axis, "Gather")

    def taken(data: _Array, numbers: _Array) -> _Array:
        _check_integers(numbers, "Gather")
        size = data.shape[dimension]
        if numbers.size and not (-size <= numbers.min() and numbers.max() < size):
            raise ShapeError(f"Gather indices {numbers.min()} to {numbers.max()} are out of range for extent {size}.")
        return np.take(data, numbers.astype(np.int64), axis=dimension)

    return Value(_computed(taken, x, indices), is_bfloat16=x.is_bfloat16)


@operator()
def GatherND(x: Value, indices: Value, /) -> Value:
    """Gather elements or slices of each sample by index tuples.

    As in ONNX: the last dimension of `indices` contains indices for the first dimensions of a sample, in NumPy's order.
    """

    def taken(data: _Array, numbers: _Array) -> _Array:
        _check_integers(numbers, "GatherND")
        if numbers.ndim == 0 or not 1 <= numbers.shape[-1] <= data.ndim:
            raise ShapeError(f"GatherND needs tuples of 1 to {data.ndim} integers; got shape {numbers.shape}.")
        sizes = np.array(data.shape[: numbers.shape[-1]])
        numbers = numbers.astype(np.int64)
        if (numbers < -sizes).any() or (numbers >= sizes).any():
            raise ShapeError(f"a GatherND index is out of range for shape {tuple(sizes.tolist())}.")
        return data[tuple(np.moveaxis(numbers, -1, 0))]

    return Value(_computed(taken, x, indices), is_bfloat16=x.is_bfloat16)


@operator()
def Where(condition: Value, a: Value, b: Value, /) -> Value:
    """Select elements of the first data where the condition is not 0, else of the second, with the first's dtype.

    Not computed by sums of products, which would return NaN for unselected infinities.
    """

    def chosen(mask: _Array, first: _Array, second: _Array) -> _Array:
        return np.where(mask != 0, first, second)

    node = with_layout(dali.cast_like(_computed(chosen, condition, a, b), a.node), a.layout)
    return replace(a.with_node(node), batched=condition.batched or a.batched or b.batched)


def _extremum(name: str, text: str, reduce: Callable[..., DataNode], find: Callable[..., _Array]) -> type[Operation]:
    """Make the operator that returns an extremum along a dimension, and its indices."""

    def reduced(x: Value, /, *, reductionDimension: int) -> tuple[Value, Value]:
        dimension = axis_of(x, reductionDimension, name)

        def indices(data: _Array) -> _Array:
            return find(data, axis=dimension, keepdims=True).astype(np.int32)

        node = with_layout(_computed(indices, x), x.layout)
        extremum = x.with_node(reduce(x.node, axes=[dimension], keep_dims=True))
        return extremum, Value(node, x.layout, x.batched)

    reduced.__name__ = name
    reduced.__doc__ = f"""Return the {text} along a dimension, which is kept with extent 1, and its indices, int32.

    The first of equal elements is used. Unused indices are not computed.
    """
    return operator(outputs=2)(reduced)


ReduceMin = _extremum("ReduceMin", "minimum", dali.reductions.min, np.argmin)
ReduceMax = _extremum("ReduceMax", "maximum", dali.reductions.max, np.argmax)
