"""The state of one condition while it is traced: for a graph value, both branches run, one after the other.

The rewritten ``if`` remains in the user's function:

    with dalify__.guard() as _dalify_guard_1:
        _dalify_if_1 = dalify__.conditional(_dalify_guard_1, <test>, <variables>, <jump>)
        if _dalify_if_1.enters_if(<locals>):
            <body>
        if _dalify_if_1.enters_else(<locals>):
            if _dalify_if_1.is_traced: <variables> = _dalify_if_1.values
            <else body>
        if _dalify_if_1.is_merged(<locals>):
            <variables> = _dalify_if_1.values

Branches are not separate functions, so a debugger shows all variables, and ``with``, ``try``, ``:=`` and ``nonlocal``
keep their meaning. Nested conditions share the guard, because Python limits the nesting depth of ``with``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from dalify.base.source_line import SourceLine
from dalify.frontend.checks import check_condition
from dalify.frontend.stores import BranchStores, merge_stores, traced
from dalify.frontend.values import ABSENT, RESULT_NAME, Merger, Unusable, copied, never_assigned
from dalify.graph import Branch, DataNode, current_branch

# Name, and the lines where the body and the `else` part assign it; None for a part that does not assign it.
Variable = tuple[str, SourceLine | None, SourceLine | None]


class Guard:
    """Leaves open branches when an exception propagates."""

    def __init__(self) -> None:
        self.open: list[AbstractContextManager[BranchStores]] = []

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave open branches, innermost first."""
        while self.open:
            self.open.pop().__exit__(kind, error, traceback)


class Conditional:
    """State of one ``if``.

    Args:
        guard: leaves the branches on an exception.
        condition: value of the test.
        variables: local variables that its branches assign.
        construct: ``if`` or ``elif``.
        line: its line.
        scope: variables that the code can access besides its local variables.

    Attributes:
        is_traced: True if the test is a graph value, so that both branches run.
        values: values to be assigned to the variables next, in order.
    """

    def __init__(
        self,
        guard: Guard,
        condition: Any,
        variables: tuple[Variable, ...] = (),
        construct: str = "if",
        line: SourceLine | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> None:
        self.is_traced = isinstance(condition, DataNode)
        self.values: tuple[Any, ...] = ()
        self._guard = guard
        self._variables = variables
        self._scope = dict(scope or {})
        self._before: list[Any] = []
        self._stores: list[BranchStores] = []
        self._after: list[list[tuple[Any, Any]]] = []
        if isinstance(condition, DataNode):
            self._branches = _branches(condition, construct, line)
            self._merger = Merger(condition, construct, line)
        else:
            self._truth = bool(condition)

    def enters_if(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the body runs. ``variables``: the local variables."""
        if not self.is_traced:
            return self._truth
        self._before = self._found(variables)
        self._scope.update(variables)
        self._enter(self._branches[0])
        return True

    def enters_else(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the ``else`` part runs; if both run, `values` are those before the ``if``."""
        if not self.is_traced:
            return not self._truth
        self._leave(variables)
        self.values = self._assignable(self._before)
        self._enter(self._branches[1])
        return True

    def is_merged(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the merged `values` must be assigned."""
        if not self.is_traced:
            return False
        self._leave(variables)
        merged: list[Any] = []
        for (name, *lines), one, other in zip(self._variables, *self._after, strict=True):
            is_untouched = one[0] is other[0]
            label = RESULT_NAME if name.startswith("_dalify_") else name
            value = one[0] if is_untouched else self._merger.merged(label, (one[1], other[1]), (lines[0], lines[1]))
            merged.append(value)
        merge_stores(self._merger, self._stores[0], self._stores[1])
        self.values = self._assignable(merged)
        # Release the data of this condition, because the function may run for a long time.
        self._scope, self._before, self._stores, self._after = {}, [], [], []
        return True

    def _enter(self, branch: Branch) -> None:
        context = traced(branch, self._scope)
        self._stores.append(context.__enter__())
        self._guard.open.append(context)

    def _leave(self, variables: Mapping[str, Any]) -> None:
        self._guard.open.pop().__exit__(None, None, None)
        # Copy before the stores are undone, so that containers of the branch keep them.
        self._after.append([(value, copied(value)) for value in self._found(variables)])
        self._stores[-1].close()

    def _found(self, variables: Mapping[str, Any]) -> list[Any]:
        found = [variables.get(name, ABSENT) for name, _, _ in self._variables]
        return [ABSENT if type(value) is Unusable and value.is_absent else value for value in found]

    def _assignable(self, values: list[Any]) -> tuple[Any, ...]:
        return tuple(
            never_assigned(name) if value is ABSENT else value
            for (name, _, _), value in zip(self._variables, values, strict=True)
        )


def trace_both(
    condition: DataNode,
    if_true: Callable[[], Any],
    if_false: Callable[[], Any],
    construct: str,
    scope: dict[str, Any],
) -> Any:
    """Trace the two sides of an expression and merge their values.

    Args:
        condition: the graph value of the condition.
        if_true: evaluates the side for true samples.
        if_false: evaluates the side for false samples.
        construct: the construct in the user's code, for messages.
        scope: variables that the code can access.
    """
    line = SourceLine.capture()
    merger = Merger(condition, construct, line)
    values: list[tuple[Any, Any]] = []
    stores: list[BranchStores] = []
    for branch, side in zip(_branches(condition, construct, line), (if_true, if_false), strict=True):
        with traced(branch, scope) as kept:
            value = side()
        values.append((value, copied(value)))
        stores.append(kept)
        kept.close()
    merge_stores(merger, stores[0], stores[1])
    (one, one_copy), (other, other_copy) = values
    return one if one is other else merger.merged(RESULT_NAME, (one_copy, other_copy), (line, line))


def _branches(condition: DataNode, construct: str, line: SourceLine | None) -> tuple[Branch, Branch]:
    check_condition(condition, construct, line)
    parent = current_branch()
    return Branch(condition.edge, True, parent, line), Branch(condition.edge, False, parent, line)
