"""Bisection in compiled code; numba's `np.searchsorted` would import ``scipy.linalg``, even from cached code."""

from __future__ import annotations

from typing import Any

from dalify.base.compiling import njit


@njit(cache=True, inline="always")
def last_at_most(values: Any, limit: int) -> int:
    """Return the index of the last of ascending integers that is at most `limit`; -1 if there is none."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low - 1
