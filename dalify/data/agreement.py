"""Checks that the values of branches can be merged into one variable, and that an index can select branches.

They run when the graph is built and at run time.
"""

from __future__ import annotations

from typing import Any

from dalify.base.errors import DivergentBranchesError, DTypeError, ShapeError
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec

_SIDES = ("true", "false")


def check_agreement(if_true: Spec, if_false: Spec, variable: str, lines: Any, sides: tuple[str, str] = _SIDES) -> None:
    """Raise if values cannot be merged into one variable.

    Args:
        if_true: spec of the value from the true branch.
        if_false: spec of the value from the false branch.
        variable: name in the user's code; "and" or "or" for the result of such an expression.
        lines: where the two values were defined; without them and a name, the values are samples of one batch.
        sides: names of the two branches in messages.

    Raises:
        DivergentBranchesError: element type, number of dimensions or layout differ.
    """
    for what, one, other, hint in (
        (
            "element type",
            if_true.dtype,
            if_false.dtype,
            "Convert one of them, for instance with fn.cast or the dtype= argument.",
        ),
        (
            "number of dimensions",
            if_true.ndim,
            if_false.ndim,
            "Reshape one of them, for instance with fn.expand_dims or fn.squeeze.",
        ),
        (
            "layout",
            if_true.layout,
            if_false.layout,
            "Set the layout of one of them, for instance with fn.reshape(x, layout='HWC').",
        ),
    ):
        if one == other or one is None or other is None:
            continue
        if not variable and lines is None and sides == _SIDES:
            raise DivergentBranchesError(
                f"the samples of a batch must have the same {what}; got {_text(one)} and {_text(other)}. Per-sample "
                "arguments or branches of a condition made them differ.",
                hint=hint,
            )
        if variable in ("and", "or"):
            right = one if variable == "and" else other
            raise DivergentBranchesError(
                f"the right operand of this `{variable}` must be one boolean per sample; its {what} is {_text(right)}.",
                hint="Compare it, `b != 0`; take one element, b[0]; or use & and | for arrays.",
            )
        name = f"the variable {variable!r}" if variable else "the result"
        places = "".join(
            f"\n  {side} branch: {_text(value)}" + (f", defined at\n{line.quote('    ')}" if line else "")
            for side, value, line in zip(sides, (one, other), lines or (None, None), strict=True)
        )
        raise DivergentBranchesError(
            f"{name} has a different {what} in each branch of the condition.{places}", hint=hint
        )


def check_index(index: Spec) -> None:
    """Raise if a value cannot be a branch index.

    Raises:
        ShapeError: the value is not a scalar per sample.
        DTypeError: elements are not integers.
    """
    if index.ndim:
        raise ShapeError(
            f"the index of a branch must be a scalar integer; the value has {counted(index.ndim, 'dimension')}."
        )
    if index.dtype is not None and not index.dtype.is_integer:
        raise DTypeError(
            f"the index of a branch must be an integer; the value has elements of type {index.dtype.text}."
        )


def _text(value: Any) -> str:
    return value.text if isinstance(value, DALIDataType) else repr(value)
