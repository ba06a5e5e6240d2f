"""Reused memory for the contents of files, shared by all readers.

Page faults in new memory of the size of a photo cost more time than reading the photo.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalify.data import BufferPool

__all__ = ["LARGE_BYTES", "file_memory"]

_KEPT_BYTES = 1 << 28
_SMALL_BYTES = 1 << 13  # below, the allocator is fast
LARGE_BYTES = 1 << 26  # above, page faults matter less, and one block would displace many
_pool = BufferPool(capacity_bytes=_KEPT_BYTES)
_BYTE = np.dtype(np.uint8)


def file_memory(size_bytes: int) -> NDArray[np.uint8]:
    """Return uninitialized bytes, uint8 ``[size_bytes]``."""
    if _SMALL_BYTES <= size_bytes <= LARGE_BYTES:
        return _pool.empty((size_bytes,), _BYTE)
    return np.empty(size_bytes, np.uint8)
