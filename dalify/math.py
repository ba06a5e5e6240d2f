"""Element-wise functions of graph values and numbers, under DALI's names: ``math.sqrt(x)``.

Operands follow the rules of arithmetic: Python integers are INT32, Python floats FLOAT; shapes are broadcast.
Functions that are not defined for integers return floating-point numbers.
"""

from __future__ import annotations

from typing import Any, Protocol

from dalify.graph import DataNode, arithmetic

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "exp",
    "fabs",
    "floor",
    "fpow",
    "log",
    "log2",
    "log10",
    "max",
    "min",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


class _Unary(Protocol):
    def __call__(self, input: Any) -> DataNode: ...


def _unary(name: str, description: str) -> _Unary:
    """Return the function of one operand with a name and a docstring."""

    def function(input: Any) -> DataNode:
        return arithmetic(name, (input,))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = description
    return function


abs = _unary("abs", "Return the absolute value, element-wise.")
fabs = _unary("fabs", "Return the absolute value as a floating-point number, element-wise.")
sqrt = _unary("sqrt", "Return the square root, element-wise.")
rsqrt = _unary(
    "rsqrt",
    "Return the reciprocal of the square root, element-wise: infinite at 0, unlike in DALI, where FLOAT gives NaN.",
)
cbrt = _unary("cbrt", "Return the cube root, element-wise.")
exp = _unary("exp", "Return e to the power of the value, element-wise.")
log = _unary("log", "Return the natural logarithm, element-wise.")
log2 = _unary("log2", "Return the logarithm to base 2, element-wise.")
log10 = _unary("log10", "Return the logarithm to base 10, element-wise.")
floor = _unary("floor", "Return the largest integer not above the value, element-wise.")
ceil = _unary("ceil", "Return the smallest integer not below the value, element-wise.")
sin = _unary("sin", "Return the sine of an angle in radians, element-wise.")
cos = _unary("cos", "Return the cosine of an angle in radians, element-wise.")
tan = _unary("tan", "Return the tangent of an angle in radians, element-wise.")
asin = _unary("asin", "Return the angle in radians whose sine is the value, element-wise.")
acos = _unary("acos", "Return the angle in radians whose cosine is the value, element-wise.")
atan = _unary("atan", "Return the angle in radians whose tangent is the value, element-wise.")
sinh = _unary("sinh", "Return the hyperbolic sine, element-wise.")
cosh = _unary("cosh", "Return the hyperbolic cosine, element-wise.")
tanh = _unary("tanh", "Return the hyperbolic tangent, element-wise.")
asinh = _unary("asinh", "Return the inverse hyperbolic sine, element-wise.")
acosh = _unary("acosh", "Return the inverse hyperbolic cosine, element-wise.")
atanh = _unary("atanh", "Return the inverse hyperbolic tangent, element-wise.")


def pow(base: Any, exponent: Any) -> DataNode:
    """Return ``base`` to the power of ``exponent``, element-wise.

    For integers, the result is an integer, and a negative exponent gives 0.
    """
    return arithmetic("pow", (base, exponent))


def fpow(base: Any, exponent: Any) -> DataNode:
    """Return ``base`` to the power of ``exponent`` as a floating-point number, element-wise."""
    return arithmetic("fpow", (base, exponent))


def min(left: Any, right: Any) -> DataNode:
    """Return the smaller value, element-wise."""
    return arithmetic("min", (left, right))


def max(left: Any, right: Any) -> DataNode:
    """Return the larger value, element-wise."""
    return arithmetic("max", (left, right))


def atan2(x: Any, y: Any) -> DataNode:
    """Return the angle in radians with sine proportional to ``x`` and cosine to ``y``, element-wise."""
    return arithmetic("atan2", (x, y))


def clamp(value: Any, lo: Any, hi: Any) -> DataNode:
    """Return the value clipped to ``lo`` … ``hi``, element-wise."""
    return arithmetic("clamp", (value, lo, hi))
