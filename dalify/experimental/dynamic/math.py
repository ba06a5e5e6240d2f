"""Element-wise functions of tensors, batches and numbers: ``ndd.math.sqrt(x)``.

Operands follow the rules of arithmetic: Python integers are ``int32``, Python floats ``float32``; extents are
broadcast. Functions that are not defined for integers return floating-point numbers.
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


def abs(input: Any) -> Any:
    """Return the absolute value, element by element."""
    return function_of("abs", input)


def fabs(input: Any) -> Any:
    """Return the absolute value as a floating-point number, element by element."""
    return function_of("fabs", input)


def sqrt(input: Any) -> Any:
    """Return the square root, element by element."""
    return function_of("sqrt", input)


def rsqrt(input: Any) -> Any:
    """Return the reciprocal of the square root, element by element: infinite at 0, where DALI's FLOAT gives NaN."""
    return function_of("rsqrt", input)


def cbrt(input: Any) -> Any:
    """Return the cubic root, element by element."""
    return function_of("cbrt", input)


def exp(input: Any) -> Any:
    """Return e to the power of the value, element by element."""
    return function_of("exp", input)


def log(input: Any) -> Any:
    """Return the natural logarithm, element by element."""
    return function_of("log", input)


def log2(input: Any) -> Any:
    """Return the logarithm to base 2, element by element."""
    return function_of("log2", input)


def log10(input: Any) -> Any:
    """Return the logarithm to base 10, element by element."""
    return function_of("log10", input)


def floor(input: Any) -> Any:
    """Return the largest whole number not above the value, element by element."""
    return function_of("floor", input)


def ceil(input: Any) -> Any:
    """Return the smallest whole number not below the value, element by element."""
    return function_of("ceil", input)


def sin(input: Any) -> Any:
    """Return the sine of an angle in radians, element by element."""
    return function_of("sin", input)


def cos(input: Any) -> Any:
    """Return the cosine of an angle in radians, element by element."""
    return function_of("cos", input)


def tan(input: Any) -> Any:
    """Return the tangent of an angle in radians, element by element."""
    return function_of("tan", input)


def asin(input: Any) -> Any:
    """Return the angle in radians whose sine is the value, element by element."""
    return function_of("asin", input)


def acos(input: Any) -> Any:
    """Return the angle in radians whose cosine is the value, element by element."""
    return function_of("acos", input)


def atan(input: Any) -> Any:
    """Return the angle in radians whose tangent is the value, element by element."""
    return function_of("atan", input)


def sinh(input: Any) -> Any:
    """Return the hyperbolic sine, element by element."""
    return function_of("sinh", input)


def cosh(input: Any) -> Any:
    """Return the hyperbolic cosine, element by element."""
    return function_of("cosh", input)


def tanh(input: Any) -> Any:
    """Return the hyperbolic tangent, element by element."""
    return function_of("tanh", input)


def asinh(input: Any) -> Any:
    """Return the inverse hyperbolic sine, element by element."""
    return function_of("asinh", input)


def acosh(input: Any) -> Any:
    """Return the inverse hyperbolic cosine, element by element."""
    return function_of("acosh", input)


def atanh(input: Any) -> Any:
    """Return the inverse hyperbolic tangent, element by element."""
    return function_of("atanh", input)


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


def atan2(x: Any, y: Any) -> Any:
    """Return the angle in radians whose sine is to its cosine as ``x`` to ``y``, element by element."""
    return function_of("atan2", x, y)


def clamp(value: Any, lo: Any, hi: Any) -> Any:
    """Return the value, limited to ``lo`` … ``hi``, element by element."""
    return function_of("clamp", value, lo, hi)
