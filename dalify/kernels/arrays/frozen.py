"""Input arrays for numba functions: read-only and C-contiguous.

numba compiles a function separately for writable and read-only arrays. Inputs may be either; passing them always as
read-only needs only one compilation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["broadcast_to", "read_only", "repeated"]


def read_only(x: np.ndarray) -> np.ndarray:
    """Return a C-contiguous, read-only view of an array, or a copy if it is not contiguous."""
    if x.flags.c_contiguous and not x.flags.writeable:
        return x
    view = (x if x.flags.c_contiguous else np.ascontiguousarray(x)).view()
    view.flags.writeable = False
    return view


def broadcast_to(values: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Broadcast values to a shape, C-contiguous and of a type that numba treats as writable.

    The array itself is returned if possible: NumPy's broadcasting takes as long as a small kernel.
    """
    if isinstance(values, np.ndarray) and values.shape == shape:
        if values.dtype == dtype and values.flags.c_contiguous and values.flags.writeable:
            return values
        return values.astype(dtype, order="C")
    filled = np.empty(shape, dtype)
    filled[...] = values
    return filled


@lru_cache(64)  # chunks have few numbers of samples
def repeated(value: float, count: int) -> np.ndarray:
    """Return a value for each of some samples, float32 [N]. Do not modify it: the same array is returned again."""
    return np.full(count, value, np.float32)
