"""Finds the syntax tree of a code object in the user's source file.

The whole file is parsed, so that lines and columns are correct, the enclosing class is known (for ``__private`` names),
and lambdas on the same line are distinguished by their columns.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from types import CodeType
from typing import Any

from dalify.base.recent import Recent
from dalify.frontend.syntax import gast

_SCOPES = (gast.FunctionDef, gast.Lambda)
# Parsed files, with their lines. A pipeline uses few; the cache is small so that notebooks do not accumulate trees.
_parsed: Recent[tuple[list[str], dict[int, list[Definition]]]] = Recent(32)


@dataclass(frozen=True, slots=True)
class Definition:
    """A ``def`` or ``lambda`` in a file.

    Attributes:
        node: the syntax tree; shared, so copy it before changing it.
        class_name: innermost enclosing class; "" for none.
    """

    node: Any
    class_name: str


def find_definition(code: CodeType) -> Definition | None:
    """Return the definition that a code object was compiled from.

    Returns:
        None if there is no source (code from a console or a string), if it is invalid, or if several definitions match
        equally well.
    """
    candidates = _definitions(code.co_filename).get(code.co_firstlineno, [])
    fitting = [found for found in candidates if _fits(found.node, code)]
    if len(fitting) > 1:
        fitting = [found for found in fitting if _covers(found.node, code)]
    if len(fitting) > 1:  # nested lambdas: the innermost that covers the code
        innermost = max(fitting, key=lambda found: (found.node.body.lineno, found.node.body.col_offset))
        is_nested = all(innermost.node in gast.walk(other.node) for other in fitting)
        fitting = [innermost] if is_nested else []
    return fitting[0] if fitting else None


def _definitions(filename: str) -> dict[int, list[Definition]]:
    lines = linecache.getlines(filename)
    return _parsed.get_or_make((filename, id(lines)), lambda: (lines, _parse(lines)))[0][1]


def _parse(lines: list[str]) -> dict[int, list[Definition]]:
    try:
        tree = gast.parse("".join(lines))
    except (SyntaxError, ValueError):
        tree = gast.parse("")
    found: dict[int, list[Definition]] = {}
    _collect(tree, "", found)
    return found


def _collect(node: Any, class_name: str, found: dict[int, list[Definition]]) -> None:
    for child in gast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            decorators = getattr(child, "decorator_list", [])
            first_line = min(part.lineno for part in (*decorators, child))
            found.setdefault(first_line, []).append(Definition(child, class_name))
        _collect(child, child.name if isinstance(child, gast.ClassDef) else class_name, found)


def _fits(node: Any, code: CodeType) -> bool:
    name = node.name if isinstance(node, gast.FunctionDef) else "<lambda>"
    # The file may have been edited after it was imported.
    if name != code.co_name or max(line or 0 for _, _, line in code.co_lines()) > node.end_lineno:
        return False
    arguments = node.args
    names = [argument.id for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [extra.id for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    known = code.co_varnames[: len(names)]
    return len(names) == len(known) and all(mangled.endswith(name) for mangled, name in zip(known, names, strict=True))


def _covers(node: Any, code: CodeType) -> bool:
    body = node.body if isinstance(node, gast.Lambda) else node
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) == (end_line, end_column):
            continue  # an instruction without a position
        if not (start <= (line, column) and (end_line, end_column) <= end):
            return False
    return True
