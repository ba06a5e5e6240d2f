"""Returns freed memory to the system, which glibc keeps if it was allocated in many blocks."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


@cache
def _malloc_trim() -> Any:
    """Return the function of glibc; None for other C libraries."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None


def return_free_memory() -> None:
    """Return all memory of the C library that is free, for example after an image of unusual size was freed."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)
