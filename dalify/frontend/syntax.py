"""Small tools on syntax trees: write a statement from text, list what a statement binds.

Alone because the rewriting steps share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import gast as _gast

__all__ = ["bound_names", "expression", "gast", "own_nodes", "statement", "statements"]

# gast makes its node classes when it is imported, so a type checker cannot know them.
gast: Any = _gast

_SCOPES = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Lambda)
_COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


def statements(text: str, place: Any, **parts: Any) -> list[Any]:
    """Parse statements and put parts in.

    Args:
        text: Python statements; capital names stand for the parts.
        place: node whose line and columns the new nodes get, so that tracebacks show what the user wrote.
        parts: an expression, or a list of statements for a name that is a statement of its own.
    """
    tree = gast.parse(text)
    for node in gast.walk(tree):
        if hasattr(node, "lineno"):
            gast.copy_location(node, place)
    return _Filler(parts).visit(tree).body


def statement(text: str, place: Any, **parts: Any) -> Any:
    """Parse one statement; see `statements`."""
    (only,) = statements(text, place, **parts)
    return only


def expression(text: str, place: Any, **parts: Any) -> Any:
    """Parse one expression; see `statements`."""
    return statement(text, place, **parts).value


class _Filler(gast.NodeTransformer):
    def __init__(self, parts: dict[str, Any]) -> None:
        self.parts = parts

    def visit_Name(self, node: Any) -> Any:  # noqa: N802 - gast's naming
        return self.parts.get(node.id, node)

    def visit_Expr(self, node: Any) -> Any:  # noqa: N802 - gast's naming
        part = self.parts.get(node.value.id) if isinstance(node.value, gast.Name) else None
        return part if isinstance(part, list) else self.generic_visit(node)


def own_nodes(body: Iterable[Any]) -> Iterator[Any]:
    """Yield all nodes of statements, without those of functions and classes defined in them."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            yield from own_nodes(gast.iter_child_nodes(node))


def bound_names(body: Iterable[Any]) -> dict[str, int]:
    """Return the variables that statements bind or delete, with the line where each is bound last."""
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
        gast.copy_location(node.name, node)  # it has no place of its own
    if isinstance(node, (gast.Import, gast.ImportFrom)):
        bound.update({alias.asname or alias.name.partition(".")[0]: node.lineno for alias in node.names})
        return
    for name in (getattr(node, "name", None), getattr(node, "rest", None)):  # captures of `match`
        if isinstance(name, str):
            bound[name] = getattr(node, "lineno", 0)
    inside = in_comprehension or isinstance(node, _COMPREHENSIONS)
    for child in gast.iter_child_nodes(node):
        _bind(child, bound, in_comprehension=inside)
