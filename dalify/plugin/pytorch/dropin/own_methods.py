"""Methods of a user's dataset that its ``__getitem__`` calls, for example to open the image.

For example::

    def load_image(self, index):
        path = self.paths[index]
        return Image.open(path).convert("RGB")

    def __getitem__(self, index):
        image = self.load_image(index)
        return self.transform(image), self.labels[index]

The statements of the method are put in the place of its call, so that `image_getitem` can evaluate them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from copy import copy, deepcopy
from types import FunctionType
from typing import Any

from dalify.plugin.pytorch.dropin.getitem import NotEvaluatedError, syntax_of


def versions_of(
    dataset: Any, function: FunctionType, definition: ast.FunctionDef
) -> Iterator[tuple[ast.FunctionDef, tuple[str, ...]]]:
    """Yield the syntax tree of ``__getitem__`` with the statements of methods that it calls, and the unchanged one.

    Assignments ``name = self.method(...)`` are replaced if the method consists of assignments and one ``return``
    statement at its end, which may be in a ``with`` block.

    Args:
        dataset: the dataset.
        function: its method ``__getitem__``.
        definition: the syntax tree of ``__getitem__``.

    Yields:
        A syntax tree, and the names of the methods whose statements it contains.
    """
    calls = _Calls(dataset, function, definition)
    changed = calls.visit(deepcopy(definition))
    if calls.found:
        yield changed, tuple(calls.found)
    yield definition, ()


class _Calls(ast.NodeTransformer):
    """Replaces the calls of methods.

    Attributes:
        found: the names of methods whose calls were replaced.
    """

    def __init__(self, dataset: Any, function: FunctionType, definition: ast.FunctionDef) -> None:
        self.found: dict[str, None] = {}
        self._dataset, self._function = dataset, function
        self._own = definition.args.args[0].arg
        self._names = _assigned_in(definition)
        self._active: list[str] = []
        self._count = 0

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Return the statements for an assignment."""
        return self._replaced(node, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Return the statements for an assignment with an annotation."""
        return node if node.value is None else self._replaced(node, node.value)

    def _replaced(self, assignment: Any, value: ast.expr) -> Any:
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner == self._own:
                try:
                    return self._statements_of(name, value, assignment)
                except NotEvaluatedError:
                    pass
            case _:
                pass
        return assignment

    def _statements_of(self, name: str, call: ast.Call, assignment: Any) -> list[ast.stmt]:
        """Return the statements of a method, and an assignment of its result; NotEvaluatedError for other methods."""
        method = inspect.getattr_static(type(self._dataset), name, None)
        is_plain = isinstance(method, FunctionType) and method.__globals__ is self._function.__globals__
        if not is_plain or name in vars(self._dataset) or name in self._active or method.__code__.co_freevars:
            raise NotEvaluatedError
        definition = syntax_of(method)
        if definition is None or not definition.args.args:
            raise NotEvaluatedError
        own, *parameters = (parameter.arg for parameter in definition.args.args)
        variables = _assigned_in(definition)
        used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        if (used - variables) & self._names:  # a global variable of the method is a local one of ``__getitem__``
            raise NotEvaluatedError
        renaming = _Renaming({each: f"dalify_{name}_{self._count}_{each}" for each in variables} | {own: self._own})
        self._count += 1

        statements: list[ast.stmt] = []
        for parameter, argument in _arguments_of(call, parameters):
            target = ast.Name(renaming.names[parameter], ast.Store())
            statements.append(ast.copy_location(ast.Assign([target], argument), assignment))
        body = [renaming.visit(deepcopy(statement)) for statement in definition.body]
        statements += _ending_with(assignment, body)
        self._active.append(name)
        try:
            statements = self.visit(ast.Module(statements, [])).body
        finally:
            self._active.pop()
        self.found[name] = None
        return statements


class _Renaming(ast.NodeTransformer):
    """Renames variables."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return the variable with its new name."""
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def _assigned_in(definition: ast.FunctionDef) -> set[str]:
    """Return the names of parameters and variables."""
    nodes = (node for node in ast.walk(definition) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)} | {each.arg for each in definition.args.args}


def _arguments_of(call: ast.Call, parameters: list[str]) -> list[tuple[str, ast.expr]]:
    """Return the parameter and value of each argument, in the order in which they are evaluated."""
    named = [(str(keyword.arg), keyword.value) for keyword in call.keywords]
    found = [*zip(parameters, call.args, strict=False), *named]
    is_starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if is_starred or len(call.args) > len(parameters) or sorted(name for name, _ in found) != sorted(parameters):
        raise NotEvaluatedError
    return found


def _ending_with(assignment: Any, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a method with an assignment of the result in the place of ``return``."""
    *others, last = body
    for statement in others:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (is_docstring or isinstance(statement, ast.Assign | ast.AnnAssign)):
            raise NotEvaluatedError
    match last:
        case ast.Return(value=ast.expr() as value):
            result = copy(assignment)
            result.value = value
            return [*others, ast.copy_location(result, last)]
        case ast.With(items=items, body=block):
            return [*others, ast.copy_location(ast.With(items, _ending_with(assignment, block)), last)]
        case _:
            raise NotEvaluatedError
