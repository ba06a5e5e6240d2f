"""Conversion of the user's numbers to arrays, with the same types in graphs and immediate calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import GraphError, IntegerRangeError
from dalify.base.narrow import is_list_or_tuple
from dalify.data.dtypes import DALIDataType, enum_type, from_numpy


def constant_array(value: Any, dtype: DALIDataType | None = None) -> np.ndarray[Any, Any]:
    """Convert a number, a nested list of numbers or an array to a C-contiguous array.

    Members of an enumeration (``types.INTERP_LINEAR``) have the type of the enumeration.

    Args:
        value: as in DALI, Python integers are INT32 and Python floats FLOAT; arrays keep their type; lists of
            Python numbers follow the rule for numbers.
        dtype: element type, instead of that rule. Numbers are rounded, and integers saturated, as by ``fn.cast``.

    Raises:
        IntegerRangeError: an integer does not fit 32 bits and there is no dtype.
        GraphError: not a number, an array, or a nested list of numbers.
    """
    dtype = enum_type(value) if dtype is None else dtype
    if dtype is not None:
        array = _converted(_array(value), dtype.numpy)
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        array = _array(value)
        items = value if is_list_or_tuple(value) else [value]
        is_large = array.dtype.char in "LQO" and all(isinstance(item, int) for item in items)
        if is_large or array.dtype.kind == "i":
            if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
                raise IntegerRangeError.here(
                    f"the constant {value} does not fit int32.",
                    hint=f"Write types.Constant({value}, dtype=types.INT64).",
                )
            array = array.astype(np.int32)
        elif array.dtype.kind == "f":
            array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise GraphError.here(
            f"{value!r} cannot be a constant of a graph.",
            hint="Pass a number, a list of numbers or an array, such as np.frombuffer(b'abc', np.uint8) for a string.",
        )
    from_numpy(array.dtype)
    return np.ascontiguousarray(array).reshape(array.shape)


# In NumPy: the same conversion of ``kernels.arrays.convert`` is compiled, and constants must not import numba.
def _converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if array.dtype == dtype or array.dtype.kind not in "iuf" or dtype.kind not in "iuf":
        return array.astype(dtype)
    if dtype == np.float16:
        with np.errstate(over="ignore", invalid="ignore"):
            values = array.astype(np.float32)
            rounded = values.astype(dtype)
            away = np.nextafter(rounded, np.copysign(np.float16(np.inf), rounded))
            is_middle = np.abs(values - rounded) == np.abs(away.astype(np.float32) - values)
        return np.where(is_middle, away, rounded)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    if array.dtype.kind == "f":
        whole = np.trunc(array)
        with np.errstate(invalid="ignore"):
            array = whole + np.copysign(np.abs(array - whole) >= 0.5, array)
    limits = np.iinfo(dtype)
    # The limits of 64-bit integers are not exact as floats: values that reach them are selected.
    with np.errstate(invalid="ignore"):
        inside = array.astype(dtype)
    return np.where(array >= limits.max, limits.max, np.where(array <= limits.min, limits.min, inside)).astype(dtype)


def _array(value: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise GraphError.here(f"{value!r} cannot be a constant of a graph: {error}") from error
