"""Element-wise arithmetic on groups of samples, with the rules of C instead of Python.

Used by operators, conditions and constant folding. Unlike NumPy, integers wrap in the promoted type, ``//`` truncates
and does not round floats, ``%`` has the sign of the dividend, an integer to a negative power is 0. Result dtypes are
those of `dalify.kernels.arrays.promotion`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError

# In shorter inner loops, NumPy's overhead is larger than the computation.
_INNER_LOOP = 512

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fdiv": np.true_divide,
    "fpow": np.power,
    "atan2": np.arctan2,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "bitnot": np.invert,
    "minus": np.negative,
    "abs": np.absolute,
    "fabs": np.fabs,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "floor": np.floor,
    "ceil": np.ceil,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
# NumPy uses another algorithm, with other rounding, if the exponent is a single number.
_POWERS = ("fpow", "pow")
_COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "neq": np.not_equal,
    "lt": np.less,
    "leq": np.less_equal,
    "gt": np.greater,
    "geq": np.greater_equal,
}


def compute(function: str, out: np.ndarray, *operands: np.ndarray) -> None:
    """Apply a function to every element.

    Args:
        function: a name in `dalify.kernels.arrays.promotion.FUNCTIONS`.
        out: output [N, ...] with the broadcast shape of the samples and the dtype of `result_dtype`; may be the first
            operand.
        operands: arrays [N, ...]; samples are broadcast, aligned at the last axis.

    Raises:
        ArgumentValueError: an integer is divided by zero.
    """
    if function not in _POWERS:
        # Stride 0 is a constant: with one sample of it, NumPy merges the loops over all samples.
        operands = tuple(operand[:1] if operand.strides[0] == 0 else operand for operand in operands)
    aligned = [_align(operand, out.shape) for operand in operands]
    with np.errstate(all="ignore"):
        ufunc = _UFUNCS.get(function)
        if ufunc is not None:
            ufunc(*aligned, out=out, dtype=out.dtype, casting="unsafe")
        elif function in _COMPARISONS:
            _compare(_COMPARISONS[function], out, *aligned)
        else:
            _OTHERS[function](out, *aligned)


def _align(operand: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return [N, 1, ..., extents] with the number of dimensions of `shape`; short rows are repeated."""
    missing = len(shape) - operand.ndim
    have = operand.shape
    if missing:
        have = (have[0],) + (1,) * missing + have[1:]
        operand = operand.reshape(have)
    if have == shape or not operand.size:
        return operand
    first, size = len(shape), 1
    while first > 1 and size < _INNER_LOOP:
        first -= 1
        size *= shape[first]
    row = have[first:]
    if row == shape[first:] or all(extent == 1 for extent in row):
        return operand
    # For a mean per channel, [N, 1, 1, 3] and [N, H, W, 3], NumPy's inner loop would have three elements.
    return np.ascontiguousarray(np.broadcast_to(operand, have[:first] + shape[first:]))


