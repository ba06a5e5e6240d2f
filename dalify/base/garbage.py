"""Calls functions without Python's collector of cyclic garbage."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import ParamSpec, TypeVar

__all__ = ["imported", "uncollected"]

P = ParamSpec("P")
T = TypeVar("T")


def uncollected(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function while the garbage collector is disabled.

    This is for imports and compilation: they create hundreds of thousands of objects that stay, and the collector would
    visit them again and again, which takes a tenth of their time.
    """
    is_enabled = gc.isenabled()  # if another thread has disabled it for a call, that thread enables it
    try:
        gc.disable()
        return function(*arguments, **named)
    finally:
        if is_enabled:
            gc.enable()


def imported(name: str) -> ModuleType:
    """Import a module without the garbage collector, which does not visit the objects of the module soon afterwards.

    All objects that exist then are moved to the oldest generation of the collector. The objects of modules stay, but
    the collector would visit them twice before it knows: 200,000 objects for a first pipeline.
    """
    if name in sys.modules:  # counting what is frozen takes 0.1 s in a program that has frozen many objects
        return importlib.import_module(name)
    module = uncollected(importlib.import_module, name)
    if gc.isenabled() and not gc.get_freeze_count():  # frozen by the user: they would be collected again
        gc.freeze()
        gc.unfreeze()
    return module
