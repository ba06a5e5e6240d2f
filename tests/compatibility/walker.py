"""Compares all public names of the real DALI with dalify, and lists missing and different ones.

Modules, classes, functions, constants, enumerations; methods, properties, operators of Python; parameters with their
order, kind and default. What dalify has beyond DALI is no difference.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dalify.registry import Operator

THEIRS = "nvidia.dali"
OURS = "dalify"
# Members that Python uses implicitly for every object; programs do not name them.
_OF_EVERY_OBJECT = frozenset(dir(object)) | {"__dict__", "__weakref__", "__module__", "__annotations__", "__slots__"}
_INTERNAL_DUNDERS = frozenset(
    {"__call__", "__del__", "__class_getitem__", "__orig_bases__", "__parameters__", "__match_args__"}
    | {"__slotnames__"}
    | {"__dataclass_fields__", "__dataclass_params__", "__static_attributes__", "__firstlineno__", "__members__"}
    | {
        "__entries",
        "__final__",
        "__slotnames__",
        "__abstractmethods__",
        "__getstate__",
        "__setstate__",
        "__replace__",
        "__getattr__",
    }
)
_SCALARS = (bool, int, float, str, type(None))


class Difference(NamedTuple):
    """One thing that is not as in DALI.

    Attributes:
        path: where, without the name of the package: ``pipeline.Pipeline.run.cuda_stream``.
        text: what.
    """

    path: str
    text: str


def walk() -> Iterator[Difference]:
    """Yield all differences, in a fixed order. The real DALI has to be installed."""
    broken = _import_all()
    for name in sorted(sys.modules):
        path = name.removeprefix(THEIRS).removeprefix(".")
        if name.startswith(THEIRS + ".") and not _is_private(path):
            with suppress(ImportError):
                importlib.import_module(f"{OURS}.{path}")  # a module is an attribute of its package after its import
    for path, error in broken.items():
        yield Difference(path, f"cannot be imported here: {error}")
    for name in sorted(sys.modules):
        path = name.removeprefix(THEIRS).removeprefix(".")
        if not (name == THEIRS or name.startswith(THEIRS + ".")) or _is_private(path):
            continue
        theirs = sys.modules[name]
        try:
            ours = importlib.import_module(f"{OURS}.{path}" if path else OURS)
        except ImportError:
            yield Difference(path, "no such module")
            continue
        yield from _compare_modules(path, theirs, ours)


def _import_all() -> dict[str, str]:
    root = importlib.import_module(THEIRS)
    broken: dict[str, str] = {}
    pending = [root]
    while pending:
        package = pending.pop()
        for name, is_package in _parts_of(package):
            path = name.removeprefix(THEIRS + ".")
            if _is_private(path):
                continue
            try:
                module = importlib.import_module(name)
            except (ImportError, RuntimeError) as error:
                broken[path] = str(error).partition("\n")[0]
                continue
            if is_package:
                pending.append(module)
    return dict(sorted(broken.items()))


def _parts_of(package: ModuleType) -> Iterator[tuple[str, bool]]:
    """Yield the modules in a package, and whether they are packages; folders without ``__init__.py`` are some, too."""
    found: set[str] = set()
    for item in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        found.add(item.name)
        yield item.name, item.ispkg
    for folder in package.__path__:
        for child in sorted(Path(folder).iterdir()):
            name = f"{package.__name__}.{child.name}"
            if name not in found and child.name.isidentifier() and any(child.glob("*.py")):
                yield name, True


def _is_private(path: str) -> bool:
    return any(part.startswith("_") for part in path.split("."))


def _compare_modules(path: str, theirs: ModuleType, ours: ModuleType) -> Iterator[Difference]:
    prefix = f"{path}." if path else ""
    for name, value in sorted(vars(theirs).items()):
        is_version = name in ("__version__", "__cuda_version__")
        if (name.startswith("_") and not is_version) or not _is_of_dali(value):
            continue
        full = f"{prefix}{name}"
        if not hasattr(ours, name):
            yield Difference(full, "missing")
            continue
        if is_version:
            continue
        mine = getattr(ours, name)
        if (
            inspect.isclass(value)
            and value.__module__ != theirs.__name__
            and hasattr(sys.modules.get(value.__module__), value.__name__)
            and not _is_private(value.__module__.removeprefix(THEIRS + "."))
        ):
            continue  # compared where it is at home
        yield from _compare(full, value, mine)


def _is_of_dali(value: Any) -> bool:
    """Return whether DALI defines a member of a module; False for imported members."""
    if isinstance(value, ModuleType):
        return False
    home = getattr(value, "__module__", None)
    if inspect.isclass(value) or callable(value):
        return isinstance(home, str) and home.startswith(THEIRS)
    kind = type(value)
    return kind.__module__.startswith(THEIRS) or kind in _SCALARS or kind in (list, tuple, dict, set)


def _compare(path: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    if inspect.isclass(theirs):
        if not (inspect.isclass(ours) or callable(ours)):
            yield Difference(path, f"a class, here {type(ours).__name__}")
        elif not inspect.isclass(ours):
            yield from _compare_signatures(path, theirs, ours)
        else:
            yield from _compare_classes(path, theirs, ours)
    elif inspect.isroutine(theirs):
        if not callable(ours):
            yield Difference(path, "a function, here it cannot be called")
        else:
            yield from _compare_signatures(path, theirs, ours)
    elif not same_value(theirs, ours):
        yield Difference(path, f"{theirs!r}, here {ours!r}")


def _enum_number(value: Any) -> int | None:
    """Return the number of a member of an enumeration of Python or of pybind11; None for other values."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, int) else None
    is_pybind = hasattr(type(value), "__members__") and hasattr(value, "name")
    return int(value) if is_pybind else None


