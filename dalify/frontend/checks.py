"""Errors for constructs that cannot work on graph values, with the user's line and an alternative."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable
from typing import Any, NoReturn, cast

import numpy as np

from dalify.base.errors import ConditionError, UnsupportedSyntaxError
from dalify.base.narrow import is_array, is_dictionary
from dalify.base.source_line import SourceLine
from dalify.frontend.stores import BranchStores, active
from dalify.frontend.values import Unusable
from dalify.graph import DataNode

_MUTABLE = (list, dict, set, deque, bytearray, np.ndarray)
_MUTATING_TEXT = """
    append appendleft add clear difference_update discard extend extendleft fill insert intersection_update itemset
    move_to_end partition pop popitem popleft put remove resize reverse rotate setdefault sort
    symmetric_difference_update update
"""
_MUTATING = frozenset(_MUTATING_TEXT.split())
# Sufficient for `self.settings.lists["a"]`; a deeper search would take too long.
_SEARCH_DEPTH = 6
_SEARCH_LIMIT = 20_000
_BUILTINS: dict[Any, str] = {
    any: "Combine the conditions with `or`: a or b.",
    all: "Combine the conditions with `and`: a and b.",
    min: "Use dalify.math.min(a, b) for the smaller of two values, or fn.reductions.min(x) within one sample.",
    max: "Use dalify.math.max(a, b) for the larger of two values, or fn.reductions.max(x) within one sample.",
    bool: "Compare it, `x != 0`, or cast it: fn.cast(x, dtype=types.BOOL).",
    sorted: "The order would differ per sample, which a graph cannot express.",
}
_JUMPS = {
    "break": (
        "leave the loop",
        "Let the loop run to its end, and put its body under `if not done:`, where `done` is a graph value.",
    ),
    "continue": (
        "continue with the next iteration",
        "Put what follows the `continue` under an `if` on the opposite condition.",
    ),
    "return": (
        "return from the function",
        "Assign the result to a variable, and return it at the end of the function.",
    ),
}
_REJECTED: dict[str, tuple[str, str]] = {
    "while": (
        "the condition of this `while` is a graph value, so the number of iterations would differ per sample.",
        "Use a `for` loop with a fixed number of iterations and an `if` in it.",
    ),
    "for": (
        "a graph value cannot be iterated over: its number of elements is not known yet, and may differ per sample.",
        "Use an operator on the whole value, or index it with a range of known length: x[i] for i in range(3).",
    ),
    "assert": (
        "a graph value cannot be asserted: it has no value while the pipeline is defined.",
        "Check the outputs of the pipeline, or check each sample in a Python function with fn.python_function.",
    ),
    "in": (
        "`in` cannot be used with a graph value: the result differs per sample.",
        "Write the comparisons out, (x == 1) | (x == 2), or reduce them: fn.reductions.max(x == 1).",
    ),
    "match": (
        "a graph value cannot be the subject of `match`: it has no value while the pipeline is defined.",
        "Write `if x == 1: … elif x == 2: …`, which works on graph values.",
    ),
    "case": (
        "a graph value cannot be the guard of a `case`: the selected case would differ per sample.",
        "Use an `if` inside the case.",
    ),
    "comprehension": (
        "a graph value cannot be the `if` of a comprehension: the number of elements would differ per sample.",
        "Keep all elements and choose their values: [a if condition else b for …].",
    ),
    "walrus": (
        "`:=` and `yield` are not supported in a part of an expression that is evaluated for some samples only.",
        "Assign the variable in a separate statement before, or use an `if` statement.",
    ),
    "raise": (
        "`raise` under a condition on a graph value: both branches are traced, so the error would always be raised.",
        "Sample values are known only at run time: check it in a Python function with fn.python_function.",
    ),
    "yield": (
        "`yield` under a condition on a graph value: both branches are traced, so every sample would be yielded.",
        "Assign the value to a variable in both branches and yield it after the `if`.",
    ),
}


def reject(construct: str) -> NoReturn:
    """Raise the error for a construct that does not support graph values."""
    message, hint = _REJECTED[construct]
    kind = ConditionError if construct in ("while", "assert", "case", "comprehension") else UnsupportedSyntaxError
    raise kind.here(message, hint=hint)


def reject_jump(jump: str, line: SourceLine | None, condition_line: SourceLine | None) -> NoReturn:
    """Raise the error for a ``break``, ``continue`` or ``return`` that only some samples would execute."""
    what, hint = _JUMPS[jump]
    raise UnsupportedSyntaxError(
        f"`{jump}` under a condition on a graph value ({condition_line}): some samples would {what}, others would not.",
        line=line,
        hint=hint,
    )


def reject_builtin(function: Any, arguments: Iterable[Any]) -> None:
    """Raise if an argument of a built-in that needs values is a graph value, or a list with one."""
    hint = _BUILTINS.get(function)
    if hint is None:
        return
    for argument in arguments:
        items = _children(argument) if isinstance(argument, (list, tuple, set)) else (argument,)
        if any(isinstance(item, DataNode) for item in items):
            raise ConditionError.here(
                f"{function.__name__}() needs a value, but a graph value has none while the pipeline is defined.",
                hint=hint,
            )


def needs_values(function: Any) -> bool:
    """Return whether `reject_builtin` must check the arguments of a callable."""
    return isinstance(function, (types.BuiltinFunctionType, type)) and function in _BUILTINS


def check_condition(condition: DataNode, construct: str, line: SourceLine | None) -> None:
    """Raise ConditionError if a condition is on the GPU."""
    if condition.edge.device == "gpu":
        raise ConditionError(
            f"the condition of this `{construct}` is on the GPU; the branch of each sample is decided on the CPU.",
            line=line,
            hint="Compute it with device='cpu', or copy it with .cpu().",
        )


def is_mutation(function: Any) -> bool:
    """Return whether a call in a branch may change a container, so that `check_mutation` must check it."""
    if active() is None or not isinstance(function, types.BuiltinMethodType) or function.__name__ not in _MUTATING:
        return False
    return isinstance(function.__self__, _MUTABLE)


def check_mutation(function: Any, arguments: Iterable[Any]) -> None:
    """Raise if a method call in a branch changes a container from outside the branch and involves graph values.

    Changes that do not involve graph values (recorded names, counters) are allowed: both branches are traced, as in
    DALI.
    """
    container = function.__self__
    if is_array(container) or _holds_graph_values([container, *arguments]):
        _check_change(container, f"{type(container).__name__}.{function.__name__}()")


def _holds_graph_values(values: list[Any]) -> bool:
    seen: set[int] = set()
    while values:
        value = values.pop()
        if isinstance(value, DataNode):
            return True
        if id(value) not in seen and len(seen) < _SEARCH_LIMIT:
            seen.add(id(value))
            values += _children(value)
    return False


def check_in_place(value: Any) -> None:
    """Raise if ``value += ..`` in a branch changes an object from outside the branch."""
    kind = type(value).__name__
    if isinstance(value, _MUTABLE) or _is_array(value):
        _check_change(value, f"an operator such as `+=` on this {kind}")


def check_item(owner: Any, key: Any, *, is_deletion: bool) -> bool:
    """Raise if the assignment or deletion of an item of an object from outside the branch cannot be undone.

    Returns:
        True if it can be undone; False if the object was created in the branch, so that it need not be undone.
    """
    is_sequence = isinstance(owner, (list, deque))
    try:
        hash(key)
        is_slot = not isinstance(key, slice) and not (is_sequence and is_deletion)
    except TypeError:
        is_slot = False
    if is_slot and not _is_array(owner):
        return True
    verb = "deleting" if is_deletion else "assigning to"
    _check_change(owner, f"{verb} elements of this {type(owner).__name__}")
    return False


def _is_array(value: object) -> bool:
    """Return whether reading an element returns a view of its memory."""
    return isinstance(value, (np.ndarray, bytearray)) or hasattr(type(value), "__dlpack__")


def _check_change(target: Any, what: str) -> None:
    stores = active()
    if stores is None or not _existed_before(target, stores):
        return
    raise UnsupportedSyntaxError.here(
        f"{what} under a condition on a graph value ({stores.branch.line}) changes an object from outside the branch: "
        "both branches are traced, so the change would apply to every sample.",
        hint="Assign a value to a variable in each branch, and change the object after the `if`.",
    )


def _existed_before(target: Any, stores: BranchStores) -> bool:
    """Return whether an object is reachable from the variables that existed when an active branch began."""
    if id(target) in stores.own:
        return False
    branches: list[BranchStores] = []
    branch: BranchStores | None = stores
    while branch is not None:
        if any(store.value() is target and store.before is not target for store in branch.table.values()):
            return False  # stored by the branch itself
        branches.append(branch)
        branch = branch.parent
    if any(_reaches(branch.scope, target) for branch in branches):
        return True
    stores.own[id(target)] = target
    return False


def _reaches(scope: dict[str, Any], target: Any) -> bool:
    level: list[Any] = [scope]
    seen: set[int] = set()
    for _ in range(_SEARCH_DEPTH):
        below: list[Any] = []
        for parent in level:
            for child in _children(parent):
                if child is target:
                    return True
                if id(child) not in seen and len(seen) < _SEARCH_LIMIT:
                    seen.add(id(child))
                    below.append(child)
        level = below
    return False


def _children(parent: Any) -> Iterable[Any]:
    if is_dictionary(parent):
        return list(parent.values())
    if isinstance(parent, (list, tuple, set, frozenset, deque)):
        return list(cast("Iterable[Any]", parent))
    if isinstance(parent, types.FunctionType):
        return [cell.cell_contents for cell in parent.__closure__ or () if _is_full(cell)]
    if isinstance(parent, types.MethodType):
        return [parent.__self__]
    if isinstance(parent, (types.ModuleType, DataNode, Unusable)):
        return ()
    return list(getattr(parent, "__dict__", {}).values())


def _is_full(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
