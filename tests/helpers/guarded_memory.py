"""Arrays at the end of accessible memory: a kernel that exceeds the bounds of an array crashes the process.

numba's own check covers only indices; this also detects errors of kernels with addresses (``kernels/arrays/simd.py``),
of OpenCV and of NumPy.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
from typing import Any

import numpy as np

from dalify.data.pool import BufferPool
from dalify.executor.arena import Arena

_PAGE = mmap.PAGESIZE
_MAX_BYTES = 1 << 25
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()


def guarded_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array between two inaccessible pages; arrays alternate between the first and the second page."""
    size_bytes = math.prod(shape) * dtype.itemsize
    if size_bytes == 0:
        return np.empty(shape, dtype)
    if size_bytes > _MAX_BYTES:
        raise MemoryError(f"{size_bytes} bytes are more than a test should want")
    pages = -(-size_bytes // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (address, address + (pages + 1) * _PAGE):
        if _libc.mprotect(ctypes.c_void_p(guard), _PAGE, _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE if next(_numbers) % 2 else (pages + 1) * _PAGE - size_bytes
    return np.frombuffer(memory, dtype, math.prod(shape), offset).reshape(shape)


def guarded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy in guarded memory."""
    copy = guarded_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def guard_all_memory() -> None:
    """Make all pools and arenas of this process allocate guarded memory permanently."""

    def pool_empty(_pool: BufferPool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return guarded_empty(shape, dtype)

    def arena_empty(_arena: Arena, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return guarded_empty(shape, dtype)

    BufferPool.empty = pool_empty  # pyright: ignore[reportAttributeAccessIssue]
    Arena.empty = arena_empty  # pyright: ignore[reportAttributeAccessIssue]
