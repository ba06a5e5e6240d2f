"""Modules made at run time, under DALI's import path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from dalify.base.errors import ArgumentValueError

__all__ = ["get_submodule"]


def get_submodule(root: ModuleType | str, path: str | Sequence[str]) -> ModuleType:
    """Return a module below another one; it is imported, or made anew where there is none.

    Args:
        root: the module to begin at, or its name.
        path: names of modules with dots between them, or a list of them.

    Raises:
        ArgumentValueError: a name on the way belongs to something that is no module.
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
            raise ArgumentValueError(f"{name} is no module but {found!r}.")
        module = found
    return module
