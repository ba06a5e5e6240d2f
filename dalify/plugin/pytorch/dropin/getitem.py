"""Evaluates the ``__getitem__`` of a user's dataset for all samples of a batch at once.

This is possible if it only returns rows of arrays, tensors and lists that are attributes of the dataset, for example::

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float() / 255
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]

for a dataset without a transform. The syntax tree is evaluated with symbols for the index and the rows; any statement
or function that is not listed here ends the evaluation.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import warnings
from collections import UserDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

from dalify.plugin.pytorch.dropin.columns import INDEX, Column, is_column

_CASTS = frozenset({"bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short"})
_FUNCTIONS = (isinstance, torch.as_tensor, torch.from_numpy, torch.is_tensor, torch.tensor)
_TENSOR_CLASSES: dict[Any, str] = {torch.FloatTensor: "f", torch.LongTensor: "i", torch.Tensor: "f"}
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


MISSING = object()
"""In the place of an attribute that a dataset does not have."""


class NotEvaluatedError(Exception):
    """The samples of a batch must be computed one by one."""


@dataclass(frozen=True)
class _Known:
    """A value that is the same for all samples."""

    value: Any


@dataclass(frozen=True)
class _Rows:
    """A row of each sample.

    Attributes:
        column: the rows.
        kind: ``torch.Tensor`` or ``np.ndarray``; list if each row is an element of a list.
        ndim: number of dimensions of a row.
    """

    column: Column
    kind: type
    ndim: int

    def then(self, function: Callable[[Any], Any], **changes: Any) -> _Rows:
        """Return the results of a function of all rows of a batch, with other attributes."""
        return replace(self, column=Column(self.column.values, (*self.column.functions, function)), **changes)


def samples_of_getitem(dataset: Any, index: Any = 0) -> Any:
    """Return the samples of a dataset in the form of ``Picked.samples``; None without a supported ``__getitem__``.

    Args:
        dataset: the dataset.
        index: an index of the type that the sampler returns, see `index_of`.
    """
    found = getitem_of(dataset)
    if found is None:
        return None
    function, definition = found
    try:
        return _finished(_Evaluation(dataset, function, definition.args.args, index).run(definition.body))
    except NotEvaluatedError:
        return None


def getitem_of(dataset: Any) -> tuple[FunctionType, ast.FunctionDef] | None:
    """Return ``__getitem__`` of a dataset and its syntax tree; None without source code, and for other forms."""
    kind = type(dataset)
    function = inspect.getattr_static(kind, "__getitem__", None)
    if not isinstance(function, FunctionType) or kind.__getattribute__ is not object.__getattribute__:
        return None
    definition = syntax_of(function) if function.__code__.co_freevars in ((), ("__class__",)) else None
    return (function, definition) if definition is not None and len(definition.args.args) == 2 else None


@lru_cache(256)  # loaders need it for each epoch
def syntax_of(function: FunctionType) -> ast.FunctionDef | None:
    """Return the syntax tree of a function of positional arguments; None without source code, and for other forms."""
    code = function.__code__
    if hasattr(function, "__wrapped__"):
        return None
    try:
        source = "".join(inspect.findsource(function)[0])
        with warnings.catch_warnings(action="ignore"):  # they were issued when the file was imported
            module, compiled = ast.parse(source), compile(source, "", "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return None
    # The file may have changed since it was imported.
    if not any(_is_same(each, code) for each in _codes_in(compiled)):
        return None
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (code.co_name, code.co_firstlineno):
            return None if node.decorator_list or _has_options(node.args) else node
    return None


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


def _is_same(first: CodeType, second: CodeType) -> bool:
    if len(first.co_consts) != len(second.co_consts):
        return False
    for one, other in zip(first.co_consts, second.co_consts, strict=True):
        are_codes = isinstance(one, CodeType) and isinstance(other, CodeType)
        if not (_is_same(one, other) if are_codes else repr(one) == repr(other)):
            return False
    names = "co_qualname", "co_firstlineno", "co_code", "co_names", "co_varnames"
    return all(getattr(first, name) == getattr(second, name) for name in names)


def _has_options(arguments: ast.arguments) -> bool:
    """Return whether a function has other parameters than positional arguments without defaults."""
    others = arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults
    return bool(others)


def attribute_of(dataset: Any, name: str) -> Any:
    """Return an attribute of a dataset without calling a property; `MISSING` for a property or no attribute."""
    found = inspect.getattr_static(type(dataset), name, MISSING)
    return MISSING if hasattr(found, "__get__") else vars(dataset).get(name, found)


def _finished(value: Any) -> Any:
    """Return the samples of a value that ``__getitem__`` returns."""
    if isinstance(value, _Rows):
        return value.column
    if isinstance(value, dict):
        return {name: _finished(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_finished, value))
    if value is INDEX:
        return INDEX
    raise NotEvaluatedError


class _Evaluation:
    """Evaluates the body of ``__getitem__``.

    Values are `_Known`, `_Rows`, `INDEX`, and tuples, lists and dictionaries of these.

    Args:
        dataset: the dataset.
        function: its method.
        parameters: the names of the dataset and of the index.
        index: an index, for its type.
    """

    def __init__(self, dataset: Any, function: FunctionType, parameters: list[ast.arg], index: Any) -> None:
        self._dataset, self._index = dataset, index
        self._is_converted = False
        self._globals = function.__globals__
        self._names: dict[str, Any] = {parameters[0].arg: _Known(dataset), parameters[1].arg: INDEX}

    def run(self, statements: list[ast.stmt]) -> Any:
        """Return the value that the statements return; None if they return nothing."""
        for statement in statements:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return self._value(value)
                case ast.Assign(targets=[target]):
                    self._assign(target, self._value(statement.value))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(target, self._value(value))
                case ast.If():
                    test = self._value(statement.test)
                    if not isinstance(test, _Known):
                        raise NotEvaluatedError
                    found = self.run(statement.body if _truth(test.value) else statement.orelse)
                    if found is not None:
                        return found
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise NotEvaluatedError
        return None

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
        elif isinstance(target, ast.Subscript):
            owner, key = self._value(target.value), self._value(target.slice)
            if not (isinstance(owner, dict) and isinstance(key, _Known) and isinstance(key.value, str)):
                raise NotEvaluatedError
            owner[key.value] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
            for part, each in zip(target.elts, value, strict=True):
                self._assign(part, each)
        else:
            raise NotEvaluatedError

    def _value(self, expression: ast.expr) -> Any:
        match expression:
            case ast.Constant(value=value):
                return _Known(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Tuple(elts=parts):
                return tuple(map(self._value, parts))
            case ast.List(elts=parts):
                return list(map(self._value, parts))
            case ast.Dict(keys=keys, values=values):
                names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
                if not all(isinstance(name, str) for name in names):
                    raise NotEvaluatedError
                return dict(zip(names, map(self._value, values), strict=True))
            case ast.DictComp(key=ast.Name(id=name), value=value, generators=[ast.comprehension(ifs=[]) as part]):
                return self._dictionary(name, value, part)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(self._value(owner), name)
            case ast.Subscript(value=owner, slice=key):
                return _item(self._value(owner), self._value(key))
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as kind], comparators=[right]):
                first, second = self._value(left), self._value(right)
                if not (isinstance(second, _Known) and second.value is None):
                    raise NotEvaluatedError
                is_none = isinstance(first, _Known) and first.value is None
                return _Known(is_none if isinstance(kind, ast.Is) else not is_none)
            case ast.UnaryOp(op=ast.Not()):
                operand = self._value(expression.operand)
                if isinstance(operand, _Known):
                    return _Known(not _truth(operand.value))
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _OPERATIONS:
                return _computed(_OPERATIONS[type(kind)], self._value(left), self._value(right))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._called(function, list(map(self._value, arguments)), keywords)
            case _:
                pass
        raise NotEvaluatedError

    def _dictionary(self, key: str, value: ast.expr, part: ast.comprehension) -> dict[str, Any]:
        """Return ``{key: value for key, each in dictionary.items()}``."""
        match part:
            case ast.comprehension(
                target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                iter=ast.Call(func=ast.Attribute(value=owner, attr="items"), args=[], keywords=[]),
            ) if first == key:
                known = self._value(owner)
            case _:
                raise NotEvaluatedError
        # Tokenizers of transformers return a UserDict.
        items = known.value if isinstance(known, _Known) else None
        items = items.data if isinstance(items, UserDict) else items
        if type(items) is not dict or not all(isinstance(name, str) for name in items):
            raise NotEvaluatedError
        outer, found = self._names, dict[str, Any]()
        for name, each in items.items():
            self._names = {**outer, first: _Known(name), second: _Known(each)}
            found[name] = self._value(value)
        self._names = outer
        return found

    def _named(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        value = self._globals.get(name, getattr(builtins, name, None))
        # Other globals may change.
        if isinstance(value, ModuleType | type) or any(value is each for each in _FUNCTIONS):
            return _Known(value)
        raise NotEvaluatedError

    def _attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of the dataset, without calling a property, or of the modules torch and numpy."""
        if not isinstance(owner, _Known):
            raise NotEvaluatedError
        if owner.value is self._dataset:
            value = attribute_of(self._dataset, name)
            if value is MISSING:
                raise NotEvaluatedError
            return _Known(value)
        if isinstance(owner.value, ModuleType) and owner.value in (torch, np) and hasattr(owner.value, name):
            return _Known(getattr(owner.value, name))
        raise NotEvaluatedError

    def _called(self, function: ast.expr, arguments: list[Any], keywords: list[ast.keyword]) -> Any:
        named = {keyword.arg: self._value(keyword.value) for keyword in keywords}
        if isinstance(function, ast.Attribute):
            owner = self._value(function.value)
            if isinstance(owner, _Rows):
                return _method(owner, function.attr, arguments, named)
            is_integer = isinstance(self._index, int)  # which has no such methods
            if owner is INDEX and not is_integer and function.attr in ("item", "tolist") and not (arguments or named):
                return self._converted_index()
        called = self._value(function)
        if not isinstance(called, _Known) or not arguments:
            raise NotEvaluatedError
        first = arguments[0]
        if first is INDEX and not named:
            if called.value is int and len(arguments) == 1:
                return self._converted_index()
            if self._is_converted:  # there are indices of two types
                raise NotEvaluatedError
            if called.value is torch.is_tensor and len(arguments) == 1:
                return _Known(torch.is_tensor(self._index))
            if called.value is isinstance and len(arguments) == 2 and isinstance(arguments[1], _Known):
                return _Known(isinstance(self._index, arguments[1].value))
        if (
            isinstance(first, _Rows)
            and set(named) <= {"dtype"}
            and (called.value is np.array or called.value is np.asarray)
        ):
            return _as_array(first, [*arguments[1:], *named.values()])
        if (
            isinstance(first, _Rows)
            and len(arguments) == 1
            and not named
            and any(called.value is each for each in _TENSOR_CLASSES)
        ):
            return _as_tensor_of_class(called.value, first)
        if isinstance(first, _Rows) and len(arguments) == 1 and set(named) <= {"dtype"}:
            return _as_tensor(called.value, first, _constant(named.get("dtype", _Known(None)), torch.dtype))
        raise NotEvaluatedError

    def _converted_index(self) -> Any:
        """Return the index as a Python integer."""
        self._is_converted = not isinstance(self._index, int)
        return INDEX


