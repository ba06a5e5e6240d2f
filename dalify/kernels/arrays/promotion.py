"""Dtypes, layouts and shapes of arithmetic results, which are known before there are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    LayoutError,
    ShapeError,
    option_error_text,
)
from dalify.data.dtypes import DALIDataType

_SIGNED = {8: DALIDataType.INT8, 16: DALIDataType.INT16, 32: DALIDataType.INT32, 64: DALIDataType.INT64}


class Function(NamedTuple):
    """One element-wise function.

    Attributes:
        arity: number of operands.
        kind: rule for the result dtype: ``number`` (the promoted type), ``float`` (the promoted type if it is a
            float, else FLOAT), ``bits`` (the promoted type, no floats), ``comparison`` (BOOL) or ``same`` (the
            operand's type).
        symbol: how users write it.
        takes_booleans: whether all operands may be BOOL.
    """

    arity: int
    kind: str
    symbol: str
    takes_booleans: bool = False


_FLOAT_FUNCTIONS = (
    *("fabs", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "floor", "ceil"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)

FUNCTIONS: dict[str, Function] = {
    "add": Function(2, "number", "+"),
    "sub": Function(2, "number", "-"),
    "mul": Function(2, "number", "*", takes_booleans=True),
    "fdiv": Function(2, "float", "/"),
    "div": Function(2, "number", "//"),
    "mod": Function(2, "number", "%"),
    "pow": Function(2, "number", "**"),
    "fpow": Function(2, "float", "math.fpow"),
    "atan2": Function(2, "float", "math.atan2"),
    "min": Function(2, "number", "math.min"),
    "max": Function(2, "number", "math.max"),
    "clamp": Function(3, "number", "math.clamp"),
    "bitand": Function(2, "bits", "&", takes_booleans=True),
    "bitor": Function(2, "bits", "|", takes_booleans=True),
    "bitxor": Function(2, "bits", "^", takes_booleans=True),
    "lshift": Function(2, "bits", "<<", takes_booleans=True),
    "rshift": Function(2, "bits", ">>", takes_booleans=True),
    "eq": Function(2, "comparison", "==", takes_booleans=True),
    "neq": Function(2, "comparison", "!=", takes_booleans=True),
    "lt": Function(2, "comparison", "<", takes_booleans=True),
    "leq": Function(2, "comparison", "<=", takes_booleans=True),
    "gt": Function(2, "comparison", ">", takes_booleans=True),
    "geq": Function(2, "comparison", ">=", takes_booleans=True),
    "plus": Function(1, "same", "+", takes_booleans=True),
    "minus": Function(1, "same", "-"),
    "bitnot": Function(1, "bits", "~", takes_booleans=True),
    "abs": Function(1, "same", "abs"),
    **{name: Function(1, "float", f"math.{name}") for name in _FLOAT_FUNCTIONS},
}
"""All element-wise functions by the name that the ``arithmetic`` operator takes."""


def promote(first: DALIDataType, second: DALIDataType) -> DALIDataType:
    """Return the promoted dtype of two operands.

    The wider of two dtypes of one family; floats win over integers; integers win over BOOL; an unsigned dtype that is
    at least as wide as the signed one is promoted to the signed dtype of twice its width, at most 64 bits.
    """
    if first == second:
        return first
    if first.is_float or second.is_float:
        if first.is_float and second.is_float:
            return max(first, second)
        return first if first.is_float else second
    if DALIDataType.BOOL in (first, second):
        return second if first == DALIDataType.BOOL else first
    if first.is_signed == second.is_signed:
        return max(first, second)
    unsigned, signed = (second, first) if first.is_signed else (first, second)
    unsigned_bits, signed_bits = 8 * unsigned.numpy.itemsize, 8 * signed.numpy.itemsize
    return signed if signed_bits > unsigned_bits else _SIGNED[min(2 * unsigned_bits, 64)]


def result_dtype(function: str, *operands: DALIDataType) -> DALIDataType:
    """Return the dtype of a function's result.

    Raises:
        ArgumentValueError: the function does not exist.
        ArgumentTypeError: the number of operands is wrong.
        DTypeError: not defined for the operands: BOOL for most arithmetic, floats for bitwise operators.
    """
    known = FUNCTIONS.get(function)
    if known is None:
        raise ArgumentValueError(option_error_text("function", function, FUNCTIONS))
    if len(operands) != known.arity:
        raise ArgumentTypeError(f"{known.symbol!r} takes {known.arity} operands; got {len(operands)}.")
    promoted = operands[0]
    for operand in operands[1:]:
        promoted = promote(promoted, operand)
    if promoted == DALIDataType.BOOL and not known.takes_booleans:
        subject = "a boolean" if known.arity == 1 else "booleans only"
        raise DTypeError(
            f"{known.symbol!r} is not defined for {subject}.",
            hint="Use the bitwise operators & | ^ ~, or fn.cast one operand to a numeric type.",
        )
    if known.kind == "bits" and promoted.is_float:
        names = " and ".join(operand.text for operand in operands)
        raise DTypeError(
            f"{known.symbol!r} needs integers or booleans; the operand dtypes are {names}.",
            hint="Use fn.cast(x, dtype=types.INT32), or a comparison.",
        )
    if known.kind == "comparison":
        return DALIDataType.BOOL
    if known.kind == "float" and not promoted.is_float:
        return DALIDataType.FLOAT
    return promoted


def common_layout(layouts: Sequence[str]) -> str:
    """Return the layout of a result: the longest layout. All others must be suffixes of it, such as ``""``.

    Raises:
        LayoutError: the layouts contradict each other.
    """
    longest = max(layouts, key=len, default="")
    for layout in layouts:
        if not longest.endswith(layout):
            raise LayoutError(
                f"operands with layouts {layout!r} and {longest!r} do not match: neither is a suffix of the other.",
                hint="Transpose one of the operands, or drop its layout with fn.reshape(x, layout='').",
            )
    return longest


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which sample shapes broadcast: aligned at the last axis, extents equal or 1.

    Raises:
        ShapeError: two extents differ and neither is 1.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(shape) for shape in shapes)
        raise ShapeError(
            f"samples with shapes {listed} cannot be broadcast.",
            hint="Aligned at the last axis, extents must be equal or 1.",
        ) from None
