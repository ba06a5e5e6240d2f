"""Blocks of entries that are read together, such as row groups and chunks.

Formats define them and samplers use them for the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blocks"]


class Blocks(NamedTuple):
    """The blocks of an index, in order.

    Attributes:
        entries: number of entries of each block, int64 ``[B]``.
        size_bytes: memory of each block, int64 ``[B]``.
        max_bytes: maximum memory of blocks in use at a time.
    """

    entries: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    max_bytes: int