def _truth(value: Any) -> bool:
    """Return the truth of a constant; only of those whose truth cannot depend on code of the user."""
    if value is None or type(value) in (bool, int, float, str):
        return bool(value)
    raise NotEvaluatedError


def _constant(value: Any, kind: type | tuple[type, ...]) -> Any:
    """Return a constant of a type or one of several types, or None."""
    if isinstance(value, _Known) and (value.value is None or isinstance(value.value, kind)):
        return value.value
    raise NotEvaluatedError


def _item(owner: Any, key: Any) -> Any:
    if not (isinstance(owner, _Known) and key is INDEX and is_column(owner.value)):
        raise NotEvaluatedError
    values = owner.value
    kind = type(values)
    if kind is list:
        return _Rows(Column(values), list, 0)
    return _Rows(Column(values), torch.Tensor if kind is torch.Tensor else np.ndarray, values.ndim - 1)


def _computed(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of rows and a number; the type of the result of scalars follows other rules."""
    rows, number = (left, right) if isinstance(left, _Rows) else (right, left)
    if not (isinstance(rows, _Rows) and rows.ndim and isinstance(number, _Known)):
        raise NotEvaluatedError
    value = number.value
    if type(value) not in (int, float):
        raise NotEvaluatedError
    if rows is left:
        return rows.then(lambda batch: operation(batch, value))
    return rows.then(lambda batch: operation(value, batch))


def _method(rows: _Rows, name: str, arguments: list[Any], named: dict[str | None, Any]) -> _Rows:
    """Return the result of a method of a row."""
    if named or rows.kind is list:
        raise NotEvaluatedError
    is_tensor = rows.kind is torch.Tensor
    if not arguments and (name in _CASTS or name in ("clone", "detach") if is_tensor else name == "copy" and rows.ndim):
        return rows.then(operator.methodcaller(name))
    if len(arguments) == 1 and name in (("to", "type") if is_tensor else ("astype",)):
        dtype = _constant(arguments[0], torch.dtype if is_tensor else (type, np.dtype))
        if dtype is None or not (is_tensor or issubclass(np.dtype(dtype).type, np.number | np.bool_)):
            raise NotEvaluatedError
        return rows.then(operator.methodcaller(name, dtype))
    axes = [_constant(axis, int) for axis in arguments]
    if name == "unsqueeze" and is_tensor and len(axes) == 1 and 0 <= axes[0] <= rows.ndim:
        return rows.then(operator.methodcaller(name, axes[0] + 1), ndim=rows.ndim + 1)
    if name == "permute" and is_tensor and sorted(axes) == list(range(rows.ndim)):
        return rows.then(operator.methodcaller(name, 0, *[axis + 1 for axis in axes]))
    raise NotEvaluatedError


def _as_tensor(function: Any, rows: _Rows, dtype: torch.dtype | None) -> _Rows:
    """Return the result of a function that converts a row to a tensor."""
    is_copy = function is torch.tensor or function is torch.as_tensor
    if rows.kind is list and is_copy:
        return rows.then(lambda values: _numbers(values, dtype), kind=torch.Tensor)
    if rows.kind is torch.Tensor and is_copy:
        return rows.then(lambda batch: batch if dtype is None else batch.to(dtype))
    if rows.kind is np.ndarray and (is_copy or (function is torch.from_numpy and rows.ndim and dtype is None)):
        return rows.then(lambda batch: torch.as_tensor(batch, dtype=dtype), kind=torch.Tensor)
    raise NotEvaluatedError


def _as_array(rows: _Rows, options: list[Any]) -> _Rows:
    """Return the result of ``np.array`` for a row of an array, which is copied when it is selected."""
    if rows.kind is not np.ndarray or not rows.ndim:
        raise NotEvaluatedError
    return _method(rows, "astype", options, {}) if options else rows


def _as_tensor_of_class(kind: Any, rows: _Rows) -> _Rows:
    """Return the result of ``torch.FloatTensor`` or a similar class for a row of an array.

    It converts elements of another kind, such as floats for integers, by other rules, and takes a scalar for a size.
    """
    values, element_kinds = rows.column.values, _TENSOR_CLASSES[kind]
    if rows.kind is not np.ndarray or not rows.ndim or rows.column.functions or values.dtype.kind not in element_kinds:
        raise NotEvaluatedError
    dtype = torch.get_default_dtype() if kind is torch.Tensor else kind.dtype
    return rows.then(lambda batch: torch.as_tensor(batch, dtype=dtype), kind=torch.Tensor)


def _numbers(values: list[Any], dtype: torch.dtype | None) -> torch.Tensor:
    """Return Python numbers as a tensor."""
    kinds = set(map(type, values))
    if len(kinds) > 1 or not kinds <= {bool, int, float}:
        return default_collate([torch.tensor(value, dtype=dtype) for value in values])
    return torch.tensor(values, dtype=dtype)
