"""Loads the package of a framework for its plugin, or says what to install.

Alone because all plugins of optional frameworks say it in the same words.
"""

from __future__ import annotations

from typing import Any

from dalify.base.optional import LazyModule, require

__all__ = ["framework"]


def framework(package: str, extra: str = "", plugin: str = "") -> Any:
    """Import a package and return the module.

    Args:
        package: import name.
        extra: of dalify, which installs it; the import name where empty.
        plugin: that needs it, below ``dalify.plugin``; the extra where empty.

    Raises:
        MissingPackageError: it is not installed.
    """
    extra = extra or package
    return require(LazyModule(package, f"dalify.plugin.{plugin or extra}", f"dalify[{extra}]"))
