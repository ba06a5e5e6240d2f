"""Mirror boxes and assign them to anchors, on the CPU.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

import numpy as np

from dalify.base.errors import DalifyError
from dalify.data.rows import Rows
from dalify.kernels.boxes.box_flip import check_boxes_to_flip, flip_boxes
from dalify.parameter_groups.box_encoding import BoxEncoding
from dalify.registry import PerSample, Spec, operator


@operator(outputs=2)
def _flip_box_encoder(
    boxes: Spec,
    labels: Spec,
    /,
    *,
    horizontal: PerSample[int] = 1,
    ltrb: bool = False,
    vertical: PerSample[int] = 0,
    encoding: BoxEncoding,
) -> tuple[Spec, Spec]:
    """Mirror boxes, then assign them to anchors.

    Args:
        boxes: see ``bb_flip``.
        labels: see ``box_encoder``.
        horizontal: see ``bb_flip``.
        ltrb: see ``bb_flip``.
        vertical: see ``bb_flip``.

    Returns:
        see ``box_encoder``.
    """
    check_boxes_to_flip(boxes)
    try:
        return encoding.specs(boxes, labels)
    except DalifyError as error:
        error.argument = "anchors"  # it names the call
        raise


@_flip_box_encoder.cpu_rows
def _(
    out_boxes: Rows,
    out_labels: Rows,
    boxes: Rows,
    labels: Rows,
    *,
    horizontal: np.ndarray,
    ltrb: bool,
    vertical: np.ndarray,
    encoding: BoxEncoding,
) -> None:
    flipped = Rows(np.empty_like(boxes.values), boxes.starts)
    flip_boxes(flipped, boxes, horizontal, vertical, ltrb)
    encoding.match(out_boxes, out_labels, flipped, labels)
