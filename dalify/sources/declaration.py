"""What a user declares of his data before they come: element type, dimensions, layout of each output.

Alone because the graph is checked with it when it is built, and the data when they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DalifyError, LayoutError
from dalify.data.dtypes import DALIDataType, from_numpy

__all__ = ["Declaration", "declarations"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One output.

    Attributes:
        dtype: type of the elements; None where the first batch decides.
        ndim: dimensions of a sample; None where the first batch decides.
        layout: letters of the dimensions; "" for none.
    """

    dtype: DALIDataType | None
    ndim: int | None
    layout: str


def declarations(num_outputs: int | None, *, dtype: Any, ndim: Any, layout: Any) -> list[Declaration]:
    """Return what is declared of each output.

    Args:
        num_outputs: None where the source gives one item that is no tuple.
        dtype: a DALIDataType or a numpy type, or a list with one per output; a short list leaves the rest open.
        ndim: a number, or a list of them.
        layout: a text, or a list of them.

    Raises:
        ArgumentTypeError: something else than that.
        ArgumentValueError: lists that are too long, or numbers out of range.
        LayoutError: layout and ndim contradict each other.
    """
    if num_outputs is not None and num_outputs < 1:
        raise ArgumentValueError(f"num_outputs must be at least 1; got {num_outputs}.")
    count = num_outputs or 1
    dtypes = [_dtype(value) for value in _each("dtype", dtype, count)]
    ndims = [_ndim(value) for value in _each("ndim", ndim, count)]
    layouts = [_layout(value) for value in _each("layout", layout, count)]
    for letters, dimensions in zip(layouts, ndims, strict=True):
        if letters and dimensions is not None and len(letters) != dimensions:
            raise LayoutError(f"the layout {letters!r} has {len(letters)} letters, but ndim is {dimensions}.")
    return [
        Declaration(element, len(letters) if letters else dimensions, letters)
        for element, dimensions, letters in zip(dtypes, ndims, layouts, strict=True)
    ]


def _each(name: str, value: Any, count: int) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * count
    if len(value) > count:
        outputs = "1 output" if count == 1 else f"{count} outputs"
        raise ArgumentValueError(f"{name} has {len(value)} items for {outputs}: {list(value)!r}.")
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
            f"dtype must be an element type; got {value!r}.", hint="For instance types.FLOAT, or np.float32."
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
        raise ArgumentTypeError(f"layout must be a text; got {value!r}.", hint="For instance layout='HWC'.")
    return str(value)
