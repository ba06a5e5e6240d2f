"""Location of the package and compiler flags for extensions, under DALI's names.

dalify has no compiled part: there are no headers and libraries, and the lists of flags are empty.
"""

from __future__ import annotations

import os

__all__ = ["get_compile_flags", "get_include_dir", "get_include_flags", "get_lib_dir", "get_link_flags"]


def get_lib_dir() -> str:
    """Return the folder of the package."""
    return os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 -- a string, as in DALI


def get_include_dir() -> str:
    """Return the folder of the package; it contains no headers."""
    return get_lib_dir()


def get_include_flags() -> list[str]:
    """Return an empty list."""
    return []


def get_compile_flags() -> list[str]:
    """Return an empty list."""
    return []


def get_link_flags() -> list[str]:
    """Return an empty list."""
    return []
