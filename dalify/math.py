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


def abs(input: Any) -> DataNode:
    """Return the absolute value, element by element."""
    return arithmetic("abs", (input,))


def fabs(input: Any) -> DataNode:
    """Return the absolute value as a floating-point number, element by element."""
    return arithmetic("fabs", (input,))


def sqrt(input: Any) -> DataNode:
    """Return the square root, element by element."""
    return arithmetic("sqrt", (input,))


def rsqrt(input: Any) -> DataNode:
    """Return the reciprocal of the square root, element by element: infinite at 0, where DALI's FLOAT gives NaN."""
    return arithmetic("rsqrt", (input,))


def cbrt(input: Any) -> DataNode:
    """Return the cubic root, element by element."""
    return arithmetic("cbrt", (input,))


def exp(input: Any) -> DataNode:
    """Return e to the power of the value, element by element."""
    return arithmetic("exp", (input,))


def log(input: Any) -> DataNode:
    """Return the natural logarithm, element by element."""
    return arithmetic("log", (input,))


def log2(input: Any) -> DataNode:
    """Return the logarithm to base 2, element by element."""
    return arithmetic("log2", (input,))


def log10(input: Any) -> DataNode:
    """Return the logarithm to base 10, element by element."""
    return arithmetic("log10", (input,))


def floor(input: Any) -> DataNode:
    """Return the largest whole number not above the value, element by element."""
    return arithmetic("floor", (input,))


def ceil(input: Any) -> DataNode:
    """Return the smallest whole number not below the value, element by element."""
    return arithmetic("ceil", (input,))


def sin(input: Any) -> DataNode:
    """Return the sine of an angle in radians, element by element."""
    return arithmetic("sin", (input,))


def cos(input: Any) -> DataNode:
    """Return the cosine of an angle in radians, element by element."""
    return arithmetic("cos", (input,))


def tan(input: Any) -> DataNode:
    """Return the tangent of an angle in radians, element by element."""
    return arithmetic("tan", (input,))


def asin(input: Any) -> DataNode:
    """Return the angle in radians whose sine is the value, element by element."""
    return arithmetic("asin", (input,))


def acos(input: Any) -> DataNode:
    """Return the angle in radians whose cosine is the value, element by element."""
    return arithmetic("acos", (input,))


def atan(input: Any) -> DataNode:
    """Return the angle in radians whose tangent is the value, element by element."""
    return arithmetic("atan", (input,))


def sinh(input: Any) -> DataNode:
    """Return the hyperbolic sine, element by element."""
    return arithmetic("sinh", (input,))


def cosh(input: Any) -> DataNode:
    """Return the hyperbolic cosine, element by element."""
    return arithmetic("cosh", (input,))


def tanh(input: Any) -> DataNode:
    """Return the hyperbolic tangent, element by element."""
    return arithmetic("tanh", (input,))


def asinh(input: Any) -> DataNode:
    """Return the inverse hyperbolic sine, element by element."""
    return arithmetic("asinh", (input,))


def acosh(input: Any) -> DataNode:
    """Return the inverse hyperbolic cosine, element by element."""
    return arithmetic("acosh", (input,))


def atanh(input: Any) -> DataNode:
    """Return the inverse hyperbolic tangent, element by element."""
    return arithmetic("atanh", (input,))


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


def atan2(x: Any, y: Any) -> DataNode:
    """Return the angle in radians whose sine is to its cosine as ``x`` to ``y``, element by element."""
    return arithmetic("atan2", (x, y))


def clamp(value: Any, lo: Any, hi: Any) -> DataNode:
    """Return the value, limited to ``lo`` … ``hi``, element by element."""
    return arithmetic("clamp", (value, lo, hi))
