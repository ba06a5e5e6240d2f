"""The user's declaration of the data of each output: dtype, number of dimensions, layout.

The graph is checked against it when it is built, and the data when it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DalifyError, LayoutError, NoOutputsError
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType, from_numpy


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of one output.

    Attributes:
        dtype: dtype; None if the first batch determines it.
        ndim: number of dimensions of a sample; None if the first batch determines it.
        layout: letters of the dimensions; "" for none.
    """

    dtype: DALIDataType | None = None
    ndim: int | None = None
    layout: str = ""


def declarations(num_outputs: int | None, *, dtype: Any, ndim: Any, layout: Any) -> list[Declaration]:
    """Return the declaration of each output.

    Args:
        num_outputs: None if the source returns one item instead of a tuple.
        dtype: a DALIDataType or NumPy dtype, or a list with one per output; a short list leaves the rest undeclared.
        ndim: an integer, or a list of integers.
        layout: a string, or a list of strings.

    Raises:
        ArgumentTypeError: a value of another type.
        NoOutputsError: `num_outputs` is below 1.
        ArgumentValueError: a list is too long, or a number is out of range.
        LayoutError: layout and ndim do not match.
    """
    check_num_outputs(num_outputs)
    count = num_outputs or 1
    dtypes = [_dtype(value) for value in _per_output("dtype", dtype, count)]
    ndims = [_ndim(value) for value in _per_output("ndim", ndim, count)]
    layouts = [_layout(value) for value in _per_output("layout", layout, count)]
    for letters, dimensions in zip(layouts, ndims, strict=True):
        if letters and dimensions is not None and len(letters) != dimensions:
            raise LayoutError(
                f"the layout {letters!r} has {counted(len(letters), 'letter')}, but ndim is {dimensions}."
            )
    return [
        Declaration(element, len(letters) if letters else dimensions, letters)
        for element, dimensions, letters in zip(dtypes, ndims, layouts, strict=True)
    ]


def check_num_outputs(num_outputs: int | None) -> None:
    """Raise NoOutputsError if the number of outputs of a source is below 1."""
    if num_outputs is not None and num_outputs < 1:
        raise NoOutputsError(f"num_outputs must be at least 1; got {num_outputs}.")


def _per_output(name: str, value: Any, count: int) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * count
    if len(value) > count:
        outputs = counted(count, "output")
        raise ArgumentValueError(f"{name} has {len(value)} items for {outputs}.")
    return [*value, *[None] * (count - len(value))]


def _dtype(value: Any) -> DALIDataType | None:
    if value is None or value == DALIDataType.NO_TYPE:
        return None
    if isinstance(value, DALIDataType):
        return value
    try:
        return from_numpy(value)
    except DalifyError:
        raise
    except TypeError:
        raise ArgumentTypeError(
            f"dtype must be a data type; got {value!r}.", hint="Example: types.FLOAT or np.float32."
        ) from None


def _ndim(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"ndim must be an integer; got {value!r}.")
    if value < 0:
        raise ArgumentValueError(f"ndim must not be negative; got {value}.")
    return int(value)


def _layout(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"layout must be a string; got {value!r}.", hint="Example: layout='HWC'.")
    return str(value)
