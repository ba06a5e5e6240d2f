"""Separates the image of a sample from its other values in the ``__getitem__`` of a user's dataset.

For example::

    def __getitem__(self, index):
        row = self.table.iloc[index]
        image = Image.open(self.folder / row["file"]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, torch.tensor(row["label"])

The method is compiled again without its operations on the image: the new function returns the path of the file and the
other values. It is used if exactly one image is opened with Pillow or torchvision's loaders, or created from an array,
only converted to RGB, and passed to transforms that are attributes of the dataset. Other methods are not supported.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import os
import os.path
import pathlib
import sys
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.getitem import NotEvaluatedError, definition_of
from dalify.plugin.pytorch.dropin.sample_form import IMAGE, SampleForm

_PATH = "dalify_path"
_VALUE = "dalify_value"
_FOLDERS = "torchvision.datasets.folder"
_SIMPLE_TYPES = (type(None), bool, int, float, str, bytes, pathlib.PurePath, np.generic)
_PANDAS_TYPES = ("DataFrame", "Series", "Index", "RangeIndex")
_SAFE_FUNCTIONS = frozenset(
    {
        abs, bool, bytes, dict, enumerate, float, int, isinstance, len, list, max, min, range, repr, round, set, sorted,
        str, sum, tuple, type, zip, os.fspath, os.path.basename, os.path.dirname, os.path.exists, os.path.join,
        os.path.normpath, os.path.split, os.path.splitext, pathlib.Path, pathlib.PurePath, np.array, np.asarray,
        io.BytesIO,
        torch.as_tensor, torch.from_numpy, torch.is_tensor, torch.tensor, torch.nn.functional.one_hot,
    }
)  # fmt: skip
_TENSOR_CLASSES = (torch.FloatTensor, torch.IntTensor, torch.LongTensor, torch.Tensor)
_SAFE_METHODS = frozenset(
    {
        "astype", "capitalize", "clone", "copy", "count", "double", "encode", "endswith", "float", "format", "get",
        "index", "int", "item", "items", "joinpath", "join", "keys", "long", "lower", "lstrip", "mean", "partition",
        "removeprefix", "removesuffix", "replace", "reshape", "rpartition", "rsplit", "rstrip", "split", "startswith",
        "strip", "sum", "title", "to", "to_dict", "to_list", "to_numpy", "tolist", "unsqueeze", "upper", "values",
        "view", "with_name", "with_suffix", "zfill",
    }
)  # fmt: skip
_EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict, ast.DictComp,
    ast.FormattedValue, ast.GeneratorExp, ast.IfExp, ast.JoinedStr, ast.List, ast.ListComp, ast.Name, ast.Set,
    ast.SetComp, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp,
)  # fmt: skip
_MISSING = object()


@dataclass(frozen=True)
class _OpenedImage:
    """The image of the sample.

    Attributes:
        is_rgb: whether it was converted to RGB.
        transforms: the transforms that were applied.
    """

    is_rgb: bool
    transforms: tuple[Any, ...] = ()


@dataclass(frozen=True)
class _OpenedFile:
    """A file opened with ``open``, with its path."""

    path: ast.expr


@dataclass
class _Container:
    """A tuple, list or dictionary that may contain the image.

    Attributes:
        kind: its type.
        parts: images, containers, and names of variables with other values, by index or key.
    """

    kind: type
    parts: dict[Any, Any] = field(default_factory=dict)

    def has_image(self) -> bool:
        """Return whether the image is in it."""
        return any(isinstance(each, _OpenedImage) for each in self.leaves())

    def leaves(self) -> Iterator[Any]:
        """Yield images and names, in order."""
        for part in self.parts.values():
            if isinstance(part, _Container):
                yield from part.leaves()
            else:
                yield part


@dataclass(frozen=True)
class SeparatedImage:
    """A method ``__getitem__`` without its operations on the image.

    Attributes:
        lookup: returns the path of a sample, or its array or file in memory, and a tuple of its other values.
        form: the places of these values in a sample.
        is_rgb: whether images are converted to RGB.
        opens_files: whether Pillow receives an open file instead of its path.
        transforms: transforms of the image, in order.
        has_user_code: whether `lookup` may call functions of the user.
        watched: the attributes on which this result depends.
    """

    lookup: Callable[[Any], tuple[Any, tuple[Any, ...]]]
    form: SampleForm
    is_rgb: bool
    opens_files: bool
    transforms: tuple[Any, ...]
    has_user_code: bool
    watched: tuple[str, ...]


def separate_image(dataset: Any) -> SeparatedImage | None:
    """Return the image files of a dataset and the other values of its samples; None if that is not possible."""
    kind = type(dataset)
    function = inspect.getattr_static(kind, "__getitem__", None)
    if not isinstance(function, FunctionType) or kind.__getattribute__ is not object.__getattribute__:
        return None
    definition = definition_of(function)
    if definition is None or not hasattr(dataset, "__dict__"):
        return None
    try:
        return _Separation(dataset, function, definition).result()
    except NotEvaluatedError:
        return None


class _PartReader(ast.NodeTransformer):
    """Replaces values of containers, ``name["key"]``, by their variables."""

    def __init__(self, symbols: dict[str, Any]) -> None:
        self._symbols = symbols

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the variable of a value, or an unchanged expression."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                container = self._symbols.get(name)
                part = container.parts.get(key) if isinstance(container, _Container) else None
                if isinstance(part, str):
                    return ast.copy_location(ast.Name(part, ast.Load()), node)
            case _:
                pass
        return self.generic_visit(node)


class _Separation:
    """Evaluates a method with symbols for the image, and collects the other statements.

    Args:
        dataset: the dataset.
        function: its method.
        definition: the syntax tree of the method.
    """

    def __init__(self, dataset: Any, function: FunctionType, definition: ast.FunctionDef) -> None:
        self._dataset = dataset
        self._function = function
        self._definition = definition
        self._self, self._index = (parameter.arg for parameter in definition.args.args)
        stored = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and _is_stored(node)}
        self._locals = stored | {self._self, self._index}
        self._symbols: dict[str, Any] = {}  # variables with the image, or with a container
        self._statements: list[ast.stmt] = []
        self._watched: dict[str, None] = {}
        self._is_opened = self._opens_files = self._has_user_code = False
        self._calls = 0  # of transforms

    def result(self) -> SeparatedImage:
        """Return the result; NotEvaluatedError if the method is not supported."""
        value = self._run(self._definition.body)
        container = value if isinstance(value, _Container) else _Container(tuple, {0: value})
        leaves = list(container.leaves())
        images = [leaf for leaf in leaves if isinstance(leaf, _OpenedImage)]
        if len(images) != 1 or len(images[0].transforms) != self._calls:
            raise NotEvaluatedError
        names = [leaf for leaf in leaves if isinstance(leaf, str)]
        lookup = partial(self._compiled(names), self._dataset)
        template = _template(value, iter(range(len(names))))
        return SeparatedImage(
            lookup,
            SampleForm(template),
            images[0].is_rgb,
            self._opens_files,
            images[0].transforms,
            self._has_user_code,
            tuple(self._watched),
        )

    def _compiled(self, names: list[str]) -> Callable[[Any, Any], tuple[Any, tuple[Any, ...]]]:
        """Return the function of dataset and index that returns the path and the values of variables."""
        code = self._function.__code__
        values = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        result = ast.Return(ast.Tuple([ast.Name(_PATH, ast.Load()), values], ast.Load()))
        definition = copy(self._definition)
        definition.body = [*self._statements, result]
        module = ast.Module([definition], [])
        compiled = compile(ast.fix_missing_locations(module), code.co_filename, "exec", dont_inherit=True)
        found = next(constant for constant in compiled.co_consts if isinstance(constant, CodeType))
        return FunctionType(found, self._function.__globals__)

    def _run(self, statements: list[ast.stmt]) -> Any:
        """Return the value that the statements return; None if they return nothing."""
        for statement in statements:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return self._stored(self._value(value), statement)
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._assign(target, self._value(value), statement)
                case ast.If():
                    found = self._run_if(statement)
                    if found is not None:
                        return found
                case ast.With(items=[ast.withitem(context_expr=context, optional_vars=ast.Name(id=name))]):
                    self._symbols[name] = self._opened_in_block(context)
                    found = self._run(statement.body)
                    if found is not None:
                        return found
                case _:
                    self._keep(statement)
        return None

    def _run_if(self, statement: ast.If) -> Any:
        try:
            is_true = self._constant(statement.test)
        except NotEvaluatedError:  # it differs between samples
            self._keep(statement)
            return None
        return self._run(statement.body if is_true else statement.orelse)

    def _keep(self, statement: ast.stmt) -> None:
        """Keep a statement that does not use the image."""
        self._check_statement(statement)
        self._statements.append(statement)

    def _check_statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                self._check(value)
                self._forget(target)
            case ast.If(test=test, body=body, orelse=others):
                self._check(test)
                for each in (*body, *others):
                    self._check_statement(each)
            case ast.Assert(test=test, msg=None) | ast.Raise(exc=ast.expr() as test, cause=None):
                self._check(test)
            case _:
                raise NotEvaluatedError

    def _forget(self, target: ast.expr) -> None:
        """Check a target of an assignment without the image; its variables are no longer the image."""
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for name in names:
            if not isinstance(name, ast.Name) or name.id == self._self or name.id in self._symbols:
                raise NotEvaluatedError

    def _opened_in_block(self, context: ast.expr) -> Any:
        """Return the value of ``open(path, "rb")`` or of an opened image in a ``with`` statement."""
        match context:
            case ast.Call(func=function, args=[path, ast.Constant(value="rb")], keywords=[]):
                if self._resolved(function) is open:
                    self._check(path)
                    return _OpenedFile(path)
            case _:
                value = self._value(context)
                if isinstance(value, _OpenedImage):
                    return value
        raise NotEvaluatedError

    def _assign(self, target: ast.expr, value: Any, statement: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, value, statement)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)) if name in self._symbols:
                container = self._symbols[name]
                if not isinstance(container, _Container) or container.kind is not dict:
                    raise NotEvaluatedError
                container.parts[key] = self._stored(value, statement)
            case ast.Tuple(elts=targets) if isinstance(value, _Container):
                if value.kind is dict or len(targets) != len(value.parts):
                    raise NotEvaluatedError
                for each, part in zip(targets, value.parts.values(), strict=True):
                    self._assign(each, ast.Name(part, ast.Load()) if isinstance(part, str) else part, statement)
            case _:
                if not isinstance(value, ast.expr):
                    raise NotEvaluatedError
                self._forget(target)
                self._statements.append(ast.copy_location(ast.Assign([target], value), statement))

    def _bind(self, name: str, value: Any, statement: ast.stmt) -> None:
        if name == self._self:
            raise NotEvaluatedError
        if not isinstance(value, ast.expr):
            self._symbols[name] = value
            return
        self._symbols.pop(name, None)
        target = ast.Name(name, ast.Store())
        self._statements.append(ast.copy_location(ast.Assign([target], value), statement))

    def _stored(self, value: Any, statement: ast.AST) -> Any:
        """Return images and containers unchanged, and the name of a new variable for another value."""
        if not isinstance(value, ast.expr):
            return value
        name = f"{_VALUE}_{len(self._statements)}"
        assigned = ast.Assign([ast.Name(name, ast.Store())], value)
        self._statements.append(ast.copy_location(assigned, statement))
        return name

    def _value(self, expression: ast.expr) -> Any:
        """Return the image or a container with it, otherwise the expression."""
        match expression:
            case ast.Name(id=name) if name in self._symbols:
                return self._symbols[name]
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if self._uses_image(expression):
                kind = tuple if isinstance(expression, ast.Tuple) else list
                return self._container(kind, range(len(parts)), parts, expression)
            case ast.Dict(keys=keys, values=parts) if all(isinstance(key, ast.Constant) for key in keys):
                names = [key.value for key in keys if isinstance(key, ast.Constant)]
                return self._container(dict, names, parts, expression)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)) if name in self._symbols:
                container = self._symbols[name]
                part = container.parts.get(key) if isinstance(container, _Container) else None
                if isinstance(part, _OpenedImage | _Container):
                    return part
            case ast.IfExp(test=test, body=body, orelse=other) if self._uses_image(expression):
                return self._value(body if self._constant(test) else other)
            case ast.Call():
                image = self._image(expression)
                if image is not None:
                    return image
            case _:
                pass
        expression = _PartReader(self._symbols).visit(deepcopy(expression))
        self._check(expression)
        return expression

    def _container(self, kind: type, names: Any, parts: list[ast.expr], expression: ast.expr) -> _Container:
        values = [self._stored(self._value(part), expression) for part in parts]
        return _Container(kind, dict(zip(names, values, strict=True)))

    def _uses_image(self, expression: ast.AST) -> bool:
        """Return whether an expression opens the image, or contains variables with it."""
        return any(
            (isinstance(node, ast.Name) and node.id in self._symbols)
            or (isinstance(node, ast.Call) and _opens_image(self._resolved(node.func)) is not None)
            for node in ast.walk(expression)
        )

    def _image(self, call: ast.Call) -> _OpenedImage | None:
        """Return the image that a call opens, converts or transforms; None for other calls."""
        match call:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="convert"), args=[ast.Constant(value="RGB")], keywords=[]
            ):
                image = self._value(owner)
                if isinstance(image, _OpenedImage) and not image.transforms:
                    return replace(image, is_rgb=True)
            case ast.Call(func=function, args=[argument], keywords=[]):
                called = self._resolved(function)
                is_rgb = _opens_image(called)
                if is_rgb is not None:
                    if isinstance(function, ast.Attribute) and self._is_own(function):
                        self._watched[function.attr] = None
                    self._opens_files |= is_rgb  # torchvision's loaders open them
                    return self._open(argument, is_rgb, call)
                if isinstance(function, ast.Attribute) and self._uses_image(argument):
                    image = self._value(argument)
                    if isinstance(image, _OpenedImage) and self._is_transform(function):
                        self._calls += 1
                        return replace(image, transforms=(*image.transforms, called))
            case _:
                pass
        return None

    def _open(self, argument: ast.expr, is_rgb: bool, call: ast.Call) -> _OpenedImage:
        if self._is_opened:
            raise NotEvaluatedError
        self._is_opened = True
        file = self._symbols.get(argument.id) if isinstance(argument, ast.Name) else None
        self._opens_files |= isinstance(file, _OpenedFile)
        path = file.path if isinstance(file, _OpenedFile) else argument
        self._check(path)
        assigned = ast.Assign([ast.Name(_PATH, ast.Store())], path)
        self._statements.append(ast.copy_location(assigned, call))
        return _OpenedImage(is_rgb)

    def _is_transform(self, function: ast.Attribute) -> bool:
        """Return whether a function is an attribute of this instance of the dataset, and remember to watch it."""
        if not self._is_own(function) or function.attr not in vars(self._dataset):
            return False
        self._watched[function.attr] = None
        return callable(vars(self._dataset)[function.attr])

    def _is_own(self, attribute: ast.Attribute) -> bool:
        return isinstance(attribute.value, ast.Name) and attribute.value.id == self._self

    def _resolved(self, expression: ast.expr) -> Any:
        """Return a function, class or module that is the same for all samples; `_MISSING` for other values."""
        match expression:
            case ast.Name(id=name) if name not in self._locals:
                return self._function.__globals__.get(name, getattr(builtins, name, _MISSING))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == self._self:
                return self._attribute(attribute)
            case ast.Attribute(value=owner, attr=attribute):
                module = self._resolved(owner)
                return getattr(module, attribute, _MISSING) if isinstance(module, ModuleType) else _MISSING
            case _:
                return _MISSING

    def _attribute(self, name: str) -> Any:
        """Return an attribute of the dataset without calling a property."""
        found = inspect.getattr_static(type(self._dataset), name, _MISSING)
        if hasattr(found, "__get__"):
            return _MISSING
        return vars(self._dataset).get(name, found)

    def _constant(self, test: ast.expr) -> bool:
        """Return the truth of a condition that depends only on attributes of the dataset."""
        return _truth(self._constant_value(test))

    def _constant_value(self, expression: ast.expr) -> Any:
        match expression:
            case ast.Constant(value=value):
                return value
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == self._self:
                value = self._attribute(attribute)
                if value is _MISSING:
                    raise NotEvaluatedError
                self._watched[attribute] = None
                return value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._constant(operand)
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._constant(part) for part in parts)
            case ast.BoolOp(op=ast.Or(), values=parts):
                return any(self._constant(part) for part in parts)
            case ast.Compare(left=left, ops=[kind], comparators=[right]):
                first, second = self._constant_value(left), self._constant_value(right)
                if isinstance(kind, ast.Is | ast.IsNot) and second is None:
                    return (first is None) == isinstance(kind, ast.Is)
                are_simple = isinstance(first, bool | int | str) and isinstance(second, bool | int | str)
                if isinstance(kind, ast.Eq | ast.NotEq) and are_simple:
                    return (first == second) == isinstance(kind, ast.Eq)
            case _:
                pass
        raise NotEvaluatedError

    def _check(self, expression: ast.expr) -> None:
        """Check that an expression does not use the image, and note calls of functions that may be the user's."""
        uses = 0  # of the dataset, other than for attributes
        for node in ast.walk(expression):
            if isinstance(node, ast.expr) and not isinstance(node, _EXPRESSIONS):
                raise NotEvaluatedError
            match node:
                case ast.Name(id=name) if name in self._symbols:
                    raise NotEvaluatedError
                case ast.Attribute(attr=name) | ast.Name(id=name) if name.startswith("__"):
                    raise NotEvaluatedError  # a class changes private names
                case ast.Name(id=name) if name == self._self:
                    uses += 1
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._self:
                    uses -= 1
                    self._check_value(self._attribute(name))
                case ast.Name(id=name) if name not in self._locals:
                    value = self._resolved(node)
                    is_code = isinstance(value, ModuleType | type) or callable(value)
                    if not is_code and value is not _MISSING:
                        self._check_value(value)
                case ast.Call(func=function):
                    self._check_call(function)
                case _:
                    pass
        if uses:
            self._note_user_code()

    def _check_call(self, function: ast.expr) -> None:
        called = self._resolved(function)
        if _opens_image(called) is not None or called is open:
            raise NotEvaluatedError
        is_known = called is not _MISSING and (
            called in _TENSOR_CLASSES
            or (isinstance(called, type) and issubclass(called, np.generic))
            or any(called is each for each in _SAFE_FUNCTIONS)
        )
        is_method = called is _MISSING and isinstance(function, ast.Attribute) and function.attr in _SAFE_METHODS
        if not (is_known or is_method):
            self._note_user_code()

    def _check_value(self, value: Any) -> None:
        """Note an attribute or global variable whose access may not be possible in several threads."""
        if type(value) in (list, tuple, dict, set, frozenset, range, np.ndarray, np.memmap, torch.Tensor):
            return
        kind = type(value)
        is_table = kind.__module__.split(".")[0] == "pandas" and kind.__name__ in _PANDAS_TYPES
        if not (isinstance(value, _SIMPLE_TYPES) or is_table):
            self._note_user_code()

    def _note_user_code(self) -> None:
        if self._calls:  # it would run before the transforms, with other random numbers
            raise NotEvaluatedError
        self._has_user_code = True


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _truth(value: Any) -> bool:
    """Return the truth of a value; only if that cannot depend on code of the user."""
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict):
        return bool(value)
    kind = type(value)
    if hasattr(kind, "__bool__") or (hasattr(kind, "__len__") and not isinstance(value, torch.nn.Sequential)):
        raise NotEvaluatedError
    return bool(value)


def _opens_image(function: Any) -> bool | None:
    """Return whether a function opens an image as RGB; None if it opens no image."""
    if function is Image.open or function is Image.fromarray:
        return False
    folders = sys.modules.get(_FOLDERS)
    if folders is None or function is _MISSING:
        return None
    if function is folders.default_loader and sys.modules["torchvision"].get_image_backend() == "PIL":
        return True
    return True if function is folders.pil_loader else None


def _template(value: Any, numbers: Iterator[int]) -> Any:
    """Return a sample with `IMAGE` in place of the image, and numbers in place of the other values."""
    if isinstance(value, _OpenedImage):
        return IMAGE
    if not isinstance(value, _Container):
        return next(numbers)
    parts = {name: _template(part, numbers) for name, part in value.parts.items()}
    return parts if value.kind is dict else value.kind(parts.values())