def _members_of(kind: type) -> dict[str, int | str] | None:
    """Return the members of an enumeration of Python or of pybind11; None for other classes."""
    members = getattr(kind, "__members__", None)
    if members is None:
        return None
    return {name: member.value for name, member in members.items()}


def _compare_classes(path: str, theirs: type, ours: type) -> Iterator[Difference]:
    members = _members_of(theirs)
    if members is not None:
        mine = _members_of(ours) or {}
        for name, value in members.items():
            is_equal = mine.get(name) == value if isinstance(value, (int, str)) else name in mine
            if not is_equal:
                yield Difference(f"{path}.{name}", f"{value!r}, here {mine.get(name)!r}")
        return
    if issubclass(theirs, BaseException):
        for base in theirs.__mro__:
            if base.__module__ == "builtins" and not issubclass(ours, base):
                yield Difference(path, f"is a {base.__name__}, here not")
    operator = getattr(ours, "operator", None)
    for name, value in sorted(_class_members(theirs).items()):
        full = f"{path}.{name}"
        if isinstance(operator, Operator) and name in ("__init__", "__call__"):
            yield from _compare_operators(full, value, ours if name == "__init__" else ours.__call__, operator)
            continue
        mine = inspect.getattr_static(ours, name, None)
        if mine is None and not hasattr(ours, name):
            yield Difference(full, "missing")
        elif isinstance(value, property) and callable(mine):
            yield Difference(full, "a property, here a method")
        elif not isinstance(value, property) and callable(value) and isinstance(mine, property):
            yield Difference(full, "a method, here a property")
        elif callable(value) or isinstance(value, (staticmethod, classmethod)):
            made = ours if name == "__init__" else getattr(ours, name)
            yield from _compare_signatures(full, getattr(theirs, name), made)
        elif isinstance(value, _SCALARS) and not same_value(value, mine):
            yield Difference(full, f"{value!r}, here {mine!r}")


