"""Element-wise functions of graph values and numbers, under DALI's names: ``math.sqrt(x)``.

Operands follow the rules of arithmetic: Python integers are INT32, Python floats FLOAT; shapes are broadcast.
Functions that are not defined for integers return floating-point numbers.
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
    """Return the absolute value, element-wise."""
    return arithmetic("abs", (input,))


def fabs(input: Any) -> DataNode:
    """Return the absolute value as a floating-point number, element-wise."""
    return arithmetic("fabs", (input,))


def sqrt(input: Any) -> DataNode:
    """Return the square root, element-wise."""
    return arithmetic("sqrt", (input,))


def rsqrt(input: Any) -> DataNode:
    """Return the reciprocal of the square root, element-wise: infinite at 0, unlike in DALI, where FLOAT gives NaN."""
    return arithmetic("rsqrt", (input,))


def cbrt(input: Any) -> DataNode:
    """Return the cube root, element-wise."""
    return arithmetic("cbrt", (input,))


def exp(input: Any) -> DataNode:
    """Return e to the power of the value, element-wise."""
    return arithmetic("exp", (input,))


def log(input: Any) -> DataNode:
    """Return the natural logarithm, element-wise."""
    return arithmetic("log", (input,))


def log2(input: Any) -> DataNode:
    """Return the logarithm to base 2, element-wise."""
    return arithmetic("log2", (input,))


def log10(input: Any) -> DataNode:
    """Return the logarithm to base 10, element-wise."""
    return arithmetic("log10", (input,))


def floor(input: Any) -> DataNode:
    """Return the largest integer not above the value, element-wise."""
    return arithmetic("floor", (input,))


def ceil(input: Any) -> DataNode:
    """Return the smallest integer not below the value, element-wise."""
    return arithmetic("ceil", (input,))


def sin(input: Any) -> DataNode:
    """Return the sine of an angle in radians, element-wise."""
    return arithmetic("sin", (input,))


def cos(input: Any) -> DataNode:
    """Return the cosine of an angle in radians, element-wise."""
    return arithmetic("cos", (input,))


def tan(input: Any) -> DataNode:
    """Return the tangent of an angle in radians, element-wise."""
    return arithmetic("tan", (input,))


def asin(input: Any) -> DataNode:
    """Return the angle in radians whose sine is the value, element-wise."""
    return arithmetic("asin", (input,))


def acos(input: Any) -> DataNode:
    """Return the angle in radians whose cosine is the value, element-wise."""
    return arithmetic("acos", (input,))


def atan(input: Any) -> DataNode:
    """Return the angle in radians whose tangent is the value, element-wise."""
    return arithmetic("atan", (input,))


def sinh(input: Any) -> DataNode:
    """Return the hyperbolic sine, element-wise."""
    return arithmetic("sinh", (input,))


def cosh(input: Any) -> DataNode:
    """Return the hyperbolic cosine, element-wise."""
    return arithmetic("cosh", (input,))


def tanh(input: Any) -> DataNode:
    """Return the hyperbolic tangent, element-wise."""
    return arithmetic("tanh", (input,))


def asinh(input: Any) -> DataNode:
    """Return the inverse hyperbolic sine, element-wise."""
    return arithmetic("asinh", (input,))


def acosh(input: Any) -> DataNode:
    """Return the inverse hyperbolic cosine, element-wise."""
    return arithmetic("acosh", (input,))


def atanh(input: Any) -> DataNode:
    """Return the inverse hyperbolic tangent, element-wise."""
    return arithmetic("atanh", (input,))


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
