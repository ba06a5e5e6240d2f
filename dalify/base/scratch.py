"""Reused buffers for temporary results that are valid until the next call on the same thread.

A new array of half a megabyte per image causes page faults that take a tenth of its decoding time. Codecs and kernels
can borrow buffers; two buffers with the same name must never be in use at the same time.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

_MAX_KEPT_BYTES = 64 << 20  # larger buffers must not remain allocated on each thread
_ROUNDING_BYTES = 1 << 16  # so that images of similar sizes share a block
_LOANS_BETWEEN_CHECKS = 32


class _Blocks(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, np.ndarray[Any, np.dtype[np.uint8]]] = {}
        self.loans = 0
        self.most_bytes: dict[str, int] = {}  # largest buffers since the last check

    def free_unneeded(self) -> None:
        """Free the blocks that are at least twice as large as was needed since the last call."""
        for name, block in list(self.by_name.items()):
            if block.nbytes > 2 * max(self.most_bytes.get(name, 0), _ROUNDING_BYTES):
                del self.by_name[name]
        self.most_bytes.clear()


_blocks = _Blocks()


def borrow(name: str, shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    """Return an uninitialized array that is valid until this thread borrows the same name again.

    Args:
        name: purpose of the buffer; different names never share memory.
        shape: extents.
        dtype: NumPy dtype of the elements.
    """
    element = np.dtype(dtype)
    size_bytes = math.prod(shape) * element.itemsize
    _blocks.loans += 1
    if _blocks.loans % _LOANS_BETWEEN_CHECKS == 0:
        _blocks.free_unneeded()
    if size_bytes > _blocks.most_bytes.get(name, 0):
        _blocks.most_bytes[name] = size_bytes
    block = _blocks.by_name.get(name)
    if block is None or block.nbytes < size_bytes:
        block = np.empty((size_bytes + _ROUNDING_BYTES - 1) // _ROUNDING_BYTES * _ROUNDING_BYTES, np.uint8)
        if block.nbytes <= _MAX_KEPT_BYTES:
            _blocks.by_name[name] = block
    if element == np.uint8:
        return block[:size_bytes].reshape(shape)
    return block[:size_bytes].view(element).reshape(shape)
