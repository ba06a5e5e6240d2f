"""Base classes of graph values, and what is shared by all values with Python's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from dalify.graph.node import Edge

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


def _unary(function: str) -> Callable[[ArithmeticMixin[_T]], _T]:
    def method(self: Any) -> Any:
        return self._apply(function, self)

    return method


def _binary(function: str) -> Callable[[ArithmeticMixin[_T], Any], _T]:
    def method(self: Any, other: Any) -> Any:
        return self._apply(function, self, other)

    return method


def _reflected(function: str) -> Callable[[ArithmeticMixin[_T], Any], _T]:
    def method(self: Any, other: Any) -> Any:
        return self._apply(function, other, self)

    return method


class ArithmeticMixin(Generic[_T]):
    """Mixin that maps Python's operators to named functions: ``a + b`` is ``_apply("add", a, b)``."""

    __slots__ = ()

    if TYPE_CHECKING:  # subclasses define it

        def _apply(self, function: str, *operands: Any) -> _T: ...

    __add__ = _binary("add")
    __radd__ = _reflected("add")
    __sub__ = _binary("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _binary("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _binary("fdiv")
    __rtruediv__ = _reflected("fdiv")
    __floordiv__ = _binary("div")
    __rfloordiv__ = _reflected("div")
    __mod__ = _binary("mod")
    __rmod__ = _reflected("mod")
    __pow__ = _binary("pow")
    __rpow__ = _reflected("pow")
    __lshift__ = _binary("lshift")
    __rlshift__ = _reflected("lshift")
    __rshift__ = _binary("rshift")
    __rrshift__ = _reflected("rshift")
    __and__ = _binary("bitand")
    __rand__ = _reflected("bitand")
    __or__ = _binary("bitor")
    __ror__ = _reflected("bitor")
    __xor__ = _binary("bitxor")
    __rxor__ = _reflected("bitxor")
    __lt__ = _binary("lt")
    __le__ = _binary("leq")
    __gt__ = _binary("gt")
    __ge__ = _binary("geq")
    __neg__ = _unary("minus")
    __pos__ = _unary("plus")
    __invert__ = _unary("bitnot")
    __abs__ = _unary("abs")
    __hash__ = object.__hash__

    def __eq__(self, other: Any) -> Any:  # not assigned like the others: type checkers would take object's, a bool
        return self._apply("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return self._apply("neq", self, other)


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
    """An edge of a graph as an operand: the base class of `DataNode`, which adds what creates further nodes."""

    __slots__ = ("edge",)

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    def node(self) -> Self:
        """Return itself."""
        return self
