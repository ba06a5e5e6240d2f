"""Arithmetic on whole batches, and changes of their shape.

Converts MediaPipe's dimensions (fastest first, the batch last) to those of a sample.
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dalify import fn as dali
from dalify import math
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.graph import DataNode
from dalify.mediapipe.media_types import dtype as types
from dalify.mediapipe.media_types import to_dalify_type
from dalify.mediapipe.node import Lowering, Operation, Value, operator, with_layout


def cast(value: Value, dtype: str | None) -> Value:
    """Convert data to a dtype; None keeps it."""
    if dtype is None:
        return value
    node = dali.cast(value.node, dtype=to_dalify_type(dtype))
    return replace(value.with_node(node), is_bfloat16=dtype == types.BFLOAT16)


def _binary(name: str, operation: Callable[[Any, Any], DataNode], text: str) -> type[Operation]:
    """Make the operator that combines two batches, or a batch and a constant."""

    def combined(a: Value, b: Value, /, *, dtype: str | None = None) -> Value:
        a, b = cast(a, dtype), cast(b, dtype)  # first, so that nothing overflows
        shown = a if len(a.layout) >= len(b.layout) else b
        # The first operand may be a constant, which has no layout.
        node = with_layout(operation(a.node, b.node), shown.layout)
        rounds = dtype == types.BFLOAT16 or (dtype is None and a.is_bfloat16 and b.is_bfloat16)
        return Value(node, shown.layout, a.batched or b.batched, is_bfloat16=rounds)

    combined.__name__, combined.__doc__ = name, text
    return operator()(combined)


_HOW = "; dimensions of extent 1 are broadcast. `dtype`: convert both to it first."
Add = _binary("Add", python_operator.add, f"Add two batches{_HOW}")
Sub = _binary("Sub", python_operator.sub, f"Subtract the second batch{_HOW}")
Mult = _binary("Mult", python_operator.mul, f"Multiply two batches{_HOW}")
BitwiseAnd = _binary("BitwiseAnd", python_operator.and_, "Compute the bitwise AND of two integers.")
BitwiseOr = _binary("BitwiseOr", python_operator.or_, "Compute the bitwise OR of two integers.")
BitwiseXor = _binary("BitwiseXor", python_operator.xor, "Compute the bitwise XOR of two integers.")


@operator()
def Neg(x: Value, /, *, dtype: str | None = None) -> Value:
    """Negate numbers."""
    x = cast(x, dtype)
    return x.with_node(-x.node)


@operator()
def Clamp(
    x: Value,
    low: Value | None = None,
    high: Value | None = None,
    /,
    *,
    lowerBound: float = 0.0,
    upperBound: float = 0.0,
    dtype: str | None = None,
) -> Value:
    """Clamp numbers to a range, given by arguments or by two further inputs. The dtype is kept."""
    if low is None and lowerBound > upperBound:
        raise ArgumentValueError(f"lowerBound={lowerBound} is above upperBound={upperBound}.")
    minimum = lowerBound if low is None else low.node
    maximum = upperBound if high is None else high.node
    result = x.with_node(math.clamp(x.node, minimum, maximum))
    is_batched = x.batched or any(limit is not None and limit.batched for limit in (low, high))
    return cast(replace(result, batched=is_batched), dtype)


@operator()
def Cast(x: Value, /, *, dtype: str, round_mode: int = 0) -> Value:
    """Convert to another dtype: rounded to nearest, halves away from zero, and saturated.

    ``BFLOAT16`` is computed in float32 and rounded at the output of the pipeline. `round_mode`: 0 only.
    """
    if round_mode != 0:
        raise ArgumentValueError(f"round_mode={round_mode} is not supported; use 0 (to nearest).")
    return cast(x, dtype)


@operator(inputs=(1, 10))
def Concat(*xs: Value, axis: int, dtype: str | None = None) -> Value:
    """Concatenate data along a dimension, counted from the fastest; not along the batch."""
    values = [cast(each, dtype) for each in xs]
    if axis < 0 or (values[0].layout and axis >= len(values[0].layout)):
        raise ArgumentValueError(
            f"axis={axis} is not a dimension of a sample; axis 0 is the fastest, the batch is the last one."
        )
    joined = values[0].with_node(dali.cat(*[each.node for each in values], axis=-1 - axis))
    return replace(joined, batched=any(each.batched for each in values))


@operator(outputs="num_outputs")
def Split(x: Value, /, *, axis: int, num_outputs: int) -> Any:
    """Split data into parts along a dimension, counted from the fastest; not along the batch.

    The parts are equal if the extent is a multiple of their number; otherwise they differ by one element.
    """
    index = axis_of(x, axis, "Split")
    size = 1.0 / num_outputs
    return tuple(
        x.with_node(dali.slice(x.node, rel_start=[part * size], rel_end=[(part + 1) * size], axes=[index]))
        for part in range(num_outputs)
    )


@operator()
def Slice(
    x: Value,
    /,
    *,
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int] | None = None,
) -> Value:
    """Slice data: starts and ends along dimensions counted from the fastest. Only step 1 is supported."""
    if steps is not None and any(step != 1 for step in steps):
        raise ArgumentValueError(f"steps={list(steps)} is not supported; each step must be 1.")
    if not len(axes) == len(starts) == len(ends):
        raise ArgumentValueError(
            f"axes, starts and ends must have the same length; got {len(axes)}, {len(starts)} and {len(ends)}."
        )
    indices = [axis_of(x, axis, "Slice") for axis in axes]
    return x.with_node(dali.slice(x.node, start=list(starts), end=list(ends), axes=indices))


@operator()
def Reshape(
    context: Lowering,
    x: Value,
    /,
    *,
    size: Sequence[int],
    tensorDim: int | None = None,
    layout: str = "",
    dtype: str | None = None,
) -> Value:
    """Change the extents of the dimensions, without changing the elements.

    Args:
        context: the graph.
        x: data.
        size: extents, fastest dimension first and batch last.
        tensorDim: number of dimensions to use; all by default.
        layout: letters of the dimensions, fastest first.
        dtype: dtype to convert to.
    """
    wanted = list(size)[: tensorDim or len(size)]
    if not wanted or wanted[-1] != context.batch_size:
        raise ShapeError(
            f"size={list(size)} must end with the batch size {context.batch_size}: the batch dimension cannot change.",
            hint="Use size=[batch_size] for one number per sample.",
        )
    letters = layout[:-1][::-1]
    node = dali.reshape(x.node, shape=wanted[:-1][::-1], layout=letters)
    return replace(cast(x.with_node(node, letters), dtype), batched=True)


@operator()
def Transpose(
    x: Value,
    /,
    *,
    permutation: Sequence[int],
    tensorDim: int | None = None,
    dtype: str | None = None,
) -> Value:
    """Permute the dimensions: dimension i of the result, counted from the fastest, is ``permutation[i]``.

    Args:
        x: data with a layout.
        permutation: permutation of all dimensions; the last one, the batch, is fixed.
        tensorDim: number of dimensions to use; all by default.
        dtype: dtype to convert to.

    Returns:
        the same elements in another order.
    """
    order = list(permutation)[: tensorDim or len(permutation)]
    count = len(order) - 1
    if sorted(order) != list(range(count + 1)) or order[-1] != count:
        raise ArgumentValueError(
            f"permutation={list(permutation)} must contain each dimension once, with the batch last.",
            hint="[1, 2, 0, 3] converts HWC to CHW.",
        )
    axes = [count - 1 - order[count - 1 - axis] for axis in range(count)]
    letters = "".join(x.layout[axis] for axis in axes) if len(x.layout) == count else ""
    if x.interleaved is not None and axes == [1, 2, 0]:
        return cast(x.with_node(x.interleaved, "HWC"), dtype)
    return cast(x.with_node(dali.transpose(x.node, perm=axes), letters), dtype)


@operator()
def MemCpy(x: Value, /, *, dtype: str | None = None) -> Value:
    """Return the data unchanged."""
    return cast(x, dtype)


def named(x: Value, name: str) -> str:
    """Return the layout of a sample, for an operator that requires one.

    Raises:
        ShapeError: the layout is unknown.
    """
    if not x.layout:
        raise ShapeError(f"fn.{name} needs data with a layout: images, volumes, or results of Reshape(layout=…).")
    return x.layout


def axis_of(x: Value, axis: int, name: str) -> int:
    """Return NumPy's axis of a dimension of a sample that is counted from the fastest.

    Raises:
        ShapeError: the layout is unknown.
        ArgumentValueError: the dimension does not exist.
    """
    count = len(named(x, name))
    if not 0 <= axis < count:
        raise ArgumentValueError(f"a dimension must be in [0, {count - 1}]; got {axis}.")
    return count - 1 - axis
