"""Memory for the contents of files, used again when nobody looks at it any more.

Alone because all readers share it: a fresh piece of the size of a photograph costs more in page faults than reading it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalify.data import BufferPool

__all__ = ["file_memory"]

_KEPT_BYTES = 1 << 28
_SMALL_BYTES = 1 << 13  # below, the allocator has pieces at hand
_LARGE_BYTES = 1 << 26  # above, faults are the smaller part, and one piece would take the place of many
_pool = BufferPool(capacity_bytes=_KEPT_BYTES)
_BYTE = np.dtype(np.uint8)


def file_memory(size_bytes: int) -> NDArray[np.uint8]:
    """Return uninitialised bytes, uint8 ``[size_bytes]``."""
    if _SMALL_BYTES <= size_bytes <= _LARGE_BYTES:
        return _pool.empty((size_bytes,), _BYTE)
    return np.empty(size_bytes, np.uint8)
