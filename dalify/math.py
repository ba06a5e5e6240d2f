"""Element-wise functions of graph values and numbers, under DALI's names: ``math.sqrt(x)``.

Operands follow the rules of arithmetic: Python integers are INT32, Python floats FLOAT; extents are broadcast. All
functions that are not defined for integers give floating-point numbers.
"""

from __future__ import annotations

from typing import Any

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


def abs(x: Any) -> DataNode:
    """Return the absolute value, element by element."""
    return arithmetic("abs", (x,))


def fabs(x: Any) -> DataNode:
    """Return the absolute value as a floating-point number, element by element."""
    return arithmetic("fabs", (x,))


def sqrt(x: Any) -> DataNode:
    """Return the square root, element by element."""
    return arithmetic("sqrt", (x,))


def rsqrt(x: Any) -> DataNode:
    """Return the reciprocal of the square root, element by element: infinite at 0, where DALI's FLOAT gives NaN."""
    return arithmetic("rsqrt", (x,))


def cbrt(x: Any) -> DataNode:
    """Return the cubic root, element by element."""
    return arithmetic("cbrt", (x,))


def exp(x: Any) -> DataNode:
    """Return e to the power of the value, element by element."""
    return arithmetic("exp", (x,))


def log(x: Any) -> DataNode:
    """Return the natural logarithm, element by element."""
    return arithmetic("log", (x,))


def log2(x: Any) -> DataNode:
    """Return the logarithm to base 2, element by element."""
    return arithmetic("log2", (x,))


def log10(x: Any) -> DataNode:
    """Return the logarithm to base 10, element by element."""
    return arithmetic("log10", (x,))


def floor(x: Any) -> DataNode:
    """Return the largest whole number not above the value, element by element."""
    return arithmetic("floor", (x,))


def ceil(x: Any) -> DataNode:
    """Return the smallest whole number not below the value, element by element."""
    return arithmetic("ceil", (x,))


def sin(x: Any) -> DataNode:
    """Return the sine of an angle in radians, element by element."""
    return arithmetic("sin", (x,))


def cos(x: Any) -> DataNode:
    """Return the cosine of an angle in radians, element by element."""
    return arithmetic("cos", (x,))


def tan(x: Any) -> DataNode:
    """Return the tangent of an angle in radians, element by element."""
    return arithmetic("tan", (x,))


def asin(x: Any) -> DataNode:
    """Return the angle in radians whose sine is the value, element by element."""
    return arithmetic("asin", (x,))


def acos(x: Any) -> DataNode:
    """Return the angle in radians whose cosine is the value, element by element."""
    return arithmetic("acos", (x,))


def atan(x: Any) -> DataNode:
    """Return the angle in radians whose tangent is the value, element by element."""
    return arithmetic("atan", (x,))


def sinh(x: Any) -> DataNode:
    """Return the hyperbolic sine, element by element."""
    return arithmetic("sinh", (x,))


def cosh(x: Any) -> DataNode:
    """Return the hyperbolic cosine, element by element."""
    return arithmetic("cosh", (x,))


def tanh(x: Any) -> DataNode:
    """Return the hyperbolic tangent, element by element."""
    return arithmetic("tanh", (x,))


def asinh(x: Any) -> DataNode:
    """Return the inverse hyperbolic sine, element by element."""
    return arithmetic("asinh", (x,))


def acosh(x: Any) -> DataNode:
    """Return the inverse hyperbolic cosine, element by element."""
    return arithmetic("acosh", (x,))


def atanh(x: Any) -> DataNode:
    """Return the inverse hyperbolic tangent, element by element."""
    return arithmetic("atanh", (x,))


def pow(base: Any, exponent: Any) -> DataNode:
    """Return ``base`` to the power of ``exponent``.

    Integers stay integers, and a negative exponent then gives 0, element by element.
    """
    return arithmetic("pow", (base, exponent))


def fpow(base: Any, exponent: Any) -> DataNode:
    """Return ``base`` to the power of ``exponent`` as a floating-point number, element by element."""
    return arithmetic("fpow", (base, exponent))


def min(left: Any, right: Any) -> DataNode:
    """Return the smaller value, element by element."""
    return arithmetic("min", (left, right))


def max(left: Any, right: Any) -> DataNode:
    """Return the larger value, element by element."""
    return arithmetic("max", (left, right))


def atan2(y: Any, x: Any) -> DataNode:
    """Return the angle in radians of the point (x, y), element by element."""
    return arithmetic("atan2", (y, x))


def clamp(value: Any, low: Any, high: Any) -> DataNode:
    """Return the value, limited to ``low`` … ``high``, element by element."""
    return arithmetic("clamp", (value, low, high))
