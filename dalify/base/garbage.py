"""Calls functions without Python's collector of cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["uncollected"]

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
