"""Element types of dynamic mode: ``ndd.float32``, ``ndd.uint8`` ….

Unlike ``types.DALIDataType``, they have sizes and short names, and calling one creates a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, suggestion
from dalify.base.optional import is_loaded, torch
from dalify.data import DALIDataType, from_numpy


class Kind(Enum):
    """Kind of an element type."""

    signed = 1
    unsigned = 2
    float = 3
    bool = 4
    enum = 5


_constructor: list[Callable[..., Any]] = []


def register_constructor(constructor: Callable[..., Any]) -> None:
    """Register the constructor of tensors for ``ndd.float32([1, 2])``; its module imports this one."""
    _constructor[:] = [constructor]


class DType:
    """An element type. Use the predefined ones, such as ``ndd.float32``.

    Args:
        kind: kind of the type.
        bits: size of an element in bits.
        exponent_bits: exponent bits of a floating-point type; otherwise None.
        significand_bits: significand bits of a floating-point type; otherwise None.
        type_id: the same type in ``dalify.types``; None if arrays of it are not supported.
        name: short name, ``f32``.
        bytes: size of an element in bytes; by default `bits` divided by 8, rounded up.
        docs: accepted but ignored.
    """

    Kind = Kind

    __slots__ = ("bits", "bytes", "exponent_bits", "kind", "name", "significand_bits", "type_id")

    def __init__(
        self,
        kind: Kind,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
        bytes: int | None = None,
        type_id: DALIDataType | None = None,
        name: str | None = None,
        docs: str | None = None,
    ) -> None:
        self.kind = kind
        self.bits = bits
        self.bytes = (bits + 7) // 8 if bytes is None else bytes
        self.exponent_bits = exponent_bits
        self.significand_bits = significand_bits
        self.type_id = type_id
        self.name = name or ("i" if kind is Kind.signed else kind.name[0]) + str(bits)

    @staticmethod
    def parse(name: str) -> DType:
        """Return a type by its name, ``"f32"`` or ``"float32"``.

        Raises:
            ArgumentValueError: no type has that name.
        """
        found = _BY_NAME.get(name)
        if found is None:
            raise ArgumentValueError.here(
                f"{name!r} is not an element type.{suggestion(name, _BY_NAME)}",
                hint=f"Element types: {', '.join(item.name for item in _ALL)}.",
            )
        return found

    @staticmethod
    def from_type_id(type_id: DALIDataType) -> DType:
        """Return the type for one of ``dalify.types``, e.g. ``types.FLOAT``.

        Raises:
            DTypeError: arrays of this type are not supported.
        """
        found = _BY_ID.get(DALIDataType(type_id))
        if found is None:
            raise DTypeError.here(f"{type_id!s} is not an element type of arrays.")
        return found

    @staticmethod
    def from_fw_type(numpy_type: Any) -> DType:
        """Return the type for an element type of NumPy or torch.

        Raises:
            DTypeError: dalify does not support the type.
        """
        if is_loaded("torch") and isinstance(numpy_type, torch.dtype):
            if numpy_type is torch.bfloat16:
                return bfloat16
            numpy_type = str(numpy_type).removeprefix("torch.")
        return DType.from_type_id(from_numpy(numpy_type))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a tensor of this type; see ``ndd.tensor`` for the arguments, except ``dtype``."""
        return _constructor[0](*args[:1], self, *args[1:], **kwargs)

    def __eq__(self, other: object) -> bool:
        """Compare with another type, or a value that describes one: ``np.float32``, ``types.FLOAT``, ``"f32"``."""
        if isinstance(other, DType):
            return self.name == other.name
        try:
            return self == dtype(other)
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        """Return the short name, ``f32``."""
        return self.name

    def __repr__(self) -> str:
        parts = [f"kind=Kind.{self.kind.name}", f"bits={self.bits}"]
        if self.exponent_bits is not None:
            parts += [f"exponent_bits={self.exponent_bits}", f"significand_bits={self.significand_bits}"]
        return f"DType({', '.join(parts)})"


def _float(bits: int, exponent_bits: int, id: DALIDataType | None, name: str | None = None) -> DType:
    return DType(Kind.float, bits, exponent_bits, bits - exponent_bits - 1, type_id=id, name=name)


uint8 = DType(Kind.unsigned, 8, type_id=DALIDataType.UINT8)
uint16 = DType(Kind.unsigned, 16, type_id=DALIDataType.UINT16)
uint32 = DType(Kind.unsigned, 32, type_id=DALIDataType.UINT32)
uint64 = DType(Kind.unsigned, 64, type_id=DALIDataType.UINT64)
int8 = DType(Kind.signed, 8, type_id=DALIDataType.INT8)
int16 = DType(Kind.signed, 16, type_id=DALIDataType.INT16)
int32 = DType(Kind.signed, 32, type_id=DALIDataType.INT32)
int64 = DType(Kind.signed, 64, type_id=DALIDataType.INT64)
float16 = _float(16, 5, DALIDataType.FLOAT16)
float32 = _float(32, 8, DALIDataType.FLOAT)
float64 = _float(64, 11, DALIDataType.FLOAT64)
bfloat16 = _float(16, 8, None, "bfloat16")
bool_ = DType(Kind.bool, 8, type_id=DALIDataType.BOOL, name="bool")
DataType = DType(Kind.enum, 32, type_id=DALIDataType.DATA_TYPE, name="DataType")
ImageType = DType(Kind.enum, 32, type_id=DALIDataType.IMAGE_TYPE, name="ImageType")
InterpType = DType(Kind.enum, 32, type_id=DALIDataType.INTERP_TYPE, name="InterpType")

_ALL = (uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, bool_)
_BY_ID = {item.type_id: item for item in (*_ALL, DataType, ImageType, InterpType) if item.type_id is not None}
_BY_NAME = {item.name: item for item in (*_ALL, bfloat16, DataType, ImageType, InterpType)}
_BY_NAME.update({str(item.type_id.numpy): item for item in _ALL if item.type_id is not None})


def dtype(*args: Any) -> DType:
    """Convert a value to an element type.

    Args:
        args: one value: a DType, one of ``dalify.types``, a type of NumPy or torch, ``int``, ``float``, ``bool`` or a
            name.
            Several values are arguments of ``DType``.

    Raises:
        ArgumentTypeError: the value does not describe a type.
        ArgumentValueError: no type has that name.
        DTypeError: dalify does not support the type.
    """
    if len(args) != 1:
        return DType(*args)
    value = args[0]
    if isinstance(value, DType):
        return value
    if isinstance(value, DALIDataType):
        return DType.from_type_id(value)
    if isinstance(value, str):
        return DType.parse(value)
    if value is float:
        return float32  # the element type of Python floats
    if value is int:
        return int32
    is_type = isinstance(value, (type, np.dtype)) or (is_loaded("torch") and isinstance(value, torch.dtype))
    if value is None or not is_type:
        raise ArgumentTypeError.here(f"{value!r} is not an element type.", hint="Use ndd.float32, ndd.uint8, …")
    return DType.from_fw_type(value)


def type_id(dtype: Any) -> DALIDataType:
    """Return the corresponding type of ``dalify.types``.

    Args:
        dtype: an argument of ``ndd.dtype``.

    Raises:
        DTypeError: arrays of this type are not supported (``bfloat16``).
    """
    found = _dtype(dtype).type_id
    if found is None:
        raise DTypeError.here(f"arrays of {dtype!s} elements are not supported.", hint="Use ndd.float16.")
    return found


_dtype = dtype  # parameters have the same name
