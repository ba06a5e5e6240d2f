"""Addresses of the samples of a chunk.

Compiled, because a single call takes less time than several calls of NumPy. The functions keep the GIL, because
releasing it takes longer than the computation.
"""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit


@njit(cache=True)
def fill_in_block(addresses: np.ndarray, offsets: np.ndarray, block: np.ndarray) -> None:
    """Set addresses, int64 ``[N]``, for offsets in bytes, int64 ``[N]``, in a block of memory, uint8."""
    start = np.int64(block.ctypes.data)
    for n in range(offsets.size):
        addresses[n] = start + offsets[n]


@njit(cache=True)
def fill_windows(
    addresses: np.ndarray,
    strides: np.ndarray,
    whole: np.ndarray,
    shapes: np.ndarray,
    start: np.ndarray,
    item_bytes: int,
) -> None:
    """Compute the windows of contiguous samples.

    Args:
        addresses: output, addresses of the windows, int64 ``[N]``.
        strides: output, strides of the samples in elements, int64 ``[N, ndim]``.
        whole: addresses of the samples, int64 ``[N]``.
        shapes: shapes of the samples, int64 ``[N, ndim]``.
        start: start of the windows, int64 ``[N, ndim]``.
        item_bytes: size of an element in bytes.
    """
    for n in range(addresses.size):
        step, address = np.int64(1), whole[n]
        for axis in range(shapes.shape[1] - 1, -1, -1):
            strides[n, axis] = step
            address += start[n, axis] * step * item_bytes
            step *= shapes[n, axis]
        addresses[n] = address
