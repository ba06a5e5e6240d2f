"""Bisection in compiled code. `np.searchsorted` of numba would import all of ``scipy.linalg``, even from saved code."""

from __future__ import annotations

from typing import Any

from dalify.base.compiling import njit

__all__ = ["last_at_most"]


@njit(cache=True, inline="always")
def last_at_most(values: Any, limit: int) -> int:
    """Return the index of the last of some ascending integers that is not greater than `limit`; -1 if there is none."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low - 1
