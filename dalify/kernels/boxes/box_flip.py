"""Mirrors boxes in relative coordinates, on the CPU."""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DTypeError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.rows import Rows
from dalify.data.spec import Spec
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.boxes.box_rows import box_rows

__all__ = ["check_boxes_to_flip", "flip_boxes"]


def check_boxes_to_flip(x: Spec) -> None:
    """Check the input of ``bb_flip``.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: the length of the last axis is not a multiple of four.
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(f"boxes must be float32; got {x.dtype!s}.", hint="fn.cast(boxes, dtype=types.FLOAT)")
    if x.ndim == 0 or (x.shape is not None and x.shape[-1] % 4):
        raise ShapeError(f"boxes must have four numbers in the last axis; got the shape {x.shape}.")


def flip_boxes(out: Rows, x: Rows, horizontal: np.ndarray, vertical: np.ndarray, ltrb: bool) -> None:
    """Mirror boxes.

    Args:
        out: output, float32, last axis a multiple of four.
        x: the same form.
        horizontal: [N], not 0: mirror left and right.
        vertical: [N], not 0: mirror top and bottom.
        ltrb: boxes are left, top, right, bottom; otherwise left, top, width, height.
    """
    boxes, starts = box_rows(x)
    _flip(box_rows(out)[0], read_only(boxes), starts, read_only(horizontal), read_only(vertical), ltrb)


# It keeps the GIL: it takes less time than releasing it.
@njit(cache=True)
def _flip(out, x, starts, horizontal, vertical, ltrb):
    one = np.float32(1)
    for n in range(starts.size - 1):
        flips = (horizontal[n] != 0, vertical[n] != 0)
        for row in range(starts[n], starts[n + 1]):
            for axis in range(2):
                start, end = x[row, axis], x[row, axis + 2]
                if not flips[axis]:
                    out[row, axis], out[row, axis + 2] = start, end
                elif ltrb:
                    out[row, axis], out[row, axis + 2] = one - end, one - start
                else:
                    out[row, axis], out[row, axis + 2] = one - start - end, end
