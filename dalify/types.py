"""Element types, enumerations and constants under DALI's names.

``types.FLOAT``, ``types.RGB``, ``types.Constant`` ….
"""

from __future__ import annotations

import builtins
import math
from enum import IntEnum
from functools import partialmethod
from typing import Any, cast

import numpy as np

from dalify.base.errors import ArgumentTypeError, IntegerRangeError, ShapeError
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType, DALIImageType, DALIInterpType, from_numpy, to_numpy
from dalify.data.dtypes import PipelineAPIType as PipelineAPIType
from dalify.data.sample_info import BatchInfo as BatchInfo
from dalify.data.sample_info import SampleInfo as SampleInfo
from dalify.graph import DataNode, Expression, arithmetic, constant

__all__ = [
    "ANY_DATA",
    "BGR",
    "BOOL",
    "CPU_ONLY_DEVICE_ID",
    "DATA_TYPE",
    "FEATURE",
    "FLOAT",
    "FLOAT16",
    "FLOAT64",
    "GRAY",
    "IMAGE_TYPE",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "INTERP_CUBIC",
    "INTERP_GAUSSIAN",
    "INTERP_LANCZOS3",
    "INTERP_LINEAR",
    "INTERP_NN",
    "INTERP_TRIANGULAR",
    "INTERP_TYPE",
    "NCHW",
    "NFCHW",
    "NFHWC",
    "NHWC",
    "NO_TYPE",
    "PYTHON_OBJECT",
    "RGB",
    "SAME",
    "STRING",
    "TENSOR_LAYOUT",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "BatchInfo",
    "CUDAStream",
    "Constant",
    "ConstantNode",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "PipelineAPIType",
    "SampleInfo",
    "ScalarConstant",
    "TensorLayout",
    "YCbCr",
    "to_dali_type",
    "to_numpy_type",
]

NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
STRING = DALIDataType.STRING
FEATURE = DALIDataType.FEATURE
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT
BFLOAT16 = DALIDataType.BFLOAT16

RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA

INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN

# Layouts of a batch in old releases; a layout names the dimensions of one sample.
NHWC = "HWC"
NCHW = "CHW"
NFHWC = "FHWC"
NFCHW = "FCHW"
SAME = ""

CPU_ONLY_DEVICE_ID = -99999

TensorLayout = str


