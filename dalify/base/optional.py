"""Packages that are loaded when first used.

``import dalify`` has to be quick and must work without the heavy packages; a proxy stands for each of them at module
level, so that files import at the top like any other and pay on first use only.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dalify.base.errors import MissingPackageError
from dalify.base.fork_gate import working
from dalify.base.interrupts import kept_interrupts

__all__ = ["LazyModule", "fsspec", "is_loaded", "require", "torch"]


class LazyModule(ModuleType):
    """A module that is imported when an attribute of it is first asked for.

    Args:
        name: import name.
        purpose: what needs it, for the error message.
        install: what to install, e.g. ``dalify[video]``; the import name where empty.
    """

    def __init__(self, name: str, purpose: str, install: str = "") -> None:
        super().__init__(name)
        self.__dict__["_purpose"] = purpose
        self.__dict__["_install"] = install or name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute != "__version__":
            raise AttributeError(attribute)  # inspection, e.g. by doctest or inspect, must not load the package
        module = require(self)
        self.__dict__.update({key: value for key, value in module.__dict__.items() if not key.startswith("__")})
        return getattr(module, attribute)


def require(package: LazyModule) -> ModuleType:
    """Import a package and return the module.

    Args:
        package: what stands for it.

    Raises:
        MissingPackageError: it is not installed; says what needs it and how to install it.
    """
    name = package.__name__
    try:
        with working(), kept_interrupts():  # a module that is half imported can never be imported in a forked child
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        raise MissingPackageError(
            f"{package._purpose} needs the package {name.split('.')[0]!r}, which is not installed.",
            hint=f"Install it with: pip install '{package._install}'",
        ) from None


def is_loaded(name: str) -> bool:
    """Tell whether a package has been imported by anybody in this process, without importing it."""
    return name in sys.modules


fsspec: Any = LazyModule("fsspec", "reading from URLs", "dalify[remote]")
if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch", "this device or plugin")