def _compare(ufunc: np.ufunc, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        # NumPy would compare INT32 and FLOAT as FLOAT64, where 2**24 + 1 differs from 2.0**24.
        common = a.dtype if a.dtype.kind == "f" else b.dtype
        if a.dtype.kind == b.dtype.kind:
            common = max(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
        ufunc(a, b, out=out, signature=(common, common, np.dtype(np.bool_)), casting="unsafe")
    else:
        ufunc(a, b, out=out)


def _copy(out: np.ndarray, a: np.ndarray) -> None:
    np.copyto(out, a, casting="unsafe")


def _reciprocal_root(out: np.ndarray, a: np.ndarray) -> None:
    np.sqrt(a, out=out, dtype=out.dtype, casting="unsafe")
    np.reciprocal(out, out=out)


def _refuse_zero(divisor: np.ndarray) -> None:
    if not divisor.all():
        zero = np.argwhere((divisor == 0).reshape(len(divisor), -1).any(axis=1))
        raise ArgumentValueError(
            "integer division by zero.",
            hint="Divide floats (the result is then inf or nan), or replace the zeros first.",
            sample=int(zero[0, 0]),
        )


def _has_negative(values: np.ndarray) -> bool:
    return values.dtype.kind not in "ub" and bool(np.minimum.reduce(values, None, initial=0) < 0)


def _divide(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    dtype = out.dtype
    if dtype.kind == "f":
        np.true_divide(a, b, out=out, dtype=dtype, casting="unsafe")
        return
    _refuse_zero(b)
    if dtype.kind == "u" or not (_has_negative(a) or _has_negative(b)):
        np.floor_divide(a, b, out=out, dtype=dtype, casting="unsafe")
        return
    # Truncation: subtract the remainder, which has the sign of the dividend; the rest divides evenly.
    remainder = np.fmod(a, b, dtype=dtype, casting="unsafe")
    np.subtract(a, remainder, out=remainder, dtype=dtype, casting="unsafe")
    np.floor_divide(remainder, b, out=out, dtype=dtype, casting="unsafe")


def _remainder(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind != "f":
        _refuse_zero(b)
    # C's fmod of an integer and a float computes in double: a large integer is not rounded before the division.
    is_mixed = out.dtype.kind == "f" and a.dtype.kind != b.dtype.kind
    np.fmod(a, b, out=out, dtype=np.dtype(np.float64) if is_mixed else out.dtype, casting="unsafe")


def _power(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    dtype = out.dtype
    if dtype.kind == "i" and b.dtype.kind == "i":
        np.power(a, np.maximum(b, 0), out=out, dtype=dtype, casting="unsafe")
        np.copyto(out, 0, where=b < 0)
    else:
        np.power(a, b, out=out, dtype=dtype, casting="unsafe")


def _has_nan(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _smaller(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    _choose(out, a, b, np.minimum, np.fmin, np.less)


def _larger(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    _choose(out, a, b, np.maximum, np.fmax, np.greater)


def _choose(
    out: np.ndarray, a: np.ndarray, b: np.ndarray, returns_nan: np.ufunc, ignores_nan: np.ufunc, is_chosen: np.ufunc
) -> None:
    """Compute ``is_chosen(a, b) ? a : b``: a NaN in `a` results in `b`, a NaN in `b` in NaN.

    NumPy's functions for minimum and maximum treat both operands alike, so the function depends on where a NaN is.
    """
    # The operand with fewer elements, often a constant, is searched first.
    if a.size <= b.size and not _has_nan(a):
        ufunc = returns_nan
    elif not _has_nan(b):
        ufunc = ignores_nan
    elif not _has_nan(a):
        ufunc = returns_nan
    else:
        a, b = a.astype(out.dtype, copy=False), b.astype(out.dtype, copy=False)
        np.copyto(out, np.where(is_chosen(a, b), a, b))
        return
    ufunc(a, b, out=out, dtype=out.dtype, casting="unsafe")


def _clamp(out: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    # The upper limit wins if the limits are reversed; a NaN limit has no effect.
    _larger(out, low, value)
    _smaller(out, high, out)


def _shift_left(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind == "b":
        np.copyto(out, a)  # True << anything is not 0
    else:
        np.left_shift(a, b, out=out, dtype=out.dtype, casting="unsafe")


def _shift_right(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind == "b":
        np.greater(a, b, out=out)  # True >> True is 0
    else:
        np.right_shift(a, b, out=out, dtype=out.dtype, casting="unsafe")


_OTHERS: dict[str, Callable[..., Any]] = {
    "plus": _copy,
    "rsqrt": _reciprocal_root,
    "div": _divide,
    "mod": _remainder,
    "pow": _power,
    "min": _smaller,
    "max": _larger,
    "clamp": _clamp,
    "lshift": _shift_left,
    "rshift": _shift_right,
}
