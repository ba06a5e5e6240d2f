"""DALI's compiled plugins, which cannot be loaded here: what is asked for is refused with the ways out."""

from __future__ import annotations

from os import PathLike
from typing import NoReturn

from dalify.base.errors import ArgumentValueError
from dalify.base.source_line import SourceLine

__all__ = ["load_directory", "load_library"]


def load_library(library_path: str | PathLike[str], global_symbols: bool = False) -> NoReturn:
    """Refuse a compiled plugin: it needs DALI's own executor.

    Args:
        library_path: the plugin.
        global_symbols: as in DALI.

    Raises:
        ArgumentValueError: always.
    """
    raise ArgumentValueError(
        f"the plugin {library_path} is compiled for NVIDIA DALI and cannot run in dalify.",
        line=SourceLine.capture(),
        hint="Write the operator in Python: fn.experimental.numba_function compiles it and runs it on all threads, "
        "fn.python_function takes any function, fn.torch_python_function (plugin.pytorch.fn) one of tensors.",
    )


def load_directory(plugin_dir_path: str | PathLike[str], global_symbols: bool = False) -> NoReturn:
    """Refuse a folder of compiled plugins, see `load_library`.

    Args:
        plugin_dir_path: the folder.
        global_symbols: as in DALI.

    Raises:
        ArgumentValueError: always.
    """
    load_library(plugin_dir_path, global_symbols)
