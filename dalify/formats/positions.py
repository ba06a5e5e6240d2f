"""Reading at a place in a file, on every system.

Alone because systems differ: where there is no ``preadv``, a descriptor has one position for all threads.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from dalify.base.fork_lock import ForkLock

__all__ = ["HAS_POSITIONS", "OPEN_FLAGS", "read_at"]

OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Whether the C library has ``pread``, which compiled loops call.
HAS_POSITIONS = hasattr(os, "preadv")
_lock = ForkLock()


def read_at(descriptor: int, memory: NDArray[np.uint8], offset: int) -> int:
    """Read into memory from a place of an open file; return how many bytes came, fewer where the file ends before.

    Raises:
        OSError: the system refuses.
    """
    filled = 0
    while filled < memory.size:
        if HAS_POSITIONS:
            count = os.preadv(descriptor, [memory.data[filled:]], offset + filled)
        else:
            with _lock:
                os.lseek(descriptor, offset + filled, os.SEEK_SET)
                part = os.read(descriptor, memory.size - filled)
            count = len(part)
            memory.data[filled : filled + count] = part
        if count == 0:
            break
        filled += count
    return filled
