"""Move bounding boxes with an image that is pasted on a larger canvas."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.registry import PerSample, Spec, operator


@operator
def bbox_paste(
    x: Spec,
    /,
    *,
    ltrb: bool = False,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float],
) -> Spec:
    """Move bounding boxes in relative coordinates with an image that is pasted on a larger canvas.

    Corners go to ``corner / ratio + paste * (1 - 1 / ratio)``, extents to ``extent / ratio``
    (DALI's documentation of fn.bbox_paste).

    Args:
        x: float32 boxes, four numbers each, last.
        ltrb: boxes are left, top, right, bottom; False: left, top, width, height.
        paste_x: where the image lies on the canvas: 0 left, 1 right.
        paste_y: likewise: 0 top, 1 bottom.
        ratio: extents of the canvas, as a multiple of those of the image.

    Returns:
        Same shape and layout.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: the last axis is no multiple of four numbers.

    Example:
        >>> boxes = fn.bbox_paste(boxes, ratio=2.0, paste_x=0.1, paste_y=0.6)  # doctest: +SKIP
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(f"boxes must be float32; got {x.dtype!s}.", hint="fn.cast(boxes, dtype=types.FLOAT)")
    if x.ndim == 0 or (x.shape is not None and x.shape[-1] % 4):
        raise ShapeError(f"boxes have four numbers, in the last axis; got the shape {x.shape}.")
    return x


@bbox_paste.cpu
def _(out, x, *, ltrb, paste_x, paste_y, ratio):
    scale = (1 / ratio.astype(np.float64))[:, None, None]
    moved = np.stack([paste_x, paste_y], axis=1)[:, None, :] * (1 - scale)
    shift = np.concatenate([moved, moved if ltrb else np.zeros_like(moved)], axis=2)
    out.reshape(len(x), -1, 4)[...] = x.reshape(len(x), -1, 4) * scale + shift
