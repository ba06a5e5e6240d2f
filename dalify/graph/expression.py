"""Base classes of graph values, and what is shared by all values with Python's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from dalify.graph.node import Edge

__all__ = ["ArithmeticMixin", "Expression", "NewAxis", "TracedValue", "new_axis"]

_T = TypeVar("_T")


class NewAxis:
    """A new axis of extent one in an index.

    ``x[newaxis]``, or with a letter for the layout, ``x[newaxis("F")]``.
    """

    __slots__ = ("name",)

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def __call__(self, name: str) -> NewAxis:
        """Return a new axis with a layout letter."""
        return NewAxis(name)

    def __repr__(self) -> str:
        return "dalify.newaxis" if self.name is None else f"dalify.newaxis({self.name!r})"


new_axis = NewAxis()


class ArithmeticMixin(Generic[_T]):
    """Mixin that maps Python's operators to named functions: ``a + b`` is ``_apply("add", a, b)``."""

    __slots__ = ()

    if TYPE_CHECKING:  # subclasses define it

        def _apply(self, function: str, *operands: Any) -> _T: ...

    def __add__(self, other: Any) -> _T:
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> _T:
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> _T:
        return self._apply("sub", self, other)

    def __rsub__(self, other: Any) -> _T:
        return self._apply("sub", other, self)

    def __mul__(self, other: Any) -> _T:
        return self._apply("mul", self, other)

    def __rmul__(self, other: Any) -> _T:
        return self._apply("mul", other, self)

    def __truediv__(self, other: Any) -> _T:
        return self._apply("fdiv", self, other)

    def __rtruediv__(self, other: Any) -> _T:
        return self._apply("fdiv", other, self)

    def __floordiv__(self, other: Any) -> _T:
        return self._apply("div", self, other)

    def __rfloordiv__(self, other: Any) -> _T:
        return self._apply("div", other, self)

    def __mod__(self, other: Any) -> _T:
        return self._apply("mod", self, other)

    def __rmod__(self, other: Any) -> _T:
        return self._apply("mod", other, self)

    def __pow__(self, other: Any) -> _T:
        return self._apply("pow", self, other)

    def __rpow__(self, other: Any) -> _T:
        return self._apply("pow", other, self)

    def __lshift__(self, other: Any) -> _T:
        return self._apply("lshift", self, other)

    def __rlshift__(self, other: Any) -> _T:
        return self._apply("lshift", other, self)

    def __rshift__(self, other: Any) -> _T:
        return self._apply("rshift", self, other)

    def __rrshift__(self, other: Any) -> _T:
        return self._apply("rshift", other, self)

    def __and__(self, other: Any) -> _T:
        return self._apply("bitand", self, other)

    def __rand__(self, other: Any) -> _T:
        return self._apply("bitand", other, self)

    def __or__(self, other: Any) -> _T:
        return self._apply("bitor", self, other)

    def __ror__(self, other: Any) -> _T:
        return self._apply("bitor", other, self)

    def __xor__(self, other: Any) -> _T:
        return self._apply("bitxor", self, other)

    def __rxor__(self, other: Any) -> _T:
        return self._apply("bitxor", other, self)

    def __lt__(self, other: Any) -> _T:
        return self._apply("lt", self, other)

    def __le__(self, other: Any) -> _T:
        return self._apply("leq", self, other)

    def __gt__(self, other: Any) -> _T:
        return self._apply("gt", self, other)

    def __ge__(self, other: Any) -> _T:
        return self._apply("geq", self, other)

    def __eq__(self, other: Any) -> Any:
        return self._apply("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return self._apply("neq", self, other)

    __hash__ = object.__hash__

    def __neg__(self) -> _T:
        return self._apply("minus", self)

    def __pos__(self) -> _T:
        return self._apply("plus", self)

    def __invert__(self) -> _T:
        return self._apply("bitnot", self)

    def __abs__(self) -> _T:
        return self._apply("abs", self)


class Expression(ArithmeticMixin[_T]):
    """Base class of graph values and typed constants with arithmetic.

    A subclass provides ``_apply(function, *operands)`` and ``node()``.
    """

    __slots__ = ()

    # With this, NumPy calls `node.__radd__` for `array + node` instead of adding the node to every element.
    __array_ufunc__ = None

    if TYPE_CHECKING:  # subclasses define it

        def node(self) -> TracedValue[_T]:
            """Return the expression as a graph value."""
            ...

    def as_argument(self) -> Any:
        """Return the value for a keyword argument of an operator."""
        return self


class TracedValue(Expression[_T]):
    """An edge of a graph as an operand: the base class of `DataNode`, which adds what creates further nodes.

    Args:
        edge: an output of a node.
    """

    __slots__ = ("edge",)

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    def node(self) -> Self:
        """Return itself."""
        return self
