"""Move bounding boxes with an image that is pasted on a larger canvas."""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import DTypeError, ShapeError
from dalify.data import DALIDataType, Rows
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.boxes.box_rows import box_rows
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

    Corners go to ``corner / ratio + min(paste * margin, margin)`` with ``margin = 1 - 1 / ratio``, extents to
    ``extent / ratio``.

    Args:
        x: float32 boxes; the last axis holds four numbers per box.
        ltrb: boxes are left, top, right, bottom; False: left, top, width, height.
        paste_x: horizontal position of the image on the canvas: 0 left, 1 right.
        paste_y: vertical position of the image on the canvas: 0 top, 1 bottom.
        ratio: extents of the canvas as a multiple of the extents of the image.

    Returns:
        Same shape and layout.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: the length of the last axis is not a multiple of four.

    Example:
        >>> boxes = fn.bbox_paste(boxes, ratio=2.0, paste_x=0.1, paste_y=0.6)  # doctest: +SKIP
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(
            f"boxes must be float32; got {x.dtype_text}.", hint="Convert them: fn.cast(boxes, dtype=types.FLOAT)."
        )
    if x.ndim == 0 or (x.shape is not None and x.shape[-1] % 4):
        raise ShapeError(f"boxes must have four numbers in the last axis; got the shape {x.shape}.")
    return x


@njit(nogil=True, cache=True, error_model="numpy")
def _paste(out, x, starts, ltrb, paste_x, paste_y, ratio):
    for n in range(starts.size - 1):
        scale = 1.0 / ratio[n]
        margin = 1 - scale
        shift = (min(paste_x[n] * margin, margin), min(paste_y[n] * margin, margin))
        for row in range(starts[n], starts[n + 1]):
            for axis in range(2):
                out[row, axis] = x[row, axis] * scale + shift[axis]
                out[row, axis + 2] = x[row, axis + 2] * scale + (shift[axis] if ltrb else 0.0)


@bbox_paste.cpu_rows
def _(out: Rows, x: Rows, *, ltrb: bool, paste_x: np.ndarray, paste_y: np.ndarray, ratio: np.ndarray) -> None:
    boxes, starts = box_rows(x)
    arguments = (read_only(paste_x), read_only(paste_y), read_only(ratio))
    _paste(box_rows(out)[0], read_only(boxes), starts, ltrb, *arguments)


@bbox_paste.gpu_rows
def _(out: Rows, x: Rows, *, ltrb: bool, paste_x: np.ndarray, paste_y: np.ndarray, ratio: np.ndarray) -> None:
    boxes, starts = box_rows(x)
    scale = 1 / ratio.astype(np.float64)[:, None]
    moved = np.minimum(np.stack([paste_x, paste_y], axis=1) * (1 - scale), 1 - scale)
    shift = np.concatenate([moved, moved if ltrb else np.zeros_like(moved)], axis=1)
    sample = np.repeat(np.arange(len(x)), np.diff(starts))
    scales, shifts = (uploaded(item[sample], boxes.device) for item in (scale, shift))
    box_rows(out)[0].copy_(boxes * scales + shifts)
