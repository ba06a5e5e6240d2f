"""Memory for results that live only until the next call on the same thread.

A fresh array of half a megabyte per image costs page faults, which is a tenth of the time of decoding it. Alone here
because all codecs may borrow, and because two borrowings of one name must never be alive at once: the rule is easier to
keep in one place.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

__all__ = ["borrow"]

_LARGEST_KEPT_BYTES = 64 << 20  # a panorama must not stay in memory for ever on each thread
_ROUNDING_BYTES = 1 << 16  # images of similar sizes shall share one block


class _Blocks(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, np.ndarray[Any, np.dtype[np.uint8]]] = {}


_blocks = _Blocks()


def borrow(name: str, shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    """Return an uninitialised array that is valid until this thread borrows the same name again.

    Args:
        name: what it is for; different names never share memory.
        shape: extents.
        dtype: numpy type of the elements.
    """
    element = np.dtype(dtype)
    size_bytes = math.prod(shape) * element.itemsize
    block = _blocks.by_name.get(name)
    if block is None or block.nbytes < size_bytes:
        block = np.empty((size_bytes + _ROUNDING_BYTES - 1) // _ROUNDING_BYTES * _ROUNDING_BYTES, np.uint8)
        if block.nbytes <= _LARGEST_KEPT_BYTES:
            _blocks.by_name[name] = block
    if element == np.uint8:
        return block[:size_bytes].reshape(shape)
    return block[:size_bytes].view(element).reshape(shape)