def to_numpy_type(dali_type: DALIDataType) -> type[Any]:
    """Return the corresponding NumPy scalar type."""
    return to_numpy(dali_type).type


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Return the element type of a NumPy or torch dtype.

    Args:
        framework_type: a NumPy dtype, scalar class or dtype name; a torch dtype, or its name ``"torch.float32"``.
    """
    return from_numpy(str(framework_type).removeprefix("torch.") if "torch." in str(framework_type) else framework_type)


class CUDAStream:
    """A CUDA stream by its address, for code that passes one on.

    Args:
        ptr: address of the CUDA stream.
    """

    def __init__(self, ptr: int = 0) -> None:
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        """The address."""
        return self._ptr


def _dtype_error(dtype: object) -> ArgumentTypeError:
    return ArgumentTypeError.here(
        f"the dtype of a constant must be one of dalify.types, such as types.FLOAT; got {dtype!r}."
    )


class ScalarConstant(Expression[DataNode]):
    """A number with an element type, for arithmetic with graph values.

    Its methods from ``uint8()`` to ``bool()`` return the number with another element type.

    Args:
        value: number.
        dtype: element type; by default INT32, FLOAT or BOOL, depending on the Python type.
    """

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: Any, dtype: DALIDataType | None = None) -> None:
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
            dtype = from_numpy(value.dtype) if dtype is None else dtype
            value = value.item()
        if not isinstance(value, (bool, int, float)):
            raise ArgumentTypeError.here(f"a scalar constant must be a number; got {value!r}.")
        if dtype is None:
            dtype = BOOL if isinstance(value, bool) else INT32 if isinstance(value, int) else FLOAT
        if not isinstance(dtype, DALIDataType) or not (dtype.is_integer or dtype.is_float or dtype is BOOL):
            raise _dtype_error(dtype)
        self.value = bool(value) if dtype is BOOL else int(value) if dtype.is_integer else float(value)
        self.dtype = dtype
        self.shape: list[int] = []

    def as_argument(self) -> bool | int | float:
        """Return the number."""
        return self.value

    def _apply(self, function: str, *operands: Any) -> DataNode:
        return arithmetic(function, [item.node() if isinstance(item, ScalarConstant) else item for item in operands])

    def node(self, device: str = "cpu") -> DataNode:
        """Return the constant as a graph value.

        Raises:
            IntegerRangeError: an integer that does not fit its type.
        """
        if self.dtype.is_integer and self.dtype is not INT32:
            limits = np.iinfo(self.dtype.numpy)
            if not limits.min <= self.value <= limits.max:
                raise IntegerRangeError.here(f"the constant {self.value} is out of range for {self.dtype.numpy}.")
        # Without a type, constant() raises for integers out of range.
        return constant(self.value, None if self.dtype is INT32 else self.dtype, device=device)

    def _typed(self, dtype: DALIDataType) -> ScalarConstant:
        return ScalarConstant(self.value, dtype)

    uint8 = partialmethod(_typed, UINT8)
    uint16 = partialmethod(_typed, UINT16)
    uint32 = partialmethod(_typed, UINT32)
    uint64 = partialmethod(_typed, UINT64)
    int8 = partialmethod(_typed, INT8)
    int16 = partialmethod(_typed, INT16)
    int32 = partialmethod(_typed, INT32)
    int64 = partialmethod(_typed, INT64)
    float16 = partialmethod(_typed, FLOAT16)
    float32 = partialmethod(_typed, FLOAT)
    float64 = partialmethod(_typed, FLOAT64)
    bool = partialmethod(_typed, BOOL)

    def __eq__(self, other: object) -> Any:
        """Compare value and type of two constants; with a graph value, create a comparison node."""
        if isinstance(other, ScalarConstant):
            return (self.value, self.dtype) == (other.value, other.dtype)
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        """Return the negation of ``==``."""
        if isinstance(other, ScalarConstant):
            return (self.value, self.dtype) != (other.value, other.dtype)
        return super().__ne__(other)

    __hash__ = Expression.__hash__

    def __bool__(self) -> builtins.bool:
        """Return the value of an integer or BOOL constant."""
        return builtins.bool(self._value_of("bool", self.dtype.is_integer or self.dtype is BOOL))

    def __int__(self) -> int:
        """Return the value of an integer or BOOL constant."""
        return int(self._value_of("int", self.dtype.is_integer or self.dtype is BOOL))

    def __float__(self) -> float:
        """Return the value of a floating-point constant."""
        return float(self._value_of("float", self.dtype.is_float))

    def _value_of(self, kind: str, fits: builtins.bool) -> float:
        if not fits:
            raise ArgumentTypeError.here(f"a constant of type {self.dtype.text} cannot be converted to {kind}.")
        return self.value

    def __str__(self) -> str:
        """Return the number and its type: ``10:DALIDataType.INT32``."""
        return f"{self.value}:{self.dtype!s}"

    def __repr__(self) -> str:
        return f"{self.value}"


def ConstantNode(  # noqa: N802 -- DALI's name
    device: str | None,
    value: Any,
    dtype: DALIDataType | None,
    shape: Any,
    layout: str | None,
    **_: Any,
) -> DataNode:
    """Create a graph value that is the same for every sample.

    Args:
        device: device of the value; None: ``cpu``.
        value: number, list or array.
        dtype: element type.
        shape: shape of the result: a number is repeated, an array is reshaped.
        layout: layout of the value.

    Raises:
        ShapeError: the number of elements does not match the shape.
        ArgumentTypeError: the element type is not one of dalify.types.
    """
    if dtype is not None and not isinstance(cast("object", dtype), DALIDataType):
        raise _dtype_error(dtype)
    if shape is not None:
        # Python numbers get their type before the conversion to an array, which would make them INT64 or FLOAT64.
        literal = constant(value, dtype).edge.node.arguments["value"]
        extents = tuple(int(extent) for extent in np.atleast_1d(shape))
        if literal.size not in (1, math.prod(extents)):
            raise ShapeError.here(
                f"a constant with {counted(literal.size, 'element')} cannot have the shape {extents}."
            )
        value = np.full(extents, literal.item(), literal.dtype) if literal.size == 1 else literal.reshape(extents)
    return constant(value, dtype, layout or "", device or "cpu")


def Constant(  # noqa: N802 -- DALI's name
    value: Any,
    dtype: DALIDataType | None = None,
    shape: Any = None,
    layout: str | None = None,
    device: str | None = None,
    **arguments: Any,
) -> Any:
    """Wrap a constant: a number for arithmetic, or an array as a graph value.

    Args:
        value: number, list or array.
        dtype: element type.
        shape: shape of the result.
        layout: layout of the value.
        device: device of a graph value.
        arguments: further arguments of ``ConstantNode``.

    Returns:
        a ScalarConstant for a number without shape, layout and device, otherwise a DataNode.
    """
    is_scalar = isinstance(value, (bool, int, float, np.generic)) or (isinstance(value, np.ndarray) and not value.ndim)
    is_enum = isinstance(value, IntEnum) or (isinstance(dtype, DALIDataType) and dtype.is_enum)
    has_no_shape = shape is None or (isinstance(shape, (list, tuple)) and len(shape) == 0)
    if is_scalar and not is_enum and has_no_shape and layout is None and device is None and not arguments:
        return ScalarConstant(value, dtype)
    return ConstantNode(device, value, dtype, shape, layout, **arguments)
