"""The names in the ``__getitem__`` of a user's dataset, and their values if all samples have the same."""

from __future__ import annotations

import ast
import builtins
from enum import EnumType
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from dalify.plugin.pytorch.dropin.getitem import MISSING, NotEvaluatedError, attribute_of
from dalify.plugin.pytorch.dropin.image_symbols import truth_of

_CREATING = (np.array, np.full, np.ones, np.zeros, torch.full, torch.ones, torch.tensor, torch.zeros)


class MethodScope:
    """The names in a method.

    Args:
        dataset: the dataset.
        function: its method.
        definition: the syntax tree of the method.

    Attributes:
        own: the name of the dataset.
        names: the local variables and parameters.
        watched: the attributes on whose values the evaluation depends; a dictionary, to keep the order.
    """

    def __init__(self, dataset: Any, function: FunctionType, definition: ast.FunctionDef) -> None:
        self._dataset, self._definition = dataset, definition
        self._globals = function.__globals__
        self.own, index = (parameter.arg for parameter in definition.args.args)
        names = (node for node in ast.walk(definition) if isinstance(node, ast.Name))
        self.names = {name.id for name in names if isinstance(name.ctx, ast.Store)} | {self.own, index}
        self.watched: dict[str, None] = {}

    def is_own(self, attribute: ast.Attribute) -> bool:
        """Return whether an expression is an attribute of the dataset."""
        return isinstance(attribute.value, ast.Name) and attribute.value.id == self.own

    def resolved(self, expression: ast.expr) -> Any:
        """Return a function, class or module that is the same for all samples; `MISSING` for other values."""
        match expression:
            case ast.Name(id=name) if name not in self.names:
                return self._globals.get(name, getattr(builtins, name, MISSING))
            case ast.Attribute(attr=attribute) if self.is_own(expression):
                return attribute_of(self._dataset, attribute)
            case ast.Attribute(value=owner, attr=attribute):
                module = self.resolved(owner)
                return getattr(module, attribute, MISSING) if isinstance(module, ModuleType | EnumType) else MISSING
            case _:
                return MISSING

    def creates(self, name: str) -> bool:
        """Return whether the method only assigns new arrays, tensors and copies to a variable."""
        assigned = [
            node
            for node in ast.walk(self._definition)
            if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        ]
        created = [
            node.targets[0]
            for node in ast.walk(self._definition)
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and self._is_new(node.value)
        ]
        return bool(assigned) and all(any(node is target for target in created) for node in assigned)

    def _is_new(self, expression: ast.expr) -> bool:
        match expression:
            case ast.Call(func=ast.Attribute(attr="clone" | "copy"), args=[], keywords=[]):
                return True
            case ast.Call(func=function, keywords=keywords) if all(keyword.arg == "dtype" for keyword in keywords):
                return any(self.resolved(function) is each for each in _CREATING)
            case _:
                return False

    def truth(self, test: ast.expr) -> bool:
        """Return the truth of a condition that depends only on attributes of the dataset."""
        return truth_of(self.constant(test))

    def constant(self, expression: ast.expr) -> Any:
        """Return a value that depends only on attributes of the dataset; NotEvaluatedError for other values."""
        match expression:
            case ast.Constant(value=value):
                return value
            case ast.Attribute(attr=attribute) if self.is_own(expression):
                value = attribute_of(self._dataset, attribute)
                if value is MISSING:
                    raise NotEvaluatedError
                self.watched[attribute] = None
                return value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.truth(operand)
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self.truth(part) for part in parts)
            case ast.BoolOp(op=ast.Or(), values=parts):
                return any(self.truth(part) for part in parts)
            case ast.Compare(left=left, ops=[kind], comparators=[right]):
                first, second = self.constant(left), self.constant(right)
                if isinstance(kind, ast.Is | ast.IsNot) and second is None:
                    return (first is None) == isinstance(kind, ast.Is)
                are_simple = isinstance(first, bool | int | str) and isinstance(second, bool | int | str)
                if isinstance(kind, ast.Eq | ast.NotEq) and are_simple:
                    return (first == second) == isinstance(kind, ast.Eq)
            case _:
                pass
        raise NotEvaluatedError
