"""Merges the values of the two branches of a condition, leaf by leaf in nested structures.

``if``, the ternary and ``and``/``or`` use the same rules. A variable that cannot be merged is an error only if it is
read, because loop counters and temporary values may differ between the branches.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

import numpy as np

from dalify.base.errors import DalifyError, DivergentBranchesError
from dalify.base.narrow import is_array, is_dictionary, is_list, is_tuple
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, Expression, constant, merge

# The lines where a value was assigned in the true and in the false branch; None if unknown.
_Lines = tuple[SourceLine | None, SourceLine | None]


class _Sentinel:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


ABSENT = _Sentinel("no value")
"""The variable, attribute or item does not exist at this point."""
NO_RESULT = _Sentinel("no `return`")
"""The path ended without a ``return``."""


RESULT_NAME = "the result"
"""In messages, the name of the result of a function or expression."""


class Unusable:
    """Placeholder in a variable without a usable value; every use raises the error that is the reason."""

    __slots__ = ("is_absent", "reason")

    def __init__(self, reason: Callable[[], Exception], *, is_absent: bool = False) -> None:
        self.reason = reason
        self.is_absent = is_absent

    def __getattr__(self, name: str) -> NoReturn:
        raise self.reason()

    def __repr__(self) -> str:
        """Return a short string for debuggers."""
        return "<no usable value>"


def _reject(self: Unusable, *_: object) -> NoReturn:
    raise self.reason()


_OPERATIONS = """
    add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor
    radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
    iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
    lt le gt ge eq ne neg pos invert abs bool len iter contains getitem setitem delitem call int float
    index complex hash enter exit array
"""
for _operation in _OPERATIONS.split():
    setattr(Unusable, f"__{_operation}__", _reject)


def read(value: Any) -> Any:
    """Return the value of a variable; raise the reason if it is `Unusable`."""
    if type(value) is Unusable:
        raise value.reason()
    return value


def never_assigned(name: str) -> Unusable:
    """Return the placeholder for an unassigned local variable."""
    return Unusable(
        lambda: UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value"),
        is_absent=True,
    )


def copied(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Copy nested lists, tuples and dictionaries, so that undoing stores does not change the values of a branch."""
    if not _is_container(value):
        return value
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]
    if is_dictionary(value):
        table = known[id(value)] = copy.copy(value)
        table.update({key: copied(item, known) for key, item in value.items()})
        return table
    if is_list(value):
        result: list[Any] = []
        known[id(value)] = result
        result.extend(copied(item, known) for item in value)
        return result
    return _rebuilt(value, [copied(item, known) for item in value])


def _is_container(value: object) -> bool:
    return type(value) in (list, dict, tuple, OrderedDict, defaultdict) or (_is_named_tuple(value))


def _is_named_tuple(value: object) -> bool:
    return is_tuple(value) and hasattr(value, "_fields")


def _rebuilt(like: Any, items: list[Any]) -> Any:
    if _is_named_tuple(like):
        return type(like)(*items)
    return type(like)(items)


def _is_leaf(value: object) -> bool:
    is_number = isinstance(value, (bool, int, float, np.generic, np.ndarray)) and not isinstance(value, Enum)
    return isinstance(value, Expression) or is_number


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, DataNode):
        return False
    if is_array(one):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    # Unlike ==, repr distinguishes 0.0 from -0.0 and handles nan.
    return isinstance(one, (bool, int, float, str, bytes, Enum)) and repr(one) == repr(other)


def _node(value: Any) -> DataNode:
    return value if isinstance(value, DataNode) else constant(value)


