"""Entries that are read together: row groups, chunks.

Alone because a format knows its blocks and a sampler orders by them, and neither may know the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blocks"]


class Blocks(NamedTuple):
    """The blocks of an index, one after the other.

    Attributes:
        entries: how many each block has, int64 ``[B]``.
        size_bytes: memory that each takes, int64 ``[B]``.
        most_bytes: of blocks that may be in use at once.
    """

    entries: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    most_bytes: int
