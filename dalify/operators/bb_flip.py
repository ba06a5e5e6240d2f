"""Mirror bounding boxes with their image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.optional import torch
from dalify.data.rows import Rows
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.boxes.box_flip import check_boxes_to_flip, flip_boxes
from dalify.kernels.boxes.box_rows import box_rows
from dalify.parameter_groups.box_encoding import BoxEncoding
from dalify.registry import PerSample, Spec, argument_names, operator


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
    check_boxes_to_flip(x)
    return x


@bb_flip.cpu_rows
def _(out: Rows, x: Rows, *, horizontal: np.ndarray, vertical: np.ndarray, ltrb: bool) -> None:
    flip_boxes(out, x, horizontal, vertical, ltrb)


@bb_flip.gpu_rows
def _(out: Rows, x: Rows, *, horizontal: np.ndarray, vertical: np.ndarray, ltrb: bool) -> None:
    boxes, starts = box_rows(x)
    sample = np.repeat(np.arange(len(x)), np.diff(starts))
    flips = uploaded((np.stack([horizontal, vertical], axis=1) != 0)[sample], boxes.device)
    start, end = boxes[:, :2], boxes[:, 2:]
    flipped = (1 - end, 1 - start) if ltrb else (1 - start - end, end)
    both = [torch.where(flips, new, old) for new, old in zip(flipped, (start, end), strict=True)]
    box_rows(out)[0].copy_(torch.cat(both, dim=1))


@bb_flip.before(
    "box_encoder",
    "merges",
    into="_flip_box_encoder",
    takes=argument_names(BoxEncoding),
    keeps=("horizontal", "ltrb", "vertical"),
)
def _(flip: Mapping[str, Any], encoder: Mapping[str, Any], source: Spec, device: str) -> bool:
    return device == "cpu"
