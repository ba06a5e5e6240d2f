"""Lookup of operators by name; the name is the path of the file.

``decoders.image`` is defined in ``dalify/operators/decoders/image.py``. Files are imported when their operator is
first used, which keeps ``import dalify`` fast. Operators of users are added by ``dalify.custom``.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from dalify.base.errors import OperatorDefinitionError, UnknownOperatorError, suggestion
from dalify.base.fork_gate import working
from dalify.base.fork_lock import ForkLock
from dalify.base.garbage import imported
from dalify.base.interrupts import kept_interrupts
from dalify.registry.legacy import HIDDEN_NAMES, LEGACY_NAMES
from dalify.registry.operator import Operator

# os.path: importing pathlib takes longer than importing this whole package.
_ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "operators")  # noqa: PTH118, PTH120
_loaded: dict[str, Operator] = {}
_names: list[str] = []
_added: dict[str, Operator] = {}
_watchers: list[Callable[[str], None]] = []
_revision = 0
_lock = ForkLock()


def names() -> list[str]:
    """Return the sorted names of all operators; names of internal ones start with an underscore.

    Raises:
        ImportError: the package is in an archive.
    """
    if not _names:
        found: list[str] = []
        for folder, _, files in os.walk(_ROOT):
            prefix = os.path.relpath(folder, _ROOT).replace(os.sep, ".")
            prefix = "" if prefix == "." else prefix + "."
            found += [prefix + file[:-3] for file in files if file.endswith(".py") and file != "__init__.py"]
        if not found:
            raise ImportError(
                f"dalify finds its operators by their files, but there are none in {_ROOT!r}. It cannot be imported "
                "from a zip archive: install it, or unpack the archive."
            )
        _names[:] = sorted(found)
    return [*_names, *_added] if _added else _names


def namespaces() -> set[str]:
    """Return the names of the folders: ``decoders``, ``experimental``, ``experimental.readers`` …."""
    found: set[str] = set()
    for name in [*names(), *LEGACY_NAMES, *HIDDEN_NAMES]:
        parts = name.split(".")[:-1]
        found.update(".".join(parts[: depth + 1]) for depth in range(len(parts)))
    return found


def find(name: str) -> Operator:
    """Return an operator by its name, e.g. ``decoders.image``.

    Raises:
        UnknownOperatorError: there is no such operator.
    """
    found = _loaded.get(name)
    if found is not None:
        return found
    with _lock, working():
        if name not in names():
            public = [known for known in [*names(), *LEGACY_NAMES] if not known.startswith("_")]
            raise UnknownOperatorError(
                f"dalify has no operator fn.{name}.{suggestion(name, public)}",
                hint="If it is a custom operator, import the module that defines it.",
            )
        with kept_interrupts():
            module = imported(f"dalify.operators.{name}")
        operator = getattr(module, name.rpartition(".")[2])
        assert isinstance(operator, Operator), f"dalify bug: operators/{name} does not define an operator with its name"
        _loaded[name] = operator
        return operator


def resolve(name: str) -> str:
    """Return the current name of an operator: the name itself, or the replacement of a deprecated or hidden one."""
    return LEGACY_NAMES.get(name) or HIDDEN_NAMES.get(name, name)


def added(name: str) -> Operator | None:
    """Return the operator of a user with this name, or None."""
    return _added.get(name)


def revision() -> int:
    """Return a number that changes whenever an operator is added or removed, for caches of names."""
    return _revision


def watch(changed: Callable[[str], None]) -> None:
    """Call a function with the name of each operator that is added or removed from now on."""
    _watchers.append(changed)


def add(operator: Operator, *, replace: bool = False) -> None:
    """Add the operator of a user.

    Raises:
        OperatorDefinitionError: the name belongs to another operator or to a namespace.
    """
    name = operator.name
    with _lock:
        if name in _added and not replace:
            raise OperatorDefinitionError(
                f"{operator.public_name} exists already: {_added[name]!r} was added before.",
                hint="Choose another name, remove the other one with dalify.custom.remove, or write replace=True.",
            )
        for known in [*names(), *LEGACY_NAMES, *HIDDEN_NAMES]:
            if _plain(known) == _plain(name) and not (known == name and known in _added):
                raise OperatorDefinitionError(
                    f"{operator.public_name} cannot be added: fn.{known} is an operator of "
                    f"{'a user' if known in _added else 'dalify'}; names that differ only in underscores are the same "
                    "name in ops.",
                    hint=f"Choose another name, for instance mylab.{name.rpartition('.')[2]}.",
                )
            if known.startswith(f"{name}.") or name.startswith(f"{known}."):
                raise OperatorDefinitionError(
                    f"{operator.public_name} cannot be added: fn.{known} exists, and an operator and a namespace "
                    "cannot have the same name.",
                    hint="Choose another name.",
                )
        _added[name] = _loaded[name] = operator
    _changed(name)


def remove(name: str) -> None:
    """Remove the operator of a user. Graphs that contain it keep it.

    Raises:
        UnknownOperatorError: no operator of this name was added.
    """
    with _lock:
        if name not in _added:
            raise UnknownOperatorError(
                f"fn.{name} was not added with dalify.custom.{suggestion(name, _added)}",
            )
        del _added[name], _loaded[name]
    _changed(name)


def _changed(name: str) -> None:
    global _revision
    _revision += 1
    for changed in _watchers:
        changed(name)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
