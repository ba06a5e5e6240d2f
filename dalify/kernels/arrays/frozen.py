"""Arguments of numba functions: C-contiguous arrays that are always read-only or always writable.

numba compiles a function separately for writable and read-only arrays.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


def read_only(x: np.ndarray) -> np.ndarray:
    """Return a C-contiguous, read-only view of an array, or a copy if it is not contiguous."""
    if x.flags.c_contiguous and not x.flags.writeable:
        return x
    view = (x if x.flags.c_contiguous else np.ascontiguousarray(x)).view()
    view.flags.writeable = False
    return view


def broadcast_to(values: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return values broadcast to a shape, C-contiguous and writable; `values` itself if it has this form."""
    if isinstance(values, np.ndarray) and values.shape == shape:
        if values.dtype == dtype and values.flags.c_contiguous and values.flags.writeable:
            return values
        return values.astype(dtype, order="C")
    filled = np.empty(shape, dtype)
    filled[...] = values
    return filled


@lru_cache(64)  # chunks have few numbers of samples
def repeated(value: float, count: int) -> np.ndarray:
    """Return float32 [count] filled with a value. Do not modify it: it is cached."""
    return np.full(count, value, np.float32)
