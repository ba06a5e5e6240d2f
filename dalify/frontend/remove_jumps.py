"""Moves the statements after an early ``return`` or ``continue`` into the other branch, so that no branch jumps.

    if small:               if small:
        return x      ->        result = x
    y = f(x)                else:
    return y                    y = f(x)
                                result = y
                            return result

The result is then an ordinary variable, merged like others.
"""

from __future__ import annotations

import copy
from typing import Any

from dalify.frontend.syntax import gast, name, overload, own_nodes, statement

RESULT = "_dalify_result"
# Branches that return on some of their paths need a copy of the following statements per path. If more copies are
# necessary, the function is not changed, and early returns under a condition on a graph value are errors.
_MAXIMUM_COPIES = 64


class _TooManyPaths(Exception):  # noqa: N818 - only used in this file
    pass


def remove_jumps(body: list[Any], *, is_generator: bool) -> list[Any]:
    """Return the body of a function without early ``return`` and ``continue``, if possible.

    Args:
        body: statements of a function; they may be changed in place.
        is_generator: True for a generator, where a ``return`` has no value and is not changed.

    Returns:
        The new body. Jumps out of ``with``, ``try`` and loops are not changed if statements follow.
    """
    loops = [node for node in own_nodes(body) if isinstance(node, (gast.For, gast.While))]
    for loop in reversed(loops):  # innermost first: an outer loop may copy its body
        if _is_early(loop.body, gast.Continue):
            loop.body = _attempt(loop.body, gast.Continue)
    if is_generator or not _is_early(body, gast.Return):
        return body
    result = _attempt(body, gast.Return)
    if result is body:
        return body
    last = copy.copy(body[-1])
    return [*result, gast.copy_location(gast.Return(overload(last, "result", name(RESULT, last))), last)]


def _attempt(body: list[Any], jump: type) -> list[Any]:
    try:
        return _JumpRemover(jump).run(copy.deepcopy(body), body[-1])
    except _TooManyPaths:
        return body


def _is_early(body: list[Any], jump: type) -> bool:
    return any(
        _jumps([node], jump) if isinstance(node, gast.If) else any(_is_early(part, jump) for part in _parts(node))
        for node in body
    )


def _parts(node: Any) -> list[list[Any]]:
    """Return the statement lists within a statement that may contain a jump in tail position."""
    if isinstance(node, gast.If):
        return [node.body, node.orelse]
    if isinstance(node, gast.With):
        return [node.body]
    if isinstance(node, gast.Try):
        return [node.body, *(handler.body for handler in node.handlers), node.orelse]
    return []


def _jumps(body: list[Any], jump: type) -> bool:
    return any(isinstance(node, jump) or any(_jumps(part, jump) for part in _parts(node)) for node in body)


def _falls_through(body: list[Any]) -> bool:
    """Return whether control can reach the statement after ``body``."""
    if not body:
        return True
    last = body[-1]
    if isinstance(last, gast.If):
        return _falls_through(last.body) or _falls_through(last.orelse)
    return not isinstance(last, (gast.Return, gast.Raise, gast.Continue, gast.Break))


class _JumpRemover:
    def __init__(self, jump: type) -> None:
        self.jump = jump
        self.copies = 0

    def run(self, body: list[Any], location: Any) -> list[Any]:
        done: list[Any] = []
        for index, node in enumerate(body):
            rest = body[index + 1 :]
            if isinstance(node, self.jump):
                return [*done, self.replaced(node)]
            if isinstance(node, (gast.Return, gast.Raise, gast.Continue, gast.Break)):
                return [*done, node]
            if isinstance(node, gast.If) and _jumps([node], self.jump):
                both = _falls_through(node.body) and _falls_through(node.orelse)
                node.body = self.run(self.continued(node.body, rest, both), node)
                node.orelse = self.run(self.continued(node.orelse, rest, False), node)
                return [*done, node]
            if not rest and self.is_open(node):
                for part in filter(None, _parts(node)):
                    part[:] = self.run(part, node)
                return [*done, node]
            done.append(node)
        return [*done, *self.end(location)]

    def is_open(self, node: Any) -> bool:
        if not isinstance(node, (gast.With, gast.Try)) or not _jumps([node], self.jump):
            return False
        # A `return` in `try` skips the `else` part; as an assignment it would not.
        return isinstance(node, gast.With) or not node.orelse

    def continued(self, body: list[Any], rest: list[Any], copied: bool) -> list[Any]:
        if not rest or not _falls_through(body):
            return body
        if copied:
            self.copies += 1
            if self.copies > _MAXIMUM_COPIES:
                raise _TooManyPaths
            rest = copy.deepcopy(rest)
        return [*body, *rest]

    def replaced(self, node: Any) -> Any:
        if self.jump is gast.Continue:
            return statement("pass", node)
        if node.value is None:
            return statement(f"{RESULT} = dalify__.NO_RESULT", node)
        return statement(f"{RESULT} = VALUE", node, VALUE=node.value)

    def end(self, location: Any) -> list[Any]:
        if self.jump is gast.Continue:
            return []
        return [statement(f"{RESULT} = dalify__.NO_RESULT", location)]
