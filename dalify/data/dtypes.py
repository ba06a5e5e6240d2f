"""Element types and the other enumerations of DALI, with DALI's names and values."""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, UnknownTypeError
from dalify.base.narrow import is_list_or_tuple
from dalify.base.optional import LazyModule

if TYPE_CHECKING:
    import ml_dtypes
else:
    ml_dtypes = LazyModule("ml_dtypes", "precision='bf16'")


class _Named(IntEnum):
    """An enumeration whose errors can be caught as DALI's TypeError and as ValueError."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise ArgumentValueError(f"{value!r} is not a member of {cls.__name__}.")

    def __bool__(self) -> bool:
        """Return True, also for the member 0: programs write ``dtype or types.FLOAT``."""
        return True

    def __str__(self) -> str:
        """Return the qualified name, for instance ``DALIDataType.FLOAT``."""
        return f"{type(self).__name__}.{self.name}"


class DALIDataType(_Named):
    """Type of the elements of a tensor or of an argument."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    _BOOL_VEC = 13  # types with an underscore: list arguments in schemas
    _INT32_VEC = 14
    _STRING_VEC = 15
    _FLOAT_VEC = 16
    FEATURE = 17
    _FEATURE_VEC = 18
    _FEATURE_DICT = 19
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24
    _TENSOR_LAYOUT_VEC = 25
    _DATA_TYPE_VEC = 26
    _INT64_VEC = 27
    BFLOAT16 = 64  # not a DALI type; only for outputs of pipelines with precision="bf16"

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The corresponding NumPy dtype; raises DTypeError for types that are not array elements."""
        return to_numpy(self)

    @property
    def text(self) -> str:
        """The name in messages: NumPy's for types of array elements, and the member's for others."""
        return self.name if (dtype := _TO_NUMPY.get(self)) is None else dtype.name

    @property
    def is_enum(self) -> bool:
        """Whether elements are members of an enumeration: stored as INT32 with metadata in the NumPy dtype."""
        return DALIDataType.IMAGE_TYPE <= self <= DALIDataType.INTERP_TYPE

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return DALIDataType.FLOAT16 <= self <= DALIDataType.FLOAT64 or self is DALIDataType.BFLOAT16

    @property
    def is_signed(self) -> bool:
        """Whether elements can be negative."""
        return DALIDataType.INT8 <= self <= DALIDataType.FLOAT64 or self is DALIDataType.BFLOAT16

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers; BOOL is not."""
        return DALIDataType.UINT8 <= self <= DALIDataType.INT64


class DALIImageType(_Named):
    """Color space of an image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(_Named):
    """Interpolation used when images are resampled."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(Enum):
    """Ways to run a pipeline, which must not be mixed."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


_TO_NUMPY: dict[DALIDataType, np.dtype[Any]] = {
    DALIDataType.UINT8: np.dtype(np.uint8),
    DALIDataType.UINT16: np.dtype(np.uint16),
    DALIDataType.UINT32: np.dtype(np.uint32),
    DALIDataType.UINT64: np.dtype(np.uint64),
    DALIDataType.INT8: np.dtype(np.int8),
    DALIDataType.INT16: np.dtype(np.int16),
    DALIDataType.INT32: np.dtype(np.int32),
    DALIDataType.INT64: np.dtype(np.int64),
    DALIDataType.FLOAT16: np.dtype(np.float16),
    DALIDataType.FLOAT: np.dtype(np.float32),
    DALIDataType.FLOAT64: np.dtype(np.float64),
    DALIDataType.BOOL: np.dtype(np.bool_),
}
BY_NAME = {str(dtype): kind for kind, dtype in _TO_NUMPY.items()} | {"bfloat16": DALIDataType.BFLOAT16}
"""The element types of arrays by their names in NumPy, torch, and other frameworks."""
_ENUM_KEY = "dalify"  # key of the metadata, which NumPy keeps in views, slices and copies, and ignores in comparisons
_ENUMS: dict[DALIDataType, np.dtype[Any]] = {
    kind: np.dtype(np.int32, metadata={_ENUM_KEY: kind})
    for kind in (DALIDataType.IMAGE_TYPE, DALIDataType.DATA_TYPE, DALIDataType.INTERP_TYPE)
}
_ENUM_CLASSES: dict[type, DALIDataType] = {
    DALIImageType: DALIDataType.IMAGE_TYPE,
    DALIDataType: DALIDataType.DATA_TYPE,
    DALIInterpType: DALIDataType.INTERP_TYPE,
}
_FROM_NUMPY: dict[np.dtype[Any], DALIDataType] = {value: key for key, value in _TO_NUMPY.items()}
# Also by scalar class: the lookup is by identity hash, much cheaper than by dtype.
_FROM_CLASS: dict[type, DALIDataType] = {value.type: key for key, value in _TO_NUMPY.items()}


def enum_type(value: object) -> DALIDataType | None:
    """Return the element type of a member of DALI's enumerations, or of nested lists of members; None for other values.

    Raises:
        DTypeError: a list that mixes members of several enumerations, or members and other values.
    """
    if is_list_or_tuple(value):
        found = {enum_type(item) for item in value}
        if len(found) > 1 and found != {None}:
            raise DTypeError("a list with members of an enumeration must not contain other values.")
        return found.pop() if found else None
    return _ENUM_CLASSES.get(type(value))


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Return whether elements are bfloat16, whose NumPy kind is "V". A check of the name is forty times slower."""
    return dtype.kind == "V"


def to_numpy(dtype: DALIDataType) -> np.dtype[Any]:
    """Return the corresponding NumPy dtype.

    Raises:
        UnknownTypeError: the type is not an element type of arrays.
    """
    found = _TO_NUMPY.get(dtype)
    if found is None:
        if dtype in _ENUMS:
            return _ENUMS[dtype]
        if dtype is DALIDataType.BFLOAT16:
            return np.dtype(ml_dtypes.bfloat16)
        raise UnknownTypeError(f"{dtype!s} is not an element type of arrays.")
    return found


_DTYPE: Any = np.dtype  # not generic: type checkers keep the type of what is compared with it


def from_numpy(dtype: Any) -> DALIDataType:
    """Return the element type of a NumPy dtype, scalar class or dtype name.

    Raises:
        DTypeError: DALI has no such type (objects, strings, complex numbers, dates).
    """
    if isinstance(dtype, _DTYPE):
        if dtype.metadata is not None and _ENUM_KEY in dtype.metadata:
            return dtype.metadata[_ENUM_KEY]
        found = _FROM_NUMPY.get(dtype)
    else:
        found = _FROM_CLASS.get(dtype)
    if found is None:
        found = _FROM_NUMPY.get(np.dtype(dtype).newbyteorder("="))
    if found is None and np.dtype(dtype).name == "bfloat16":
        return DALIDataType.BFLOAT16
    if found is None:
        supported = ", ".join(str(value) for value in _FROM_NUMPY)
        raise DTypeError(
            f"arrays with elements of type {np.dtype(dtype)} are not supported.",
            hint=f"Convert to one of: {supported}.",
        )
    return found
