"""Processes that a test has started, by queries to the operating system."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psutil

from tests.helpers.programs import LIMIT_S

_CLOCK_S = 0.02  # resolution of the start times of processes


def children() -> set[int]:
    """Return the process ids of the children including zombies, without Python's resource tracker."""
    found: set[int] = set()
    for process in psutil.Process().children():
        try:
            if not any("resource_tracker" in word for word in process.cmdline()):
                found.add(process.pid)
        except psutil.ZombieProcess:
            found.add(process.pid)
        except psutil.NoSuchProcess:
            pass
    return found


def end_children_since(start: float) -> None:
    """Kill descendants that were started at a time or later.

    Args:
        start: seconds since 1970.
    """
    for process in psutil.Process().children(recursive=True):
        try:
            if process.create_time() >= start - _CLOCK_S:
                process.kill()
        except psutil.NoSuchProcess:
            pass


def killed(process: int) -> bool:
    """Kill a process, and return whether it still existed."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_running(process: int) -> bool:
    """Return whether a process is running; zombies are not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = LIMIT_S) -> bool:
    """Return whether a condition becomes true within a time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
