"""Boxes of a ragged chunk as one array of four numbers each.

Alone because operators on boxes take any number of axes in front of the four numbers, or one axis of boxes one after
the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.data.rows import Rows

__all__ = ["box_rows"]

_NUMBERS = 4


def box_rows(rows: Rows) -> tuple[Any, np.ndarray]:
    """Return boxes ``[total, 4]``, a view, and where each sample begins: int64 ``[N + 1]``, in boxes.

    Args:
        rows: samples whose last axis holds a multiple of four numbers.
    """
    values = rows.values
    if values.ndim == 1:
        return values.reshape(-1, _NUMBERS), rows.starts // _NUMBERS
    per_row = math.prod(values.shape[1:]) // _NUMBERS
    return values.reshape(len(values) * per_row, _NUMBERS), rows.starts if per_row == 1 else rows.starts * per_row
