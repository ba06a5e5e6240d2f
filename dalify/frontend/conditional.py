"""One condition while it is traced: for a Python value one branch runs, as ever; for a graph value both do, one after the other.

The rewritten ``if`` stays in the user's own function:

    _dalify_if_1 = dalify__.conditional(<test>, <variables>, <jump>)
    if _dalify_if_1.enters_if(locals):
        with _dalify_if_1:
            <body>
    if _dalify_if_1.enters_else(locals):
        if _dalify_if_1.is_traced: <variables> = _dalify_if_1.values
        with _dalify_if_1:
            <else body>
    if _dalify_if_1.is_merged(locals):
        <variables> = _dalify_if_1.values

So there is no function per branch: a debugger shows all variables, ``with``, ``try``, ``:=`` and ``nonlocal`` mean what they always mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from dalify.base.source_line import SourceLine
from dalify.frontend.fence import check_condition
from dalify.frontend.stores import BranchStores, merge_stores, traced
from dalify.frontend.values import ABSENT, RESULT_NAME, Merger, copied, never_assigned
from dalify.graph import Branch, DataNode, current_branch

__all__ = ["Conditional", "Variable", "trace_both"]

# Name, line that assigns it in the body and in the `else` part; None where that part does not.
Variable = tuple[str, SourceLine | None, SourceLine | None]


class Conditional:
    """State of one ``if``.

    Args:
        condition: value of the test.
        variables: local variables that its branches assign.
        construct: ``if`` or ``elif``.
        line: its line.

    Attributes:
        is_traced: whether the test is a graph value, so that both branches run.
        values: what to assign to the variables now, in order.
    """

    def __init__(self, condition: Any, variables: tuple[Variable, ...], construct: str, line: SourceLine | None) -> None:
        self.is_traced = isinstance(condition, DataNode)
        self.values: tuple[Any, ...] = ()
        self._variables = variables
        self._after: list[tuple[list[tuple[Any, Any]], BranchStores]] = []
        self._context: AbstractContextManager[BranchStores] | None = None
        self._stores: BranchStores | None = None
        self._locals: dict[str, Any] = {}
        if isinstance(condition, DataNode):
            check_condition(condition, construct, line)
            parent = current_branch()
            self._branches = (Branch(condition.edge, True, parent, line), Branch(condition.edge, False, parent, line))
            self._merger = Merger(condition, self._branches, construct)
        else:
            self._truth = bool(condition)

    def enters_if(self, variables: Mapping[str, Any]) -> bool:
        """Tell whether the body runs. ``variables``: the local variables."""
        if not self.is_traced:
            return self._truth
        self._locals = dict(variables)
        return True

    def __enter__(self) -> None:
        """Enter the branch that comes next."""
        if self.is_traced:
            self._context = traced(self._branches[len(self._after)], self._locals)
            self._stores = self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the branch; an error takes its stores back."""
        if self._context is not None:
            context, self._context = self._context, None
            context.__exit__(kind, error, traceback)

    def enters_else(self, variables: Mapping[str, Any]) -> bool:
        """Tell whether the ``else`` part runs; when both run, `values` are those from before the ``if``."""
        if not self.is_traced:
            return not self._truth
        self._leave(variables)
        before = [self._locals.get(name, ABSENT) for name, _, _ in self._variables]
        self.values = self._assignable(before)
        return True

    def is_merged(self, variables: Mapping[str, Any]) -> bool:
        """Tell whether `values` are to be assigned: the merged ones."""
        if not self.is_traced:
            return False
        self._leave(variables)
        (if_true, true_stores), (if_false, false_stores) = self._after
        merged = []
        for (name, *lines), one, other in zip(self._variables, if_true, if_false, strict=True):
            untouched = one[0] is other[0]
            shown = RESULT_NAME if name.startswith("_dalify_") else name
            merged.append(one[0] if untouched else self._merger.merged(shown, (one[1], other[1]), (lines[0], lines[1])))
        merge_stores(self._merger, true_stores, false_stores)
        self.values = self._assignable(merged)
        self._after, self._locals, self._stores = [], {}, None
        return True

    def _leave(self, variables: Mapping[str, Any]) -> None:
        assert self._stores is not None, "dalify bug: a branch was left that was not entered"
        found = [variables.get(name, ABSENT) for name, _, _ in self._variables]
        # Copied before the stores are taken back: what the branch built must not lose them again.
        self._after.append(([(value, copied(value)) for value in found], self._stores))
        self._stores.close()

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
    """Trace the two sides of an expression and merge what they give.

    Args:
        condition: the graph value that decides.
        if_true: evaluates the side for true samples.
        if_false: evaluates the side for false samples.
        construct: what the user wrote, for messages.
        scope: variables that the code can see.
    """
    line = SourceLine.capture()
    check_condition(condition, construct, line)
    parent = current_branch()
    branches = (Branch(condition.edge, True, parent, line), Branch(condition.edge, False, parent, line))
    merger = Merger(condition, branches, construct)
    values, stores = [], []
    for branch, side in zip(branches, (if_true, if_false), strict=True):
        with traced(branch, scope) as kept:
            value = side()
        values.append((value, copied(value)))
        stores.append(kept)
        kept.close()
    merge_stores(merger, stores[0], stores[1])
    (one, one_copy), (other, other_copy) = values
    return one if one is other else merger.merged(RESULT_NAME, (one_copy, other_copy), (line, line))
