"""Creates syntax trees from source text, and lists the names that statements bind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import gast as _gast  # pyright: ignore[reportMissingTypeStubs]

from dalify.base.narrow import is_list

OVERLOADS = "dalify__"
"""The name of the `Overloads` object in rewritten code."""

# gast creates its node classes at import, so type checkers do not know them.
gast: Any = _gast

_SCOPES = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Lambda)
_COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


def statements(text: str, location: Any, **parts: Any) -> list[Any]:
    """Parse statements and substitute parts.

    Args:
        text: Python statements; capital names are placeholders for the parts.
        location: the new nodes have the line and columns of this node, so that tracebacks show the user's code.
        parts: an expression, or a list of statements for a name that is a statement.
    """
    tree = gast.parse(text)
    for node in gast.walk(tree):
        if hasattr(node, "lineno"):
            located(node, location)
    return _Filler(parts).visit(tree).body


def statement(text: str, location: Any, **parts: Any) -> Any:
    """Parse one statement; see `statements`."""
    (only,) = statements(text, location, **parts)
    return only


def located(node: Any, location: Any) -> Any:
    """Copy the line and columns of another node to a node."""
    gast.copy_location(node, location)
    if isinstance(node, gast.Attribute):
        # Python reports the call of a method on the last line of `object.method`.
        node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    return node


def name(text: str, location: Any) -> Any:
    """Return the expression that reads a variable."""
    return located(gast.Name(text, gast.Load(), None, None), location)


def literal(value: Any, location: Any) -> Any:
    """Return the expression of a constant."""
    return located(gast.Constant(value, None), location)


def overload(location: Any, function: str, *arguments: Any) -> Any:
    """Return the call of an overload; arguments that are not syntax trees become constants."""
    parts = [part if isinstance(part, gast.AST) else literal(part, location) for part in arguments]
    attribute = located(gast.Attribute(name(OVERLOADS, location), function, gast.Load()), location)
    return located(gast.Call(attribute, parts, []), location)


class _Filler(gast.NodeTransformer):
    def __init__(self, parts: dict[str, Any]) -> None:
        self.parts = parts

    def visit_Name(self, node: Any) -> Any:
        return self.parts.get(node.id, node)

    def visit_Expr(self, node: Any) -> Any:
        part = self.parts.get(node.value.id) if isinstance(node.value, gast.Name) else None
        return part if is_list(part) else self.generic_visit(node)


def own_nodes(body: Iterable[Any]) -> Iterator[Any]:
    """Yield all nodes of statements, except nodes inside functions and classes that the statements define."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            yield from own_nodes(gast.iter_child_nodes(node))


def bound_names(body: Iterable[Any]) -> dict[str, int]:
    """Return the variables that statements bind or delete, with the line of the last binding."""
    bound: dict[str, int] = {}
    for node in body:
        _bind(node, bound, in_comprehension=False)
    return bound


def _bind(node: Any, bound: dict[str, int], *, in_comprehension: bool) -> None:
    if isinstance(node, gast.NamedExpr):
        bound[node.target.id] = node.lineno
        _bind(node.value, bound, in_comprehension=in_comprehension)
        return
    if isinstance(node, gast.Name):
        if isinstance(node.ctx, (gast.Store, gast.Del)) and not in_comprehension:
            bound[node.id] = node.lineno
        return
    if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
        bound[node.name] = node.lineno
        return
    if isinstance(node, gast.Lambda):
        return
    if isinstance(node, gast.ExceptHandler) and node.name is not None:
        gast.copy_location(node.name, node)  # it has no position
    if isinstance(node, (gast.Import, gast.ImportFrom)):
        bound.update({alias.asname or alias.name.partition(".")[0]: node.lineno for alias in node.names})
        return
    for capture in (getattr(node, "name", None), getattr(node, "rest", None)):  # of `match`
        if isinstance(capture, str):
            bound[capture] = getattr(node, "lineno", 0)
    inside = in_comprehension or isinstance(node, _COMPREHENSIONS)
    for child in gast.iter_child_nodes(node):
        _bind(child, bound, in_comprehension=inside)
