"""Run programs that import ``habana_frameworks.mediapipe`` or ``habana_dataloader`` as they are.

Alone because it is for those who cannot change the program: ``import dalify.mediapipe.shim as shim; shim.install()``
before it.
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

__all__ = ["install", "uninstall"]

_ROOTS = {
    "habana_frameworks.mediapipe": "dalify.mediapipe",
    "habana_dataloader": "dalify.mediapipe.habana_dataloader",
}
_PARENT = "habana_frameworks"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives our module for a name of theirs: the very same object, so that classes are the same by both names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == _PARENT or _ours(fullname) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        name = _ours(spec.name)
        if name is None:
            return None
        module = importlib.import_module(name)
        # The import machinery writes its own facts into what it is given; ours are put back in exec_module.
        spec.loader_state = {key: module.__dict__.get(key) for key in _FACTS}
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        facts = spec.loader_state if spec is not None else None
        if facts is None:
            module.__path__ = []
            return
        for key, value in facts.items():
            if value is None:
                module.__dict__.pop(key, None)
            else:
                module.__dict__[key] = value


_FACTS = ("__name__", "__spec__", "__loader__", "__package__", "__path__", "__file__", "__cached__")
_finder = _Finder()


def _ours(name: str) -> str | None:
    for theirs, root in _ROOTS.items():
        if name == theirs or name.startswith(f"{theirs}."):
            return root + name[len(theirs) :]
    return None


def _names() -> list[str]:
    return sorted({_PARENT, *(root.split(".")[0] for root in _ROOTS)})


def install() -> None:
    """Let the names of Gaudi's packages stand for those of dalify, in this process.

    Raises:
        PipelineStateError: the real package is installed, and would be hidden.
    """
    if _finder in sys.meta_path:
        return
    for name in _names():
        if name in sys.modules or importlib.util.find_spec(name) is not None:
            raise PipelineStateError(
                f"the package {name!r} is installed here; it is not replaced.",
                hint="Import from dalify.mediapipe to use dalify beside it.",
            )
    # First: the parent's path is our folder, where Python's own finder would load every file a second time.
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Take the names back."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name.split(".")[0] in _names()]:
        del sys.modules[name]
