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
# Name in this module, type of a default in Python, and an example.
_KINDS: dict[DALIDataType, tuple[str, type, str]] = {
    int64: ("int64", int, "0"),
    float32: ("float32", float, "0.0"),
    string: ("string", str, "''"),
}


def FixedLenFeature(shape: Sequence[int], dtype: DALIDataType, default_value: Any) -> Feature:  # noqa: N802 - DALI's
    """Declare a feature of a fixed shape.

    Args:
        shape: shape of the output; ``[]`` for a scalar or a string.
        dtype: ``tfrecord.int64``, ``tfrecord.float32`` or ``tfrecord.string``.
        default_value: an int, a float or a str, according to `dtype`. Not used: a missing feature is an empty array.

    Raises:
        ArgumentTypeError: `dtype` is not a type of this module, `shape` is not a list of integers, or `default_value`
            is of another type.
        ArgumentValueError: a negative extent.
    """
    return Feature(_check_dtype(dtype), _shape("shape", shape), False, _check_default(dtype, default_value))


def VarLenFeature(*arguments: Any, **named: Any) -> Feature:  # noqa: N802 - DALI's name
    """Declare a feature of any length: ``VarLenFeature(dtype, default_value)`` or ``VarLenFeature(shape, dtype, …)``.

    Args:
        arguments: partial_shape (optional; shape after the first axis of the output), dtype, default_value.
        named: the same by name.

    Raises:
        ArgumentTypeError: missing or unknown arguments, or as for `FixedLenFeature`.
        ArgumentValueError: a negative extent.
    """
    names = ["partial_shape", "dtype", "default_value"]
    if arguments and isinstance(arguments[0], DALIDataType):
        names = names[1:]
    given = dict(zip(names, arguments, strict=False))
    unknown = sorted(set(named) - {"partial_shape", "dtype", "default_value"} | set(given) & set(named))
    given |= named
    missing = {"dtype", "default_value"} - set(given)
    if len(arguments) > len(names) or unknown or missing:
        raise ArgumentTypeError.here(
            "VarLenFeature takes [partial_shape,] dtype, default_value.",
            hint="For example VarLenFeature(tfrecord.int64, 0).",
        )
    dtype, shape = _check_dtype(given["dtype"]), given.get("partial_shape")
    partial_shape = () if shape is None else _shape("partial_shape", shape)
    return Feature(dtype, partial_shape, True, _check_default(dtype, given["default_value"]))


def _check_dtype(dtype: Any) -> DALIDataType:
    if not isinstance(dtype, DALIDataType) or dtype not in _KINDS:
        raise ArgumentTypeError.here(
            f"dtype must be tfrecord.int64, tfrecord.float32 or tfrecord.string; got {dtype!r}."
        )
    return dtype


def _check_default(dtype: DALIDataType, value: Any) -> Any:
    """Return the default of a feature, whose type DALI checks as strictly."""
    name, kind, example = _KINDS[dtype]
    if not isinstance(value, kind):
        raise ArgumentTypeError.here(
            f"default_value of a feature of type tfrecord.{name} must be of type {kind.__name__}; got {value!r}.",
            hint=f"Write {example}; it is not used, because a missing feature is an empty array.",
        )
    return value


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    try:
        extents = tuple(index(extent) for extent in shape)
    except TypeError:
        hint = f"Write {name}=[{shape}]." if isinstance(shape, int) else ""
        raise ArgumentTypeError.here(f"{name} must be a list of integers; got {shape!r}.", hint=hint) from None
    if any(extent < 0 for extent in extents):
        raise ArgumentValueError.here(f"{name} must not have negative extents; got {list(extents)}.")
    return extents
