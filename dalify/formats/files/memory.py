"""Reused memory for the contents of files, because page faults in new memory take longer than reading a photo."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalify.data import BufferPool

_KEPT_BYTES = 1 << 28
_SMALL_BYTES = 1 << 13  # the allocator is fast for smaller blocks
LARGE_BYTES = 1 << 26  # a larger block would displace many, and page faults matter less
_pool = BufferPool(capacity_bytes=_KEPT_BYTES)
_BYTE = np.dtype(np.uint8)


def file_memory(size_bytes: int) -> NDArray[np.uint8]:
    """Return uninitialized bytes, uint8 ``[size_bytes]``."""
    if _SMALL_BYTES <= size_bytes <= LARGE_BYTES:
        return _pool.empty((size_bytes,), _BYTE)
    return np.empty(size_bytes, np.uint8)
