"""Give numba one kind of input array.

numba compiles a function once for writable arrays and once more for read-only ones, which inputs may or may not be.
Taken as read-only always, they cost one compilation.
"""

from __future__ import annotations

import numpy as np

__all__ = ["read_only"]


def read_only(x: np.ndarray) -> np.ndarray:
    """Return a C-contiguous, read-only view of an array; a copy only where it is not contiguous."""
    view = np.ascontiguousarray(x).view()
    view.flags.writeable = False
    return view
