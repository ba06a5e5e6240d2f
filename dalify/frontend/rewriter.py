"""``rewrite(function)`` converts a function so that its conditions work on graph values.

The new code is compiled with the user's file name and line numbers, so that tracebacks, breakpoints and messages show
the user's source. It uses the function's own globals and closure cells, so that later changes of them have an effect.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
import os
import re
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from dalify.frontend.mark import MARK
from dalify.frontend.overloads import Overloads
from dalify.frontend.source import Definition, find_definition
from dalify.frontend.syntax import OVERLOADS, gast, literal, statement
from dalify.frontend.transform import OPERAND, transformed

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

_PACKAGE_FOLDER = str(Path(__file__).resolve().parent.parent) + os.sep
_LIBRARY_FOLDERS = tuple(
    sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
_FUTURE_FLAGS: int = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)
# Python 3.14 evaluates annotations lazily; a name in them may not be defined yet.
_ANNOTATIONS = ("__annotate__", "__type_params__") if sys.version_info >= (3, 14) else ("__annotations__",)
# By id, because code objects of different files may be equal. The weak reference removes the entry with the object.
_rewritten: dict[int, tuple[weakref.ref[CodeType], CodeType | None]] = {}


def is_rewritable(function: Any) -> bool:
    """Return whether `rewrite` would change a function that user code calls.

    Returns:
        False for classes, built-ins, functions of dalify, the standard library and installed packages, coroutines,
        functions marked with `do_not_convert`, functions that are rewritten already or need no rewriting, and functions
        without source.
    """
    inner = _plain_function(function)
    return inner is not None and not is_foreign_code(inner.__code__) and _rewritten_code(inner) is not None


def rewrite(function: _Callable) -> _Callable:
    """Return a function that traces conditions on graph values.

    Args:
        function: function, method, ``functools.partial`` or object with a ``__call__``. It is rewritten even if it is
            library code; functions that it calls are rewritten when they are called, unless they are library code.

    Returns:
        A callable with the same signature, defaults, attributes, globals and closure; ``function`` itself if there
        is nothing to rewrite or no source.
    """
    inner = _plain_function(function)
    return function if inner is None else _with_function(function, _build(inner))


def _convert(package: str, function: Any) -> Any:
    """Rewrite a callable that a rewritten function of ``package`` calls."""
    inner = _plain_function(function)
    if inner is None or (is_foreign_code(inner.__code__) and not _is_of(inner, package)):
        return function
    return _with_function(function, _build(inner))


def _plain_function(function: object) -> FunctionType | None:
    """Return the Python function of a callable; None if there is none or it is marked."""
    if type(function) is MethodType:
        return _plain_function(function.__func__)
    if type(function) is functools.partial:
        return _plain_function(function.func)
    if type(function) is not FunctionType:
        if isinstance(function, (type, types.BuiltinFunctionType)) or MARK in getattr(function, "__dict__", ()):
            return None
        method = inspect.getattr_static(type(function), "__call__", None)
        return _plain_function(method) if type(method) is FunctionType else None
    is_marked = MARK in function.__dict__
    return None if is_marked or OVERLOADS in function.__code__.co_freevars else function


def _with_function(function: Any, inner: FunctionType) -> Any:
    """Return a callable like ``function`` with another Python function."""
    if type(function) is FunctionType:
        return inner
    if type(function) is MethodType:
        return MethodType(_with_function(function.__func__, inner), function.__self__)
    if type(function) is functools.partial:
        return functools.partial(_with_function(function.func, inner), *function.args, **function.keywords)
    return MethodType(inner, function)


def is_foreign_code(code: CodeType) -> bool:
    """Return whether code belongs to dalify, the standard library or an installed package."""
    own_or_installed = (_PACKAGE_FOLDER, *_LIBRARY_FOLDERS, "<frozen")
    return code.co_filename.startswith(own_or_installed) or _INSTALLED.search(code.co_filename) is not None


def _is_of(function: FunctionType, package: str) -> bool:
    """Return whether a function belongs to the package of the pipeline definition, which may be installed."""
    is_own = function.__code__.co_filename.startswith(_PACKAGE_FOLDER)
    return not is_own and _package(function) == package


def _package(function: FunctionType) -> str:
    return (function.__module__ or "").partition(".")[0]


def _build(function: FunctionType) -> FunctionType:
    code = _rewritten_code(function)
    if code is None:
        return function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[OVERLOADS] = CellType(Overloads(function, functools.partial(_convert, _package(function))))
    closure = tuple(cells[name] for name in code.co_freevars)
    result = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    for name in _ANNOTATIONS:
        setattr(result, name, getattr(function, name))
    result.__qualname__ = function.__qualname__
    result.__module__ = function.__module__
    result.__doc__ = function.__doc__
    result.__dict__.update(function.__dict__)
    return result


def _rewritten_code(function: FunctionType) -> CodeType | None:
    code = function.__code__
    known = _rewritten.get(id(code))
    if known is None:
        key = id(code)
        linecache.lazycache(code.co_filename, function.__globals__)  # the source may be in a zip file
        result = _compile(code)
        reference = weakref.ref(code, lambda _, forget=_rewritten.pop: forget(key, None))
        known = _rewritten[key] = (reference, result)
    return known[1]


def _compile(code: CodeType) -> CodeType | None:
    is_asynchronous = code.co_flags & 0x280  # CO_COROUTINE | CO_ASYNC_GENERATOR
    found = None if is_asynchronous else find_definition(code)
    if found is None:
        return None
    tree = gast.gast_to_ast(_module(found, code))
    assert isinstance(tree, ast.Module), "dalify bug: a module became another node"
    ast.fix_missing_locations(tree)
    module = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE_FLAGS, dont_inherit=True)
    result = _find(module, code)
    if OVERLOADS not in result.co_freevars:
        return None  # no construct to rewrite
    return _renamed(result, code.co_qualname, code.co_name)


def _module(found: Definition, code: CodeType) -> Any:
    """Return a module with the rewritten definition, in a function with its free variables and in its class."""
    location = found.node
    definition = transformed(copy.deepcopy(location), found.class_name)
    arguments = definition.args
    arguments.defaults = [literal(None, location) for _ in arguments.defaults]
    arguments.kw_defaults = [default and literal(None, location) for default in arguments.kw_defaults]
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    if isinstance(definition, gast.Lambda):
        definition = gast.copy_location(gast.Expr(definition), location)
    else:
        definition.returns = None
    free = [statement(f"{name} = None", location) for name in (*code.co_freevars, OVERLOADS)]
    if isinstance(definition, gast.FunctionDef) and definition.name not in code.co_freevars:
        # So that a function that calls itself does not find its name in this scope.
        free.append(statement(f"global {definition.name}", location))
    factory = statement("def dalify_factory():\n    BODY", location, BODY=[*free, definition])
    if found.class_name:
        factory = statement(f"class {found.class_name}:\n    BODY", location, BODY=[factory])
    return gast.Module([factory], [])


def _find(code: CodeType, wanted: CodeType) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == "dalify_factory":
                inner = [part for part in constant.co_consts if isinstance(part, CodeType)]
                return next(part for part in inner if part.co_name == wanted.co_name)
            return _find(constant, wanted)  # the enclosing class
    raise AssertionError("dalify bug: the rewritten function is not in its module")


def _renamed(code: CodeType, qualified: str, name: str) -> CodeType:
    """Return code, including nested code objects, with the user's names."""
    constants: list[object] = []
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            constants.append(constant)
        elif constant.co_varnames[:1] == (OPERAND,):
            constants.append(_renamed(constant, qualified, name).replace(co_name=name))
        else:
            inner = qualified + constant.co_qualname.removeprefix(code.co_qualname)
            constants.append(_renamed(constant, inner, constant.co_name))
    return code.replace(co_consts=tuple(constants), co_qualname=qualified)
