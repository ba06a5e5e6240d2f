"""Functions that are called when a process ends, also if it is a process of `multiprocessing`."""

from __future__ import annotations

import atexit
import multiprocessing
from collections.abc import Callable
from multiprocessing import util

_functions: list[Callable[[], object]] = []


def at_exit(function: Callable[[], object]) -> Callable[[], object]:
    """Call a function when this process ends, and when processes that are forked from it end; usable as a decorator.

    Forked processes of `multiprocessing` do not call functions that are registered with `atexit`. Processes of
    `multiprocessing` end their child processes first, so functions that close these must be called before.

    Args:
        function: must not raise; called before functions that were registered earlier.
    """
    atexit.register(function)
    _functions.append(function)
    return function


def _call_all() -> None:
    for function in reversed(_functions):
        atexit.unregister(function)  # spawned processes call these functions, too
        function()


def _register_in_process(_: object = None) -> None:
    # Finalizers with a priority are called before child processes are ended.
    util.Finalize(None, _call_all, exitpriority=0)


# A new process of multiprocessing clears the finalizers of its parent, then it calls this function.
util.register_after_fork(at_exit, _register_in_process)
if multiprocessing.parent_process() is not None:  # dalify is imported by the code that such a process runs
    _register_in_process()
