"""Compiled plugins of DALI, which are not supported: the functions raise errors that name alternatives."""

from __future__ import annotations

from os import PathLike
from typing import NoReturn

from dalify.base.errors import ArgumentValueError

__all__ = ["load_directory", "load_library"]


def load_library(library_path: str | PathLike[str], global_symbols: bool = False) -> NoReturn:
    """Raise: compiled plugins require DALI's executor.

    Args:
        library_path: path of the plugin.
        global_symbols: as in DALI.

    Raises:
        ArgumentValueError: always.
    """
    raise ArgumentValueError.here(
        f"the plugin {library_path} is compiled for NVIDIA DALI and cannot be loaded by dalify.",
        hint="Write the operator in Python: fn.experimental.numba_function compiles it and runs it on all threads, "
        "fn.python_function calls any function, fn.torch_python_function (plugin.pytorch.fn) one on tensors.",
    )


def load_directory(plugin_dir_path: str | PathLike[str], global_symbols: bool = False) -> NoReturn:
    """Raise: compiled plugins are not supported, see `load_library`.

    Args:
        plugin_dir_path: path of the folder.
        global_symbols: as in DALI.

    Raises:
        ArgumentValueError: always.
    """
    load_library(plugin_dir_path, global_symbols)
