"""Boxes of a ragged chunk as one array with four numbers each.

Operators on boxes accept any number of axes before the four numbers, or one axis of concatenated boxes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.data.rows import Rows

_NUMBERS = 4


def box_rows(rows: Rows) -> tuple[Any, np.ndarray]:
    """Return a view of all boxes ``[total, 4]``, and the index of the first box of each sample, int64 ``[N + 1]``.

    Args:
        rows: samples; the extent of the last axis is a multiple of four.
    """
    values = rows.values
    if values.ndim == 1:
        return values.reshape(-1, _NUMBERS), rows.starts // _NUMBERS
    per_row = math.prod(values.shape[1:]) // _NUMBERS
    return values.reshape(len(values) * per_row, _NUMBERS), rows.starts if per_row == 1 else rows.starts * per_row
