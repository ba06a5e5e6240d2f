"""Declarations of features for ``fn.readers.tfrecord``, under DALI's names.

``features={"image": tfrecord.FixedLenFeature([], tfrecord.string, ""), "boxes": tfrecord.VarLenFeature(...)}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.data import DALIDataType
from dalify.formats.records.tf_example import Feature

__all__ = ["Feature", "FixedLenFeature", "VarLenFeature", "float32", "int64", "string"]

int64 = DALIDataType.INT64
float32 = DALIDataType.FLOAT
string = DALIDataType.UINT8
_TYPES = (int64, float32, string)


def FixedLenFeature(shape: Sequence[int], dtype: DALIDataType, default_value: Any) -> Feature:  # noqa: N802 - DALI's
    """Declare a feature of a fixed shape.

    Args:
        shape: shape of the output; ``[]`` for a scalar or a string.
        dtype: ``tfrecord.int64``, ``tfrecord.float32`` or ``tfrecord.string``.
        default_value: accepted but ignored; a missing feature is an empty array.

    Raises:
        ArgumentTypeError: `dtype` is not a type of this module, or an extent is not an integer.
        ArgumentValueError: a negative extent.
    """
    return Feature(_check_dtype(dtype), _shape(shape), False, default_value)


def VarLenFeature(*arguments: Any, **named: Any) -> Feature:  # noqa: N802 - DALI's name
    """Declare a feature of any length: ``VarLenFeature(dtype, default_value)`` or ``VarLenFeature(shape, dtype, …)``.

    Args:
        arguments: partial_shape (optional; shape after the first axis of the output), dtype, default_value.
        named: the same by name.

    Raises:
        ArgumentTypeError: invalid arguments, or `dtype` is not a type of this module.
        ArgumentValueError: a negative extent.
    """
    names = ["partial_shape", "dtype", "default_value"]
    if arguments and isinstance(arguments[0], DALIDataType):
        names = names[1:]
    given = dict(zip(names, arguments, strict=False))
    unknown = sorted(set(named) - {"partial_shape", "dtype", "default_value"} | set(given) & set(named))
    if len(arguments) > len(names) or unknown or "dtype" not in {**given, **named}:
        raise ArgumentTypeError("VarLenFeature takes [partial_shape,] dtype, default_value.")
    given |= named
    shape = given.get("partial_shape")
    return Feature(
        _check_dtype(given["dtype"]), _shape(() if shape is None else shape), True, given.get("default_value")
    )


def _check_dtype(dtype: Any) -> DALIDataType:
    if not isinstance(dtype, DALIDataType) or dtype not in _TYPES:
        raise ArgumentTypeError(f"dtype must be tfrecord.int64, tfrecord.float32 or tfrecord.string; got {dtype!r}.")
    return dtype


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        extents = tuple(index(extent) for extent in shape) if isinstance(shape, (list, tuple)) else (index(shape),)
    except TypeError:
        raise ArgumentTypeError(f"shape must be a list of integers; got {shape!r}.") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentValueError(f"shape must not have negative extents; got {list(extents)}.")
    return extents
