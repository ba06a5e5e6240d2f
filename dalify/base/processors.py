"""Number of processors that this process may use."""

from __future__ import annotations

import os

__all__ = ["available_processors"]


def available_processors() -> int:
    """Return the number of processors on which this process may run, which may be fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
