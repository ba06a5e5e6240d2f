"""Python's operators on tensors and batches: ``(images - mean) / std``."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.experimental.dynamic.calls import apply
from dalify.experimental.dynamic.tensor_or_batch import TensorOrBatch
from dalify.graph import ArithmeticMixin, index_entries, is_promotable


def function_of(name: str, *operands: Any) -> Any:
    """Return an element-wise function of tensors, batches and values that can be converted to a tensor.

    Raises:
        ArgumentTypeError: an operand is not numeric.
    """
    for operand in operands:
        if not isinstance(operand, TensorOrBatch) and (isinstance(operand, str) or not is_promotable(operand)):
            raise ArgumentTypeError.here(
                f"{name!r} does not support a tensor together with {type(operand).__name__}.",
                hint="Use tensors, batches, numbers or arrays.",
            )
    return apply("arithmetic", *operands, function=name)


def subscripted(data: TensorOrBatch, index: Any) -> Any:
    """Return elements and slices of each sample; indices may be tensors, or batches with one index per sample.

    Raises:
        ArgumentTypeError: an index is not an integer, slice, tensor, batch, new axis or Ellipsis.
        IndexingError: an index beyond the extent.
    """
    entries, values = index_entries(index, TensorOrBatch, "a tensor or a batch")
    return apply("tensor_subscript", data, *values, items=entries)


class Arithmetic(TensorOrBatch, ArithmeticMixin[Any]):
    """Operators such as ``+`` and ``<`` of tensors and batches; type promotion as in a pipeline."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def _apply(self, function: str, *operands: Any) -> Any:
        return function_of(function, *operands)
