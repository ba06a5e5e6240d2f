"""Addresses of the samples of a chunk, each table in one compiled call.

After a kernel, functions of NumPy are not in the CPU cache; compiled calls take less time. They keep the GIL: they take
less time than releasing it.
"""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit

__all__ = ["addresses_in", "shifted"]


@njit(cache=True)
def addresses_in(offsets: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the addresses of offsets in bytes, int64 ``[N]``, in a block of memory, uint8."""
    return shifted(offsets, np.int64(block.ctypes.data))


@njit(cache=True)
def shifted(offsets: np.ndarray, start: int) -> np.ndarray:
    """Return the sums of offsets, int64 ``[N]``, and an address."""
    found = np.empty(offsets.size, np.int64)
    for n in range(offsets.size):
        found[n] = start + offsets[n]
    return found
