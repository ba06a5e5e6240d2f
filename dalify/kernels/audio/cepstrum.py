"""The first coefficients of discrete cosine transforms: cepstra.

For few coefficients, a product with a matrix is faster than a fast transform. It includes the liftering weights.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.small_arrays import equal_rows, rows_at
from dalify.data.samples import Samples

_COLUMNS = 128  # a block of this width with sixty rows of a spectrum fits into the L1 cache


@functools.lru_cache(maxsize=64)
def cepstral_matrix(size: int, count: int, dct_type: int, normalize: bool, lifter: float) -> np.ndarray:
    """Return the matrix of a cosine transform with liftering, float32 [count, size].

    Types are as in scipy.fft.dct, without its factor 2; normalized types are as with ``norm="ortho"``.

    Args:
        size: number of input values; at least 2 for type 1.
        count: number of coefficients.
        dct_type: 1 to 4.
        normalize: whether the basis is orthonormal; not for type 1.
        lifter: coefficient k is multiplied by ``1 + lifter / 2 * sin(pi * (k + 1) / lifter)``; 0 for none.
    """
    k, n = np.arange(count)[:, None], np.arange(size)[None]
    if dct_type == 1:
        matrix = np.cos(np.pi * n * k / (size - 1))
        matrix[:, [0, -1]] *= 0.5
    elif dct_type == 2:
        matrix = np.cos(np.pi / size * (n + 0.5) * k)
    elif dct_type == 3:
        matrix = np.cos(np.pi / size * n * (k + 0.5))
        matrix[:, 0] *= math.sqrt(0.5) if normalize else 0.5
    else:
        matrix = np.cos(np.pi / size * (n + 0.5) * (k + 0.5))
    if normalize:
        matrix *= math.sqrt(2 / max(size, 1))
        if dct_type == 2:
            matrix[0] *= math.sqrt(0.5)
    if lifter:
        matrix *= 1 + lifter / 2 * np.sin(np.pi * (k + 1) / lifter)
    return matrix.astype(np.float32)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _rows(out: np.ndarray, x: np.ndarray, matrix: np.ndarray) -> None:
    """Fill out [A, count, B] from x [A, size, B]."""
    count = out.shape[1]
    sums = np.empty((4, _COLUMNS), np.float32)
    first_sum, second_sum, third_sum, fourth_sum = sums[0], sums[1], sums[2], sums[3]
    for a in range(x.shape[0]):
        for start in range(0, x.shape[2], _COLUMNS):
            size = min(_COLUMNS, x.shape[2] - start)
            for k in range(0, count, 4):
                sums[:] = 0
                second, third, fourth = min(k + 1, count - 1), min(k + 2, count - 1), min(k + 3, count - 1)
                for n in range(x.shape[1]):
                    row = x[a, n, start : start + size]
                    w0, w1, w2, w3 = matrix[k, n], matrix[second, n], matrix[third, n], matrix[fourth, n]
                    for i in range(row.size):
                        value = row[i]
                        first_sum[i] += w0 * value
                        second_sum[i] += w1 * value
                        third_sum[i] += w2 * value
                        fourth_sum[i] += w3 * value
                for j in range(min(4, count - k)):
                    for i in range(size):
                        out[a, k + j, start + i] = sums[j, i]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _dots(out: np.ndarray, x: np.ndarray, matrix: np.ndarray) -> None:
    """Fill out [A, count] from x [A, size]."""
    for a in range(x.shape[0]):
        row = x[a]
        for k in range(out.shape[1]):
            weights, total = matrix[k], np.float32(0)
            for n in range(row.size):
                total += weights[n] * row[n]
            out[a, k] = total


@njit(nogil=True, cache=True)
def _rows_of_samples(out_at, x_at, sizes, matrix):
    for n in range(len(out_at)):
        before, after = sizes[n, 0], sizes[n, 1]
        x = array_at(x_at[n], (before, matrix.shape[1], after), matrix)
        _rows(array_at(out_at[n], (before, matrix.shape[0], after), matrix), x, matrix)


@njit(nogil=True, cache=True)
def _dots_of_samples(out_at, x_at, sizes, matrix):
    for n in range(len(out_at)):
        x = array_at(x_at[n], (sizes[n, 0], matrix.shape[1]), matrix)
        _dots(array_at(out_at[n], (sizes[n, 0], matrix.shape[0]), matrix), x, matrix)


def transform_axis(out: Samples, x: Samples, axis: int, matrix_of: Callable[[int], np.ndarray]) -> None:
    """Multiply by a matrix along an axis.

    Args:
        out: float32 samples, output.
        x: float32 samples with the same extents except along the axis.
        axis: axis of a sample.
        matrix_of: function of the extent of `x` along the axis, which returns float32 [extent of out, extent of x].
    """
    if x.dense is not None and out.dense is not None:
        shape = x.dense.shape
        size = np.array([[math.prod(shape[: axis + 1]), math.prod(shape[axis + 2 :])]])
        _multiply(out.addresses[:1], x.addresses[:1], size, matrix_of(shape[axis + 1]))
        return
    sizes = np.stack([x.shapes[:, :axis].prod(1), x.shapes[:, axis + 1 :].prod(1)], 1)
    for numbers in equal_rows(np.stack([x.extents(axis), sizes[:, 1] == 1], 1)):
        matrix = matrix_of(int(x.shapes[numbers[0], axis]))
        _multiply(out.addresses[numbers], x.addresses[numbers], rows_at(sizes, numbers), matrix)


def _multiply(out_at: np.ndarray, x_at: np.ndarray, sizes: np.ndarray, matrix: np.ndarray) -> None:
    (_dots_of_samples if sizes[0, 1] == 1 else _rows_of_samples)(out_at, x_at, sizes, matrix)
