"""Runs programs that import ``habana_frameworks.mediapipe`` or ``habana_dataloader`` unchanged.

For programs whose imports cannot be changed: call ``import dalify.mediapipe.shim as shim; shim.install()`` before
importing them.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from dalify.base.errors import PipelineStateError

_ROOTS = {
    "habana_frameworks.mediapipe": "dalify.mediapipe",
    "habana_dataloader": "dalify.mediapipe.habana_dataloader",
}
_PARENT = "habana_frameworks"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Returns dalify's module for a Gaudi name: the same object, so that classes are identical under both names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == _PARENT or _dalify_name(fullname) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        name = _dalify_name(spec.name)
        if name is None:
            return None
        module = importlib.import_module(name)
        # The import system overwrites attributes of the module; exec_module restores them.
        spec.loader_state = {key: module.__dict__.get(key) for key in _IMPORT_ATTRIBUTES}
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        attributes = spec.loader_state if spec is not None else None
        if attributes is None:
            module.__path__ = []
            return
        for key, value in attributes.items():
            if value is None:
                module.__dict__.pop(key, None)
            else:
                module.__dict__[key] = value


_IMPORT_ATTRIBUTES = ("__name__", "__spec__", "__loader__", "__package__", "__path__", "__file__", "__cached__")
_finder = _Finder()


def _dalify_name(name: str) -> str | None:
    for theirs, root in _ROOTS.items():
        if name == theirs or name.startswith(f"{theirs}."):
            return root + name[len(theirs) :]
    return None


def _names() -> list[str]:
    return sorted({_PARENT, *(root.split(".")[0] for root in _ROOTS)})


def install() -> None:
    """Make the names of Gaudi's packages refer to dalify's packages, in this process.

    Raises:
        PipelineStateError: the real package is installed and would be hidden.
    """
    if _finder in sys.meta_path:
        return
    for name in _names():
        if name in sys.modules or importlib.util.find_spec(name) is not None:
            raise PipelineStateError(
                f"the package {name!r} is installed and is not replaced.",
                hint="Import from dalify.mediapipe to use dalify alongside it.",
            )
    # First in the list: Python's own finder would load each file a second time from the parent's path.
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Remove the names."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name.split(".")[0] in _names()]:
        del sys.modules[name]
