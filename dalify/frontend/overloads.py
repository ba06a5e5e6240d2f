"""Functions that rewritten code calls instead of ``if``, ``and``, ``not``, calls and similar constructs.

For Python values they behave like these constructs. `transform` creates the calls.
"""

from __future__ import annotations

import builtins
import functools
import operator
import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, FunctionType
from typing import Any

import numpy as np

from dalify.base.errors import ConditionError
from dalify.base.source_line import SourceLine
from dalify.frontend.checks import (
    check_in_place,
    check_item,
    check_mutation,
    is_mutation,
    needs_values,
    reject,
    reject_builtin,
    reject_jump,
)
from dalify.frontend.conditional import Conditional, Guard, trace_both
from dalify.frontend.stores import active, note
from dalify.frontend.values import NO_RESULT, Unusable, read
from dalify.graph import DataNode, logical_not

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
}
# Callables that call their first argument, which may be the user's function.
_CALLING_BACK = (map, filter, functools.reduce)
# A condition is a graph value or a boolean.
_CONDITIONS: Any = (DataNode, bool, np.bool_)


class Overloads:
    """The name ``dalify__`` of one rewritten function.

    Args:
        function: the user's function.
        convert: rewrites a callable that the function calls.
    """

    NO_RESULT = NO_RESULT
    locals = staticmethod(builtins.locals)
    value = staticmethod(read)
    guard = Guard

    def __init__(self, function: FunctionType, convert: Callable[[Any], Any]) -> None:
        self._function = function
        self._convert = convert
        cells = function.__closure__ or ()
        self._cells: dict[str, CellType] = dict(zip(function.__code__.co_freevars, cells, strict=True))

    def _line(self, number: int) -> SourceLine | None:
        return SourceLine(self._function.__code__.co_filename, number, self._function.__name__) if number else None

    def conditional(
        self, guard: Guard, test: Any, variables: tuple[tuple[str, int, int], ...], jump: tuple[str, int] | None
    ) -> Conditional:
        """Return the state of an ``if``.

        Args:
            guard: leaves its branches on an exception.
            test: value of the test.
            variables: names of the variables that it assigns, and the lines where the body and the ``else`` part do.
            jump: the first jump in its branches that cannot be traced, and its line; None if there is none.
        """
        read(test)
        if not isinstance(test, DataNode):
            return Conditional(guard, test)
        line = SourceLine.capture()
        construct = "elif" if line is not None and line.text.startswith("elif") else "if"
        if jump is not None:
            reject_jump(jump[0], self._line(jump[1]), line)
        known = tuple((name, self._line(first), self._line(second)) for name, first, second in variables)
        return Conditional(guard, test, known, construct, line, self._outer())

    def _outer(self) -> dict[str, Any]:
        """Return the globals that the function can access, under a name that is not an identifier."""
        return {"<globals>": self._function.__globals__}

    def choose(self, test: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
        """Evaluate ``a if test else b``."""
        if isinstance(test, DataNode):
            return read(trace_both(test, if_true, if_false, "if … else", self._outer() | _locals(2)))
        return if_true() if test else if_false()

    def and_(self, first: Any, *others: Callable[[], Any]) -> Any:
        """Evaluate ``first and other and …``."""
        return self._logical("and", first, others)

    def or_(self, first: Any, *others: Callable[[], Any]) -> Any:
        """Evaluate ``first or other or …``."""
        return self._logical("or", first, others)

    def _logical(self, word: str, first: Any, others: Sequence[Callable[[], Any]]) -> Any:
        result = first
        for other in others:
            if isinstance(result, DataNode):
                result = self._traced(word, result, other)
            elif bool(result) == (word == "or"):
                return result
            else:
                result = other()
        return result

    def _traced(self, word: str, left: DataNode, other: Callable[[], Any]) -> Any:
        def right() -> Any:
            value = other()
            if not isinstance(value, _CONDITIONS):
                raise ConditionError.here(
                    f"the right operand of this `{word}` is of type {type(value).__name__}; if the other operand "
                    "is a graph value, it must be a boolean.",
                    hint="Compare it, `b != 0`. To select a value by a condition, write `x if a else y`.",
                )
            return value

        sides = (right, lambda: False) if word == "and" else (lambda: True, right)
        return read(trace_both(left, *sides, word, self._outer() | _locals(4)))

    def not_(self, value: Any) -> Any:
        """Evaluate ``not value``."""
        return logical_not(value) if isinstance(value, DataNode) else not value

    def compare(self, left: Any, *steps: Any) -> Any:
        """Evaluate ``left < b < c``: each operand once, and later ones only if the earlier comparisons are true.

        Args:
            left: first operand.
            steps: alternately the name of a comparison and a function that evaluates its right operand.
        """

        def rest(left: Any, index: int) -> Any:
            name, right = steps[index], steps[index + 1]()
            result = self.contains(left, right, name) if name in ("In", "NotIn") else _COMPARISONS[name](left, right)
            if index + 2 == len(steps):
                return result
            return self.and_(result, lambda: rest(right, index + 2))

        return rest(left, 0)

    def contains(self, item: Any, container: Any, name: str) -> bool:
        """Evaluate ``item in container`` or ``not in``."""
        if isinstance(item, DataNode) or isinstance(container, DataNode):
            reject("in")
        return (item in container) == (name == "In")

    def plain(self, test: Any, construct: str) -> Any:
        """Return a Python value used as a test; raise for a graph value."""
        if isinstance(test, DataNode):
            reject(construct)
        return test

    def not_in(self, conditionals: tuple[Conditional, ...], construct: str, value: Any = None) -> Any:
        """Return ``value``; raise if an enclosing ``if`` is traced."""
        if any(conditional.is_traced for conditional in conditionals):
            reject(construct)
        return value

    def result(self, value: Any) -> Any:
        """Return the result of a function after its paths were merged."""
        return None if value is NO_RESULT else read(value)

    def owner(self, owner: Any, name: str, is_augmented: bool = False) -> Any:
        """Return an object; one of its attributes is assigned or deleted next."""
        if active() is not None:
            if is_augmented:
                check_in_place(getattr(owner, name, None))
            note(owner, name, is_item=False)
        return owner

    def items(self, owner: Any, is_augmented: bool = False) -> Any:
        """Return an object, in a branch a wrapper that records changes; one of its items is changed next."""
        if active() is None or isinstance(owner, (DataNode, Unusable)):
            return owner
        return _Items(owner, is_augmented)

    def in_place(self, value: Any) -> None:
        """Check an object that ``+=`` changes next."""
        check_in_place(read(value))

    def keep(self, name: str) -> None:
        """Record a global or nonlocal variable before it is assigned."""
        if name in self._cells:
            note(self._cells[name], "cell_contents", is_item=False)
        else:
            note(self._function.__globals__, name, is_item=True)

    def _call_with_callback(self, function: Any, callback: Any, *rest: Any) -> Any:
        return function(callback and self._convert(callback), *rest)

    def call(self, function: Any) -> Any:
        """Return the callable that replaces ``function``; the call itself remains in the user's frame."""
        read(function)
        if needs_values(function):
            return functools.partial(_check_and_call, function)
        if isinstance(function, (type, BuiltinFunctionType)) and function in _CALLING_BACK:
            return functools.partial(self._call_with_callback, function)
        if is_mutation(function):
            return functools.partial(_mutate, function)
        return self._convert(function)


def _mutate(function: Any, *arguments: Any, **named: Any) -> Any:
    check_mutation(function, [*arguments, *named.values()])
    return function(*arguments, **named)


class _Items:
    """Wraps an object while one of its items is assigned or deleted in a branch."""

    __slots__ = ("_is_augmented", "_owner")

    def __init__(self, owner: Any, is_augmented: bool) -> None:
        self._owner = owner
        self._is_augmented = is_augmented

    def __getitem__(self, key: Any) -> Any:
        value = self._owner[key]
        if self._is_augmented:
            check_in_place(value)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        if check_item(self._owner, key, is_deletion=False):
            note(self._owner, key, is_item=True)
        self._owner[key] = value

    def __delitem__(self, key: Any) -> None:
        if check_item(self._owner, key, is_deletion=True):
            note(self._owner, key, is_item=True)
        del self._owner[key]


def _check_and_call(function: Any, *arguments: Any, **keywords: Any) -> Any:
    reject_builtin(function, arguments)
    return function(*arguments, **keywords)


def _locals(depth: int) -> dict[str, Any]:
    """Return the local variables of the user's function, ``depth`` frames up the stack."""
    return dict(sys._getframe(depth).f_locals)  # pyright: ignore[reportPrivateUsage] -- documented
