"""Mirror bounding boxes with their image."""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DTypeError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.data.rows import Rows
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.boxes.box_rows import box_rows
from dalify.registry import PerSample, Spec, operator


@operator
def bb_flip(x: Spec, /, *, horizontal: PerSample[int] = 1, ltrb: bool = False, vertical: PerSample[int] = 0) -> Spec:
    """Mirror bounding boxes in relative coordinates (0 to 1) with their image.

    Args:
        x: float32 boxes; the last axis holds four numbers per box.
        horizontal: non-zero mirrors left and right; the default.
        ltrb: boxes are left, top, right, bottom; False: left, top, width, height.
        vertical: non-zero mirrors top and bottom.

    Returns:
        Same shape and layout.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: the length of the last axis is not a multiple of four.

    Example:
        >>> boxes = fn.bb_flip(boxes, ltrb=True, horizontal=fn.random.coin_flip())  # doctest: +SKIP
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(
            f"boxes must be float32; got {x.dtype_text}.", hint="Convert them: fn.cast(boxes, dtype=types.FLOAT)."
        )
    if x.ndim == 0 or (x.shape is not None and x.shape[-1] % 4):
        raise ShapeError(f"boxes must have four numbers in the last axis; got the shape {x.shape}.")
    return x


# Keeps the GIL, because releasing it takes longer than the computation.
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


@bb_flip.cpu_rows
def _(out: Rows, x: Rows, *, horizontal: np.ndarray, vertical: np.ndarray, ltrb: bool) -> None:
    boxes, starts = box_rows(x)
    _flip(box_rows(out)[0], read_only(boxes), starts, read_only(horizontal), read_only(vertical), ltrb)


@bb_flip.gpu_rows
def _(out: Rows, x: Rows, *, horizontal: np.ndarray, vertical: np.ndarray, ltrb: bool) -> None:
    boxes, starts = box_rows(x)
    sample = np.repeat(np.arange(len(x)), np.diff(starts))
    flips = uploaded((np.stack([horizontal, vertical], axis=1) != 0)[sample], boxes.device)
    start, end = boxes[:, :2], boxes[:, 2:]
    flipped = (1 - end, 1 - start) if ltrb else (1 - start - end, end)
    both = [torch.where(flips, new, old) for new, old in zip(flipped, (start, end), strict=True)]
    box_rows(out)[0].copy_(torch.cat(both, dim=1))
