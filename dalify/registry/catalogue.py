"""Lookup of operators by name; the name is the path of the file.

``decoders.image`` is defined in ``dalify/operators/decoders/image.py``. Files are imported when their operator is
first used, which keeps ``import dalify`` fast.
"""

from __future__ import annotations

import importlib
import os

from dalify.base.errors import UnknownOperatorError, suggestion
from dalify.base.fork_gate import working
from dalify.base.fork_lock import ForkLock
from dalify.base.interrupts import kept_interrupts
from dalify.registry.legacy import HIDDEN_NAMES, LEGACY_NAMES
from dalify.registry.operator import Operator

__all__ = ["find", "names", "namespaces", "resolve"]

# os.path: importing pathlib takes longer than importing this whole package.
_ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "operators")  # noqa: PTH118, PTH120
_loaded: dict[str, Operator] = {}
_names: list[str] = []
_lock = ForkLock()


def names() -> list[str]:
    """Return the sorted names of all operators; names of internal ones start with an underscore."""
    if not _names:
        found: list[str] = []
        for folder, _, files in os.walk(_ROOT):
            prefix = os.path.relpath(folder, _ROOT).replace(os.sep, ".")
            prefix = "" if prefix == "." else prefix + "."
            found += [prefix + file[:-3] for file in files if file.endswith(".py") and file != "__init__.py"]
        _names[:] = sorted(found)
    return _names


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
            raise UnknownOperatorError(f"dalify has no operator fn.{name}.{suggestion(name, public)}")
        with kept_interrupts():
            module = importlib.import_module(f"dalify.operators.{name}")
        operator = getattr(module, name.rpartition(".")[2])
        assert isinstance(operator, Operator), f"dalify bug: operators/{name} does not define an operator with its name"
        _loaded[name] = operator
        return operator


def resolve(name: str) -> str:
    """Return the current name of an operator: the name itself, or the replacement of a deprecated or hidden one."""
    return LEGACY_NAMES.get(name) or HIDDEN_NAMES.get(name, name)