class Merger:
    """Merges values of the two branches of one condition.

    Args:
        condition: the graph value of the condition; both branches have been left.
        construct: the construct in the user's code, for messages: ``if``, ``and`` …
        line: its line.
    """

    def __init__(self, condition: DataNode, construct: str, line: SourceLine | None) -> None:
        self.condition = condition
        self.construct = construct
        self.line = line

    def merged(self, name: str, values: tuple[Any, Any], lines: _Lines) -> Any:
        """Merge two values.

        Args:
            name: name of the variable, for messages.
            values: value after the true and after the false branch; `ABSENT` if there is none.
            lines: lines where each was assigned; None if the branch did not assign it.

        Returns:
            The merged value; an `Unusable` with the reason if the values cannot be merged.
        """
        for value in values:
            if type(value) is Unusable:
                return value
        if values[0] is ABSENT and values[1] is ABSENT:
            return ABSENT
        try:
            return self._merged(name, values[0], values[1], lines)
        except DalifyError as error:
            reason = error  # Python deletes `error` at the end of the handler
            return Unusable(lambda: reason.with_traceback(None))

    def _merged(self, name: str, one: Any, other: Any, lines: _Lines) -> Any:
        if _is_same(one, other):
            return one
        if one is NO_RESULT or other is NO_RESULT:
            if one is None or other is None:
                return None
            self._reject_missing_return(one is NO_RESULT, lines)
        if one is ABSENT or other is ABSENT:
            self._reject_absent(name, other is ABSENT, lines)
        if _is_leaf(one) and _is_leaf(other):
            variable = name
            if name.startswith(RESULT_NAME):
                variable = self.construct if self.construct in ("and", "or") else ""
            return merge(self.condition, _node(one), _node(other), variable, self._known(lines))
        if _is_container(one) and type(one) is type(other):
            if is_dictionary(one) and one.keys() == other.keys():
                result = copy.copy(one)
                result.update({key: self._merged(f"{name}[{key!r}]", one[key], other[key], lines) for key in one})
                return result
            if not isinstance(one, dict) and len(one) == len(other):
                pairs = enumerate(zip(one, other, strict=True))
                return _rebuilt(one, [self._merged(f"{name}[{n}]", a, b, lines) for n, (a, b) in pairs])
        return self._reject_divergent(name, one, other, lines)

    def _known(self, lines: _Lines) -> _Lines:
        return (lines[0] or self.line, lines[1] or self.line)

    def _reject_missing_return(self, is_first: bool, lines: _Lines) -> NoReturn:
        lacking = "true" if is_first else "false"
        raise DivergentBranchesError(
            f"if the condition of this `{self.construct}` is {lacking}, the function ends without `return`; "
            "otherwise it returns a value.",
            line=self.line,
            hint=f"{_quoted('It returns at', lines[1 if is_first else 0])}Add a `return` to the other path.",
        )

    def _reject_absent(self, name: str, is_second: bool, lines: _Lines) -> NoReturn:
        has, lacks = ("true", "false") if is_second else ("false", "true")
        assigned, deleted = (lines[0], lines[1]) if is_second else (lines[1], lines[0])
        how = "has no value" if deleted is None else f"is deleted ({deleted})"
        raise DivergentBranchesError(
            f"`{name}` has a value only if the condition of this `{self.construct}` is {has}; "
            f"if it is {lacks}, it {how}.",
            line=self.line,
            hint=f"{_quoted('It is assigned at', assigned)}"
            f"Assign `{name}` in both branches, or give it a value before the `{self.construct}`.",
        )

    def _reject_divergent(self, name: str, one: Any, other: Any, lines: _Lines) -> NoReturn:
        what = name if name.startswith(RESULT_NAME) else f"`{name}`"
        places = "".join(
            f"if the condition is {side}: {_shape(value)}" + (f"  ({line})\n  " if line else "\n  ")
            for side, value, line in (("true", one, lines[0]), ("false", other, lines[1]))
        )
        different = "structures"
        advice = (
            "Give both branches the same structure: the same keys, the same lengths, "
            "and numbers or graph values at the same positions."
        )
        if one is None or other is None:
            advice = "A sample cannot be None: return data in both branches, for instance zeros of the same type."
        elif not any(_is_leaf(value) or _is_container(value) for value in (one, other)):
            different = "values"
            advice = (
                "Only numbers and graph values can differ between samples: use the value within each branch, and merge "
                "the graph value that is computed with it."
            )
        raise DivergentBranchesError(
            f"the branches of this `{self.construct}` assign different {different} to {what}, which cannot be merged.",
            line=self.line,
            hint=places + advice,
        )


def _quoted(text: str, line: SourceLine | None) -> str:
    if line is None:
        return ""
    return f"{text} {line}" + (f":  {line.text}\n  " if line.text else "\n  ")


def _shape(value: Any) -> str:
    """Describe the structure of nested values, without the values: ``{'a': node, 'b': [number, None]}``."""
    if isinstance(value, DataNode):
        return "node"
    if is_dictionary(value):
        return "{" + ", ".join(f"{key!r}: {_shape(item)}" for key, item in value.items()) + "}"
    if _is_named_tuple(value):
        fields = zip(getattr(value, "_fields", ()), value, strict=True)
        return f"{type(value).__name__}(" + ", ".join(f"{field}={_shape(item)}" for field, item in fields) + ")"
    if is_list(value):
        return "[" + ", ".join(map(_shape, value)) + "]"
    if is_tuple(value):
        return "(" + ", ".join(map(_shape, value)) + ("," if len(value) == 1 else "") + ")"
    if value is None or isinstance(value, str):
        return repr(value)
    if isinstance(value, Enum):
        return str(value)
    if is_array(value):
        return f"array{list(value.shape)}"
    return "number" if _is_leaf(value) else type(value).__name__
