"""Operators of Python on tensors and batches: ``(images - mean) / std``.

Alone because tensors and batches have the same ones, and mix.
"""

from __future__ import annotations

import operator as python_operator
from typing import Any

from dalify.base.errors import ArgumentTypeError
from dalify.base.source_line import SourceLine
from dalify.experimental.dynamic.calls import apply
from dalify.experimental.dynamic.held import Held
from dalify.graph import is_promotable, new_axis

__all__ = ["Arithmetic", "function_of", "subscripted"]


def function_of(name: str, *operands: Any) -> Any:
    """Return an element-wise function of tensors, batches and what can be made a tensor.

    Raises:
        ArgumentTypeError: an operand that holds no numbers.
    """
    for operand in operands:
        if not isinstance(operand, Held) and (isinstance(operand, str) or not is_promotable(operand)):
            raise ArgumentTypeError(
                f"a tensor cannot be combined with {type(operand).__name__} by {name!r}.",
                line=SourceLine.capture(),
                hint="Use tensors, batches, numbers or arrays.",
            )
    return apply("arithmetic", *operands, function=name)


def subscripted(data: Held, index: Any) -> Any:
    """Return elements and slices of each sample; indices may be tensors, or batches for one of each sample.

    Raises:
        ArgumentTypeError: an index that is no integer, slice, tensor, batch, new axis or Ellipsis.
        IndexingError: an index beyond the extent.
    """
    values: list[Held] = []

    def number(item: Any) -> Any:
        if item is None:
            return None
        if isinstance(item, Held):
            values.append(item)
            return ("node", len(values) - 1)
        try:
            return python_operator.index(item)
        except TypeError:
            raise ArgumentTypeError(
                f"an index must be an integer, a slice, a tensor or a batch; got {item!r}.", line=SourceLine.capture()
            ) from None

    items: list[tuple[Any, ...]] = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, slice):
            items.append(("slice", number(item.start), number(item.stop), number(item.step)))
        elif item is Ellipsis:
            items.append(("ellipsis",))
        elif item is None or isinstance(item, type(new_axis)):
            items.append(("newaxis", None if item is None else item.name))
        else:
            items.append(("at", number(item)))
    return apply("tensor_subscript", data, *values, items=tuple(items))


class Arithmetic(Held):
    """What ``+``, ``<`` and the like make of tensors and batches; types meet as in a pipeline."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __add__(self, other: Any) -> Any:
        return function_of("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return function_of("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return function_of("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return function_of("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return function_of("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return function_of("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return function_of("fdiv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return function_of("fdiv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return function_of("div", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return function_of("div", other, self)

    def __mod__(self, other: Any) -> Any:
        return function_of("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return function_of("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return function_of("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return function_of("pow", other, self)

    def __and__(self, other: Any) -> Any:
        return function_of("bitand", self, other)

    def __rand__(self, other: Any) -> Any:
        return function_of("bitand", other, self)

    def __or__(self, other: Any) -> Any:
        return function_of("bitor", self, other)

    def __ror__(self, other: Any) -> Any:
        return function_of("bitor", other, self)

    def __xor__(self, other: Any) -> Any:
        return function_of("bitxor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return function_of("bitxor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return function_of("lshift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return function_of("lshift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return function_of("rshift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return function_of("rshift", other, self)

    def __lt__(self, other: Any) -> Any:
        return function_of("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return function_of("leq", self, other)

    def __gt__(self, other: Any) -> Any:
        return function_of("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return function_of("geq", self, other)

    def __eq__(self, other: Any) -> Any:
        return function_of("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return function_of("neq", self, other)

    def __neg__(self) -> Any:
        return function_of("minus", self)

    def __pos__(self) -> Any:
        return function_of("plus", self)

    def __abs__(self) -> Any:
        return function_of("abs", self)

    def __invert__(self) -> Any:
        return function_of("bitnot", self)
