"""Calls functions and imports modules while Python's garbage collector is disabled."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def uncollected(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function while the garbage collector is disabled.

    For imports and compilation: they create hundreds of thousands of permanent objects, and the collector would
    traverse them repeatedly, which takes a tenth of the time.
    """
    is_enabled = gc.isenabled()  # if another thread has disabled it for a call, that thread enables it
    try:
        gc.disable()
        return function(*arguments, **named)
    finally:
        if is_enabled:
            gc.enable()


def imported(name: str) -> ModuleType:
    """Import a module without the garbage collector, and move all objects to the collector's oldest generation.

    Otherwise the collector would traverse the objects of modules, 200,000 for a first pipeline, twice before they are
    in that generation.
    """
    if name in sys.modules:  # get_freeze_count() takes 0.1 s in a program that has frozen many objects
        return importlib.import_module(name)
    module = uncollected(importlib.import_module, name)
    if gc.isenabled() and not gc.get_freeze_count():  # unfreeze() would also unfreeze objects frozen by the user
        gc.freeze()
        gc.unfreeze()
    return module
