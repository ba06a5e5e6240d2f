"""Assign bounding boxes to anchors, for training single-shot detectors."""

from __future__ import annotations

from dalify.data.rows import Rows
from dalify.parameter_groups.box_encoding import BoxEncoding
from dalify.registry import Spec, operator


@operator(alphabetical=True, outputs=2)
def box_encoder(boxes: Spec, labels: Spec, /, *, encoding: BoxEncoding) -> tuple[Spec, Spec]:
    """Assign bounding boxes to anchors (Liu et al., SSD: Single Shot MultiBox Detector, arXiv:1512.02325).

    Each anchor gets the box with the largest intersection over union if that is above `criteria`. The best anchor of
    each box always gets that box. Ties go to the last one. Other anchors get label 0 and keep their own coordinates
    (zeros with `offset`).

    Args:
        boxes: float32 [n, 4], left, top, right, bottom.
        labels: n integers.

    Returns:
        float32 [anchors, 4]: x and y of the center, width, height, or offsets; int32 [anchors] labels.

    Raises:
        ArgumentValueError: `anchors`, `means` or `stds` has the wrong number of elements, or `criteria` is out of
            range.
        DTypeError: the boxes are not float32.
        ShapeError: the boxes are not [n, 4], or the number of labels differs.

    Example:
        >>> boxes, labels = fn.box_encoder(boxes, labels, anchors=anchors)  # doctest: +SKIP
    """
    return encoding.specs(boxes, labels)


@box_encoder.cpu_rows
@box_encoder.gpu_rows
def _(out_boxes: Rows, out_labels: Rows, boxes: Rows, labels: Rows, *, encoding: BoxEncoding) -> None:
    encoding.match(out_boxes, out_labels, boxes, labels)
