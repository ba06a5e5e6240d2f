"""Packages and modules that are imported at first use.

``import dalify`` must be fast and work without large packages. So modules create a proxy for each of them at the top
level.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dalify.base.errors import MissingPackageError
from dalify.base.fork_gate import working
from dalify.base.garbage import imported
from dalify.base.interrupts import kept_interrupts

__all__ = ["LazyModule", "fsspec", "imported_at_first_use", "is_loaded", "require", "torch"]


class LazyModule(ModuleType):
    """Proxy of a module that is imported at the first access to an attribute.

    Args:
        name: import name.
        purpose: the feature that needs it, for the error message.
        install: name to install, e.g. ``dalify[video]``; by default the import name.
    """

    def __init__(self, name: str, purpose: str, install: str = "") -> None:
        super().__init__(name)
        self.__dict__["_purpose"] = purpose
        self.__dict__["_install"] = install or name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the proxy, because a function that is pickled by value includes the globals that it uses."""
        return LazyModule, (self.__name__, self._purpose, self._install)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute != "__version__":
            raise AttributeError(attribute)  # inspection, e.g. by doctest or inspect, must not import the package
        module = require(self)
        self.__dict__.update({key: value for key, value in module.__dict__.items() if not key.startswith("__")})
        return getattr(module, attribute)


def require(package: LazyModule) -> ModuleType:
    """Import a package and return the module.

    Raises:
        MissingPackageError: the package is not installed.
    """
    name = package.__name__
    try:
        with working(), kept_interrupts():  # a partly imported module cannot be imported in a forked child
            return imported(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        raise MissingPackageError(
            f"{package._purpose} needs the package {name.split('.')[0]!r}, which is not installed.",
            hint=f"Install it with: pip install '{package._install}'",
        ) from None


def imported_at_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package of dalify: it imports the modules that define the package's names.

    Args:
        package: full name of the package.
        modules: for each public name of the package, the module that defines it.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(require(LazyModule(f"{package}.{modules[name]}", package)), name)
        setattr(sys.modules[package], name, found)  # Python finds it directly next time
        return found

    return find


def is_loaded(name: str) -> bool:
    """Return whether a package has been imported in this process, without importing it."""
    return name in sys.modules


fsspec: Any = LazyModule("fsspec", "reading from URLs", "dalify[remote]")
if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch", "this device or plugin")
