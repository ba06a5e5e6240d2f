"""The build hook of hatchling: generates the stubs of the operators for wheels, sdists and editable installs.

Operators are created from their files at first access, so editors and type checkers need stubs. The generator imports
the operators' files, and those import what dalify requires, except torch. An isolated build installs these packages; a
build without isolation uses the installed ones. If one is missing, the build warns and continues: stubs have no effect
at run time. An sdist contains the stubs, so a build from it generates nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement

_NOT_NEEDED = "torch"  # large, and imported by no operator's file


class StubsHook(BuildHookInterface[Any]):
    """Generates ``*.pyi`` files in the source tree, where git ignores them."""

    def dependencies(self) -> list[str]:
        """Return what the generator imports."""
        if self._is_sdist():
            return []
        return [text for text in self.metadata.core.dependencies if Requirement(text).name != _NOT_NEEDED]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate the stubs.

        Raises:
            RuntimeError: the generator failed although its dependencies are installed.
        """
        if self._is_sdist():
            return
        missing = [name for name in map(_name_of, self.dependencies()) if not _is_installed(name)]
        if missing:
            self.app.display_warning(
                f"the stubs for editors are not generated: {', '.join(missing)} not installed; "
                "install them, or build with isolation"
            )
            return
        paths = [self.root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "docs.stubs"]
        result = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"generating the stubs failed: {' '.join(command)}\n{result.stderr}")

    def _is_sdist(self) -> bool:
        return Path(self.root, "PKG-INFO").exists()


def _name_of(requirement: str) -> str:
    return Requirement(requirement).name


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
