"""Element-wise functions of tensors, batches and numbers: ``ndd.math.sqrt(x)``.

Operands follow the rules of arithmetic: Python integers are ``int32``, Python floats ``float32``; extents are
broadcast. All functions that are not defined for integers give floating-point numbers.
"""

from __future__ import annotations

from typing import Any

from dalify.experimental.dynamic.arithmetic import function_of

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


def abs(x: Any) -> Any:
    """Return the absolute value, element by element."""
    return function_of("abs", x)


def fabs(x: Any) -> Any:
    """Return the absolute value as a floating-point number, element by element."""
    return function_of("fabs", x)


def sqrt(x: Any) -> Any:
    """Return the square root, element by element."""
    return function_of("sqrt", x)


def rsqrt(x: Any) -> Any:
    """Return the reciprocal of the square root, element by element: infinite at 0, where DALI's FLOAT gives NaN."""
    return function_of("rsqrt", x)


def cbrt(x: Any) -> Any:
    """Return the cubic root, element by element."""
    return function_of("cbrt", x)


def exp(x: Any) -> Any:
    """Return e to the power of the value, element by element."""
    return function_of("exp", x)


def log(x: Any) -> Any:
    """Return the natural logarithm, element by element."""
    return function_of("log", x)


def log2(x: Any) -> Any:
    """Return the logarithm to base 2, element by element."""
    return function_of("log2", x)


def log10(x: Any) -> Any:
    """Return the logarithm to base 10, element by element."""
    return function_of("log10", x)


def floor(x: Any) -> Any:
    """Return the largest whole number not above the value, element by element."""
    return function_of("floor", x)


def ceil(x: Any) -> Any:
    """Return the smallest whole number not below the value, element by element."""
    return function_of("ceil", x)


def sin(x: Any) -> Any:
    """Return the sine of an angle in radians, element by element."""
    return function_of("sin", x)


def cos(x: Any) -> Any:
    """Return the cosine of an angle in radians, element by element."""
    return function_of("cos", x)


def tan(x: Any) -> Any:
    """Return the tangent of an angle in radians, element by element."""
    return function_of("tan", x)


def asin(x: Any) -> Any:
    """Return the angle in radians whose sine is the value, element by element."""
    return function_of("asin", x)


def acos(x: Any) -> Any:
    """Return the angle in radians whose cosine is the value, element by element."""
    return function_of("acos", x)


def atan(x: Any) -> Any:
    """Return the angle in radians whose tangent is the value, element by element."""
    return function_of("atan", x)


def sinh(x: Any) -> Any:
    """Return the hyperbolic sine, element by element."""
    return function_of("sinh", x)


def cosh(x: Any) -> Any:
    """Return the hyperbolic cosine, element by element."""
    return function_of("cosh", x)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent, element by element."""
    return function_of("tanh", x)


def asinh(x: Any) -> Any:
    """Return the inverse hyperbolic sine, element by element."""
    return function_of("asinh", x)


def acosh(x: Any) -> Any:
    """Return the inverse hyperbolic cosine, element by element."""
    return function_of("acosh", x)


def atanh(x: Any) -> Any:
    """Return the inverse hyperbolic tangent, element by element."""
    return function_of("atanh", x)


def pow(base: Any, exponent: Any) -> Any:
    """Return ``base`` to the power of ``exponent``.

    Integers stay integers, and a negative exponent then gives 0, element by element.
    """
    return function_of("pow", base, exponent)


def fpow(base: Any, exponent: Any) -> Any:
    """Return ``base`` to the power of ``exponent`` as a floating-point number, element by element."""
    return function_of("fpow", base, exponent)


def min(left: Any, right: Any) -> Any:
    """Return the smaller value, element by element."""
    return function_of("min", left, right)


def max(left: Any, right: Any) -> Any:
    """Return the larger value, element by element."""
    return function_of("max", left, right)


def atan2(y: Any, x: Any) -> Any:
    """Return the angle in radians of the point (x, y), element by element."""
    return function_of("atan2", y, x)


def clamp(value: Any, lo: Any, hi: Any) -> Any:
    """Return the value, limited to ``lo`` … ``hi``, element by element."""
    return function_of("clamp", value, lo, hi)
