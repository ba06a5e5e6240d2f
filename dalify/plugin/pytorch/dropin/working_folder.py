"""The working folder of threads that replace worker processes.

A worker process of torch keeps the working folder in which it was started. Threads share the folder of the process, so
they resolve relative paths themselves.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from PIL import Image

from dalify.plugin.pytorch.dropin.opening import decodes_file

FOLDER = "dalify_folder"


def is_path(value: Any) -> bool:
    """Return whether a value is a path."""
    return isinstance(value, str | bytes | os.PathLike)


class WorkingFolder:
    """The folder in which relative paths are resolved; by default the folder of the process when a file is opened."""

    def __init__(self) -> None:
        self._path: str | None = None

    def keep(self) -> None:
        """Resolve relative paths in the current working folder, even if the program changes it later."""
        self._path = None
        with suppress(OSError):  # the folder was deleted
            self._path = os.getcwd()  # noqa: PTH109 -- a string

    def __call__(self, path: Any) -> Any:
        """Return an absolute path for a relative one, and other values unchanged."""
        if self._path is None or not is_path(path):
            return path
        folder: Any = os.fsencode(self._path) if isinstance(path, bytes) else self._path
        return os.path.join(folder, path)  # noqa: PTH118 -- the path may be bytes


class ResolvedPaths(ast.NodeTransformer):
    """Changes ``Image.open(path)`` to ``Image.open(dalify_folder(path))``, and other functions of paths likewise.

    Args:
        resolve: returns the function that an expression names.
    """

    def __init__(self, resolve: Callable[[ast.expr], Any]) -> None:
        self._resolve = resolve

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the changed call."""
        self.generic_visit(node)
        function = self._resolve(node.func)
        if node.args and (function is Image.open or function is os.path.exists or decodes_file(function)):
            node.args[0] = ast.Call(ast.Name(FOLDER, ast.Load()), [node.args[0]], [])
        return node
