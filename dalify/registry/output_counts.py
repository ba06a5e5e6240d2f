"""Numbers of outputs that the arguments determine, for ``outputs`` of a declaration, and their element types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError, DalifyError, NoOutputsError
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType

# Not BOOL: bytes other than 0 and 1 would be neither True nor False.
_LAST_NUMBER = DALIDataType.FLOAT64


def one_per_entry(argument: str, example: str) -> Callable[[Mapping[str, Any]], int]:
    """Return the function of the arguments for an operator with one output per entry of a list.

    It raises NoOutputsError if the list is empty.

    Args:
        argument: name of the list.
        example: a value, for the error.
    """

    def count(arguments: Mapping[str, Any]) -> int:
        if not arguments[argument]:
            raise NoOutputsError(f"{argument} must not be empty.", hint=f"For example {argument}={example}.")
        return len(arguments[argument])

    return count


def types_of_outputs(
    dtypes: Sequence[DALIDataType] | None, count: int, wrong_type: type[DalifyError]
) -> Sequence[DALIDataType]:
    """Return the argument ``dtypes`` of an operator with several outputs; by default UINT8 for each.

    Args:
        dtypes: the argument.
        count: number of outputs.
        wrong_type: class of the error for a type that is not numeric.

    Raises:
        ArgumentValueError: there is not one type for each output.
    """
    if dtypes is None:
        return [DALIDataType.UINT8] * count
    if len(dtypes) != count:
        raise ArgumentValueError(
            f"dtypes must have one type per output; got {len(dtypes)} for {counted(count, 'output')}."
        )
    for dtype in dtypes:
        if not 0 <= dtype <= _LAST_NUMBER:
            raise wrong_type(f"dtypes must be numeric types; got {dtype.text}.")
    return dtypes
