"""Mirror bounding boxes with their image."""

from __future__ import annotations

from typing import Any

from dalify.base.errors import DTypeError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.registry import PerSample, Spec, operator


@operator
def bb_flip(x: Spec, /, *, horizontal: PerSample[int] = 1, ltrb: bool = False, vertical: PerSample[int] = 0) -> Spec:
    """Mirror bounding boxes in relative coordinates (0 to 1) with their image.

    Args:
        x: float32 boxes, four numbers each, last.
        horizontal: non-zero mirrors left and right; on by default.
        ltrb: boxes are left, top, right, bottom; False: left, top, width, height.
        vertical: non-zero mirrors top and bottom.

    Returns:
        Same shape and layout.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: the last axis is no multiple of four numbers.

    Example:
        >>> boxes = fn.bb_flip(boxes, ltrb=True, horizontal=fn.random.coin_flip())  # doctest: +SKIP
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(f"boxes must be float32; got {x.dtype!s}.", hint="fn.cast(boxes, dtype=types.FLOAT)")
    if x.ndim == 0 or (x.shape is not None and x.shape[-1] % 4):
        raise ShapeError(f"boxes have four numbers, in the last axis; got the shape {x.shape}.")
    return x


def _flip(out: Any, x: Any, horizontal: Any, vertical: Any, ltrb: bool) -> None:
    """Mirror [N, ...] boxes; `horizontal` and `vertical` hold booleans [N]."""
    source, target = x.reshape(len(x), -1, 4), out.reshape(len(x), -1, 4)
    target[...] = source
    for axis, chosen in ((0, horizontal), (1, vertical)):
        start, end = source[chosen, :, axis], source[chosen, :, axis + 2]
        if ltrb:
            target[chosen, :, axis], target[chosen, :, axis + 2] = 1 - end, 1 - start
        else:
            target[chosen, :, axis] = 1 - start - end


@bb_flip.cpu
def _(out, x, *, horizontal, vertical, ltrb):
    _flip(out, x, horizontal != 0, vertical != 0, ltrb)


@bb_flip.gpu
def _(out, x, *, horizontal, vertical, ltrb):
    left_right = torch.as_tensor(horizontal != 0, device=x.device)
    _flip(out, x, left_right, torch.as_tensor(vertical != 0, device=x.device), ltrb)
