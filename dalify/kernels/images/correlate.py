"""Correlates images with small non-separable kernels, row by row.

The rows under the kernel are kept as float32 in a ring buffer in the L1 cache. One pass over a row adds up to five
taps, so that the sums are loaded and stored a fifth as often. Borders use index tables: each row is padded once, and no
sum needs a test.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types as numba_types
from numba.extending import overload

from dalify.base.compiling import njit
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.images.convolve import bordered_indices

__all__ = ["correlate_image"]

# Adding and subtracting it rounds halves to even: floats of this size have no fraction bits. NumPy's rint would be a
# function call for each element.
_WHOLE = np.float32(1.5 * 2**23)


def correlate_image(
    out: np.ndarray, x: np.ndarray, weights: np.ndarray, anchor: tuple[int, int] | None, border: str, fill_value: float
) -> None:
    """Fill an image with weighted sums of neighbors.

    Args:
        out: uint8 (rounded, halves to even) or float32 [h, w, C], C-contiguous.
        x: uint8 or float32 [H, W, C].
        weights: float32 [r, s].
        anchor: row and column of the element at the output pixel; None for valid positions only, h = H + 1 - r.
        border: a name of `bordered_indices`.
        fill_value: value outside for "constant".
    """
    before = (0, 0) if anchor is None else anchor
    after = (0, 0) if anchor is None else (weights.shape[0] - 1 - anchor[0], weights.shape[1] - 1 - anchor[1])
    rows, no_row = _table(x.shape[0], before[0], after[0], border)
    columns, no_column = _table(x.shape[1], before[1], after[1], border)
    _correlate(
        out.reshape(out.shape[0], -1),
        read_only(x).reshape(x.shape[0], -1),
        read_only(weights),
        rows,
        no_row,
        columns,
        no_column,
        before[1],
        x.shape[2],
        np.float32(fill_value),
    )


@lru_cache(maxsize=256)
def _table(size: int, before: int, after: int, border: str) -> tuple[np.ndarray, np.ndarray]:
    """Cached `bordered_indices`: consecutive images often have the same size."""
    index, outside = bordered_indices(size, before, after, border)
    return read_only(index), read_only(outside)


@njit(nogil=True, cache=True)
def _complete(row, source, columns, no_column, left, channels, fill):
    """Fill a row with a source row and its padding."""
    width = source.size // channels
    for side in range(columns.size - width):
        i = side if side < left else side + width
        for c in range(channels):
            row[i * channels + c] = fill if no_column[i] else np.float32(source[columns[i] * channels + c])
    middle = row[left * channels : left * channels + source.size]
    for k in range(source.size):
        middle[k] = np.float32(source[k])


def _round_into(target, sums):
    """Convert a row of float32 to the dtype of the output."""


@overload(_round_into)
def _round_into_overload(target, sums):
    if target.dtype == numba_types.uint8:

        def round_uint8(target, sums):
            for k in range(target.size):
                value = min(max(sums[k], np.float32(0)), np.float32(255))
                target[k] = np.uint8(np.int32((value + _WHOLE) - _WHOLE))

        return round_uint8

    def copy_float(target, sums):
        for k in range(target.size):
            target[k] = sums[k]

    return copy_float


# Unsigned indices: negative indices would count from the end and prevent vectorization.


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_five(sums, row, a, step, u, v, w, x, y):
    b, c = a + step, a + step + step
    d, e = c + step, c + step + step
    for i in range(sums.size):
        k = np.uintp(i)
        sums[k] += (row[a + k] * u + row[b + k] * v) + (row[c + k] * w + row[d + k] * x) + row[e + k] * y


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_three(sums, row, a, step, u, v, w):
    b, c = a + step, a + step + step
    for i in range(sums.size):
        k = np.uintp(i)
        sums[k] += row[a + k] * u + row[b + k] * v + row[c + k] * w


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_one(sums, row, a, u):
    for i in range(sums.size):
        k = np.uintp(i)
        sums[k] += row[a + k] * u


@njit(nogil=True, cache=True)
def _correlate(out, x, weights, rows, no_row, columns, no_column, left, channels, fill):
    taps_y, taps_x = weights.shape
    step = np.uintp(channels)
    ring = np.empty((taps_y, columns.size * channels), np.float32)
    sums = np.empty(out.shape[1], np.float32)
    ready = 0
    for y in range(out.shape[0]):
        while ready < y + taps_y:
            if no_row[ready]:
                ring[ready % taps_y, :] = fill
            else:
                _complete(ring[ready % taps_y], x[rows[ready]], columns, no_column, left, channels, fill)
            ready += 1
        sums[:] = 0
        for i in range(taps_y):
            row, w = ring[(y + i) % taps_y], weights[i]
            j = 0
            while j < taps_x:
                at = np.uintp(j * channels)
                if taps_x - j >= 5:
                    _add_five(sums, row, at, step, w[j], w[j + 1], w[j + 2], w[j + 3], w[j + 4])
                    j += 5
                elif taps_x - j >= 3:
                    _add_three(sums, row, at, step, w[j], w[j + 1], w[j + 2])
                    j += 3
                else:
                    _add_one(sums, row, at, w[j])
                    j += 1
        _round_into(out[y], sums)
