"""Give numba one kind of input array.

numba compiles a function once for writable arrays and once more for read-only ones, which inputs may or may not be.
Taken as read-only always, they cost one compilation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["read_only", "spread"]


def read_only(x: np.ndarray) -> np.ndarray:
    """Return a C-contiguous, read-only view of an array; a copy only where it is not contiguous."""
    view = np.ascontiguousarray(x).view()
    view.flags.writeable = False
    return view


def spread(values: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return values broadcast to a shape, C-contiguous and writeable as far as compiled loops can tell.

    The array itself is returned where it is that already: numpy's broadcasting takes as long as a small kernel.
    """
    if isinstance(values, np.ndarray) and values.shape == shape:
        if values.dtype == dtype and values.flags.c_contiguous and values.flags.writeable:
            return values
        return values.astype(dtype, order="C")
    if isinstance(values, (int, float)):
        filled = np.empty(shape, dtype)
        filled.fill(values)
        return filled
    return np.array(np.broadcast_to(values, shape), dtype, order="C")
