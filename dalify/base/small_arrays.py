"""Operations of NumPy on the index arrays of a chunk, without releasing the GIL.

NumPy releases the GIL in ``arange``, ``searchsorted``, ``argmax`` and in indexing with arrays in more than one
dimension, even for a few elements, and in ``zeros`` from 1,024 bytes on. With many threads, acquiring the GIL again
takes longer than the operation. These functions use operations that keep the GIL below 500 elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# ``ndarray.all`` and ``any`` without the functions that wrap them: (mask, axis), where axis None means all elements.
all_of = np.logical_and.reduce
any_of = np.logical_or.reduce

_CACHED = np.arange(1 << 12, dtype=np.int64)
_CACHED.flags.writeable = False


def counting(count: int) -> NDArray[np.int64]:
    """Return 0, 1, 2, …: int64 ``[count]``, not writable."""
    return _CACHED[:count] if count <= len(_CACHED) else np.arange(count, dtype=np.int64)


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return ``np.zeros(shape, dtype)``."""
    element = np.dtype(dtype)
    count = shape if isinstance(shape, int) else math.prod(shape)
    return np.ndarray(shape, element, bytearray(count * element.itemsize))


def rows_at(table: NDArray[Any], indices: NDArray[np.integer]) -> NDArray[Any]:
    """Return ``table[indices]``, a copy: ``[M, columns]`` of ``[N, columns]`` for int ``[M]``."""
    found = np.empty((len(indices), table.shape[1]), table.dtype)
    for column in range(table.shape[1]):
        found[:, column] = table[:, column][indices]
    return found


def columns_at(table: NDArray[Any], columns: Sequence[int]) -> NDArray[Any]:
    """Return ``table[:, columns]``, a copy: ``[N, len(columns)]`` of ``[N, M]``."""
    found = np.empty((len(table), len(columns)), table.dtype)
    for number, column in enumerate(columns):
        found[:, number] = table[:, column]
    return found


def with_column(table: NDArray[Any], place: int, value: Any) -> NDArray[Any]:
    """Return a copy of a table ``[N, M]`` with a column, one value or ``[N]``, inserted at ``place``."""
    found = np.empty((table.shape[0], table.shape[1] + 1), table.dtype)
    found[:, :place], found[:, place], found[:, place + 1 :] = table[:, :place], value, table[:, place:]
    return found


def equal_rows(table: NDArray[np.integer]) -> list[NDArray[np.int64]]:
    """Return the ascending indices of equal rows of ``[N, columns]``, for each distinct row in order of appearance."""
    if (table == table[0]).all():
        return [counting(len(table))]
    found: dict[str, list[int]] = {}
    for number, row in enumerate(table.tolist()):
        found.setdefault(str(row), []).append(number)
    return [np.array(numbers, np.int64) for numbers in found.values()]


def flat_indices(columns: NDArray[np.integer], width: int) -> NDArray[np.int64]:
    """Return the indices of columns, int ``[N, k]``, in the flat form of a table ``[N, width]``, int64 ``[N * k]``."""
    return (columns + counting(len(columns))[:, None] * width).reshape(-1)
