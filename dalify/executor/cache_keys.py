"""Digests that identify the samples of a cache.

A digest contains everything that affects the result, and nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from typing import Any, cast

import numpy as np

from dalify.base import limits
from dalify.base.errors import CacheError
from dalify.base.narrow import is_array, is_list_or_tuple
from dalify.graph import Branch, Edge, Graph, Node, rule_arguments
from dalify.registry import Reader
from dalify.registry.custom import CustomOperator

# Arguments that do not change results.
_WITHOUT_EFFECT = frozenset({"on_error"})
# Packages whose versions may change pixels.
_PACKAGES = ("dalify", "numba", "numpy", "opencv-python-headless", "pillow", "simplejpeg", "soundfile", "tifffile")
_FILES_LOOKED_AT = 64  # maximum number of files in a folder specified by an argument


def digest_of(edges: Sequence[Edge], cache: Node) -> str:
    """Return the digest of the computation of values from reader entries, 32 hexadecimal digits.

    It does not depend on the entries that a reader returns, or on their order.

    Raises:
        CacheError: the value of an argument cannot be compared.
    """
    nodes = Graph(tuple(edges)).nodes()
    numbers = {node: number for number, node in enumerate(nodes)}
    branches: dict[Branch, int] = {}
    described: list[Any] = []

    def place(edge: Edge | None) -> Any:
        return None if edge is None else [numbers[edge.node], edge.output]

    def branch_number(branch: Branch | None) -> int | None:
        if branch is None:
            return None
        if branch not in branches:
            parent = branch_number(branch.parent)
            branches[branch] = len(branches)
            described.append(["branch", place(branch.condition), branch.taken, parent])
        return branches[branch]

    for node in nodes:
        given = _arguments(node)
        arguments: dict[str, Any] = {}
        for name, value in given.items():
            edge = node.arguments.get(name)
            try:
                arguments[name] = ["edge", place(edge)] if isinstance(edge, Edge) else _plain(value)
            except TypeError:
                raise CacheError(
                    f"the values before fn.cache cannot be cached: the argument {name} of {node.operator.public_name} "
                    f"is a {type(value).__name__}, whose value cannot be compared.",
                    line=cache.line,
                    operator=cache.operator.public_name,
                ) from None
        inputs = [place(edge) for edge in node.inputs]
        described.append([node.operator.name, inputs, arguments, node.output_count, branch_number(node.branch)])
        if isinstance(node.operator, CustomOperator):
            described.append(_custom(node.operator, cache))
    text = [described, [place(edge) for edge in edges], asdict(limits.current()), _versions()]
    return hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()[:32]


def _custom(operator: CustomOperator, cache: Node) -> list[Any]:
    """Return the contents of the functions of a custom operator, which may differ between programs."""
    try:
        return [_function(function, set()) for function in operator.functions()]
    except TypeError as error:
        raise CacheError(
            f"the values before fn.cache cannot be cached: the functions of {operator.public_name} use a {error}, "
            "whose value cannot be compared.",
            line=cache.line,
            operator=cache.operator.public_name,
        ) from None


def _arguments(node: Node) -> Mapping[str, Any]:
    """Return the arguments that affect the results."""
    given = rule_arguments(node)
    operator = node.operator
    if not isinstance(operator, Reader):
        return {name: value for name, value in given.items() if name not in _WITHOUT_EFFECT}
    identity = operator.entry_identity
    names = () if identity is None else identity.names
    named = {name: given[name] for name in (*operator.read_function.names, *names)}
    states = [_state_of_file(given[name]) for name in names if isinstance(given[name], str)]
    return {**named, "files": tuple(states)}


def _state_of_file(path: str) -> str:
    """Return size and time of a file, or of the files in a folder; "" for other strings."""
    if not path or "://" in path or not os.path.exists(path):  # noqa: PTH110 -- any text
        return ""
    paths = [path]
    if os.path.isdir(path):  # noqa: PTH112
        with suppress(OSError):
            paths = sorted(entry.path for entry in os.scandir(path) if entry.is_file())[:_FILES_LOOKED_AT]
    states = [os.stat(each) for each in paths]  # noqa: PTH116
    return " ".join(f"{state.st_size} {state.st_mtime_ns}" for state in states)


def _versions() -> list[str]:
    found: list[str] = []
    for package in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{package} {importlib.metadata.version(package)}")
    return found


def _plain(value: Any) -> Any:
    """Return JSON-ready data that are equal only for equal values.

    Raises:
        TypeError: an object whose value cannot be compared.
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Enum):
        return [type(value).__name__, int(value.value)]
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, bytes):
        return ["bytes", hashlib.sha256(value).hexdigest()]
    if isinstance(value, np.generic):
        value = np.asarray(cast("Any", value))
    if is_array(value):
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise TypeError
        return ["array", array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if is_list_or_tuple(value):
        return [type(value).__name__, *map(_plain, value)]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(map(_plain, cast("set[Any]", value)), key=repr)]
    if isinstance(value, Mapping):
        return ["map", *([_plain(key), _plain(item)] for key, item in cast("Mapping[Any, Any]", value).items())]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *([item.name, _plain(getattr(value, item.name))] for item in fields(value))]
    if isinstance(value, np.dtype):
        return ["dtype", value.str]
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        return ["named", getattr(value, "__module__", ""), value.__name__]
    if isinstance(value, types.FunctionType):
        return _function(value, set())
    if isinstance(value, types.MethodType):
        return ["method", _plain(value.__self__), _function(value.__func__, set())]
    raise TypeError(type(value).__name__)


def _function(function: Callable[..., Any], seen: set[Any]) -> Any:
    """Return the contents of a Python function: code, closure, and the functions and constants that it uses.

    Raises:
        TypeError: the function depends on an object whose value cannot be compared.
    """
    if not isinstance(function, types.FunctionType):
        return _plain(function)
    if function in seen:
        return ["again", function.__qualname__]
    seen.add(function)
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    named = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    parts = [*closed, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *named.values()]
    return [
        "function",
        _code(function.__code__),
        sorted(named),
        *(_function(part, seen) if isinstance(part, types.FunctionType) else _plain(part) for part in parts),
    ]


def _names(code: types.CodeType) -> list[str]:
    inner = [name for item in code.co_consts if isinstance(item, types.CodeType) for name in _names(item)]
    return sorted({*code.co_names, *inner})


def _code(code: types.CodeType) -> Any:
    constants = [_code(item) if isinstance(item, types.CodeType) else _plain_constant(item) for item in code.co_consts]
    return [code.co_name, hashlib.sha256(code.co_code).hexdigest(), constants, list(code.co_names), code.co_argcount]


def _plain_constant(value: Any) -> Any:
    return repr(value) if isinstance(value, complex) or value is Ellipsis else _plain(value)
