"""Modules created at run time, under DALI's import path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from dalify.base.errors import ArgumentValueError

__all__ = ["get_submodule"]


def get_submodule(root: ModuleType | str, path: str | Sequence[str]) -> ModuleType:
    """Return a submodule, which is imported or, if there is none, created.

    Args:
        root: the parent module, or its name.
        path: dotted name of the submodule, or a list of names.

    Raises:
        ArgumentValueError: a name in the path is not a module.
    """
    module = sys.modules[root] if isinstance(root, str) else root
    for part in path.split(".") if isinstance(path, str) and path else path:
        name = f"{module.__name__}.{part}"
        found = getattr(module, part, None)
        if found is None:
            try:
                found = importlib.import_module(name)
            except ModuleNotFoundError:
                found = sys.modules[name] = ModuleType(name)
            setattr(module, part, found)
        elif not isinstance(found, ModuleType):
            raise ArgumentValueError(f"{name} must be a module; got {found!r}.")
        module = found
    return module
