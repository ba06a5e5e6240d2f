"""The shapes of the samples of a chunk, and derived values, computed in one compiled call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalify.base.optional import LazyModule
from dalify.data.batch import ALIGNMENT_BYTES

if TYPE_CHECKING:
    from dalify.kernels.arrays import shapes as compiled
else:
    # This imports numba, which pipelines without compiled kernels do not need.
    compiled = LazyModule("dalify.kernels.arrays.shapes", "shapes of samples")


class ShapeTable:
    """The shapes of the samples of a chunk.

    Args:
        shapes: int64 ``[N, ndim]``, N at least 1; must not change.
        item_bytes: size of one element in bytes; any number if memory for the samples exists already.

    Attributes:
        extents: each extent, -1 if it differs between the samples.
        is_uniform: True if all shapes are equal.
        largest: index of the first of the samples with most elements.
        most_elements: number of elements of that sample, at most 2**62.
        is_full: True if no sample is empty.
    """

    __slots__ = ("_offsets", "extents", "is_full", "is_uniform", "largest", "most_elements", "shapes")

    def __init__(self, shapes: NDArray[np.int64], item_bytes: int = 1) -> None:
        self.shapes = shapes
        self._offsets: dict[int, tuple[NDArray[np.int64], int]] = {}
        *extents, self.largest, self.most_elements, is_full = self._describe(item_bytes)
        self.extents = tuple(extents)
        self.is_uniform = -1 not in extents
        self.is_full = is_full == 1

    def _describe(self, item_bytes: int) -> list[int]:
        shapes = self.shapes
        # A copy if necessary, so that the function is compiled for one type of arguments.
        table = shapes if shapes.flags.carray else shapes.copy()
        offsets, found = np.empty(len(table), np.int64), np.empty(table.shape[1] + 4, np.int64)
        compiled.describe_shapes(table, item_bytes, ALIGNMENT_BYTES, offsets, found)
        *attributes, size_bytes = found.tolist()
        self._offsets[item_bytes] = offsets, size_bytes
        return attributes

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of one sample."""
        return tuple(self.shapes[index].tolist())

    def block_offsets(self, item_bytes: int) -> tuple[NDArray[np.int64], int]:
        """Return the offsets of the samples in a block and its size, in bytes, like `block_offsets` of ``data``."""
        if item_bytes not in self._offsets:
            self._describe(item_bytes)
        return self._offsets[item_bytes]