def _class_members(kind: type) -> dict[str, Any]:
    """Return what a class and its bases in DALI define and programs use: public names, and Python's operators."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith(THEIRS):
            continue
        for name, value in vars(base).items():
            if name in _INTERNAL_DUNDERS and name not in ("__call__",):
                continue
            if name == "__init__" or (name not in _OF_EVERY_OBJECT and (_is_dunder(name) or name[0] != "_")):
                found[name] = value
    return found


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


# -- signatures --------------------------------------------------------------------------------------------------------


def _signature(function: Any) -> inspect.Signature | None:
    """Return a signature, also of compiled functions, which have it in the first line of their documentation."""
    text = getattr(function, "__doc__", None) or ""
    name = getattr(function, "__name__", "")
    if _is_compiled(function):
        if "Overloaded function" in text:
            return None
        found = re.match(rf"{re.escape(name)}\((.*)\) -> ", text.strip())
        return None if found is None else _parsed(found[1])
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _is_compiled(function: Any) -> bool:
    return inspect.isbuiltin(function) or type(function).__name__ in ("instancemethod", "builtin_function_or_method")


def _parsed(text: str) -> inspect.Signature:
    """Parse what pybind11 writes: ``self: T, ptr: object, stream: int | None = None``."""
    parts: list[str] = []
    depth = 0
    for letter in text:
        if letter == "," and not depth:
            parts.append("")
            continue
        depth += (letter in "[(<") - (letter in "])>")
        if not parts:
            parts.append("")
        parts[-1] += letter
    parameters: list[inspect.Parameter] = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in parts:
        head, has_default, default = part.partition(" = ")
        name = head.partition(":")[0].strip()
        if name == "self":
            continue
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        if name.startswith("*"):
            kinds = inspect.Parameter
            parameters.append(kinds(name.lstrip("*"), kinds.VAR_KEYWORD if "**" in name else kinds.VAR_POSITIONAL))
            continue
        value = _default_of(default) if has_default else inspect.Parameter.empty
        is_nameless = re.fullmatch(r"arg\d+", name) is not None
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY if is_nameless else kind, default=value)
        )
    try:
        return inspect.Signature(parameters)
    except ValueError:  # names after nameless ones
        return inspect.Signature([item.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for item in parameters])


def _default_of(text: str) -> Any:
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text.strip("'\"")


def _compare_signatures(path: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    operator = getattr(ours, "operator", None)
    if isinstance(operator, Operator):
        yield from _compare_operators(path, theirs, ours, operator)
        return
    wanted, found = _signature(theirs), _signature(ours)
    if wanted is None or found is None:
        return
    yield from compare_parameters(path, _without_self(wanted), _without_self(found))


def _without_self(signature: inspect.Signature) -> list[inspect.Parameter]:
    parameters = list(signature.parameters.values())
    return parameters[1:] if parameters and parameters[0].name in ("self", "cls") else parameters


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def compare_parameters(
    path: str, wanted: list[inspect.Parameter], found: list[inspect.Parameter]
) -> Iterator[Difference]:
    """Yield the differences for calls that DALI's parameters allow.

    Args:
        path: of the function.
        wanted: DALI's parameters, without self.
        found: ours.
    """
    kinds = {item.kind for item in found}
    by_name = {item.name: item for item in found}
    positional = [item for item in found if item.kind in _POSITIONAL]
    for index, item in enumerate(wanted):
        full = f"{path}.{item.name}"
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            if item.kind not in kinds:
                yield Difference(full, f"takes {item}, here not")
            continue
        if item.kind in _POSITIONAL:
            mine = positional[index] if index < len(positional) else None
            if mine is None:
                if inspect.Parameter.VAR_POSITIONAL in kinds and item.kind is item.POSITIONAL_ONLY:
                    continue
                yield Difference(full, f"parameter {index}, here not by position")
                continue
            if item.kind is item.POSITIONAL_OR_KEYWORD and mine.name != item.name:
                yield Difference(full, f"parameter {index}, here it is {mine.name}")
                continue
            if item.kind is item.POSITIONAL_OR_KEYWORD and mine.kind is mine.POSITIONAL_ONLY:
                yield Difference(full, "by name or position, here only by position")
        else:
            mine = by_name.get(item.name)
            if mine is None:
                yield Difference(full, "no such parameter")
                continue
        if (item.default is item.empty) != (mine.default is mine.empty):
            yield Difference(full, f"{'required' if item.default is item.empty else 'optional'}, here not")
        elif not same_value(item.default, mine.default):
            yield Difference(full, f"default {item.default!r}, here {mine.default!r}")
    names = {item.name for item in wanted}
    count = sum(1 for item in wanted if item.kind in _POSITIONAL)
    for index, item in enumerate(found):
        is_extra = item.name not in names if item.kind is item.KEYWORD_ONLY else index >= count
        needs_value = item.default is item.empty and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        if is_extra and needs_value:
            yield Difference(f"{path}.{item.name}", "required here, and not DALI's")


def _compare_operators(path: str, theirs: Any, ours: Any, operator: Operator) -> Iterator[Difference]:
    """Compare operators, as functions and as classes; ours take old names of arguments, which are in no signature."""
    wanted, found = _signature(theirs), _signature(ours)
    if wanted is None or found is None:
        return
    taken = operator.parameters
    is_dynamic = path.startswith("experimental.dynamic.")
    parameters = [
        item.replace(default=_any_default(item, found)) if is_dynamic else item
        for item in _without_self(wanted)
        if item.name not in operator.old_arguments and item.name not in operator.retired_arguments - set(taken)
        if not item.name.startswith("_") and item.kind is not item.VAR_KEYWORD  # every argument is known by its name
    ]
    yield from compare_parameters(path, parameters, _without_self(found))


def _any_default(item: inspect.Parameter, found: inspect.Signature) -> Any:
    """Return our default where DALI has None: in dynamic mode it declares None for every argument."""
    mine = found.parameters.get(item.name)
    return (
        mine.default if item.default is None and mine is not None and mine.default is not mine.empty else item.default
    )


def same_value(theirs: Any, ours: Any) -> bool:
    """Compare values; those of enumerations by their names, for the classes are two."""
    if theirs is inspect.Parameter.empty or ours is inspect.Parameter.empty:
        return theirs is ours
    if theirs is None or ours is None:
        if theirs is not None and not isinstance(theirs, (*_SCALARS, list, tuple)):
            return False
        return theirs is ours or theirs == [] or ours == ()  # DALI's empty list is an argument that was not given
    if not isinstance(theirs, (*_SCALARS, tuple, list)):
        if not hasattr(theirs, "name"):
            return True  # an object that only DALI has
        return getattr(ours, "name", None) == theirs.name
    if isinstance(theirs, str) and hasattr(ours, "name"):
        return theirs.strip("<>").split(":")[0].rpartition(".")[2] == ours.name
    as_list = list(ours) if isinstance(ours, (tuple, list)) else [ours]
    other = list(theirs) if isinstance(theirs, (tuple, list)) else [theirs]
    if as_list == other:
        return True
    if len(as_list) == len(other) and other and hasattr(other[0], "name"):
        return all(same_value(a, b) for a, b in zip(other, as_list, strict=True))
    try:
        return len(as_list) == len(other) and bool(np.allclose(as_list, other, rtol=1e-6, atol=5e-7))
    except (TypeError, ValueError):
        return False
