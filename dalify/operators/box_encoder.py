"""Assign bounding boxes to anchors, as single-shot detectors are trained."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.registry import Spec, operator


@operator(outputs=2)
def box_encoder(
    boxes: Spec,
    labels: Spec,
    /,
    *,
    anchors: list[float],
    criteria: float = 0.5,
    means: list[float] = [0.0, 0.0, 0.0, 0.0],  # noqa: B006 -- signatures are schemas, nobody changes this list
    offset: bool = False,
    scale: float = 1.0,
    stds: list[float] = [1.0, 1.0, 1.0, 1.0],  # noqa: B006
) -> tuple[Spec, Spec]:
    """Assign bounding boxes to anchors (Liu et al., SSD: Single Shot MultiBox Detector, arXiv:1512.02325).

    Each anchor gets the box with the largest intersection over union, if that is above `criteria`; in any case the best
    anchor of each box gets that box. Other anchors get label 0 and keep their own coordinates (zeros with `offset`).

    Args:
        boxes: float32 [n, 4], left, top, right, bottom.
        labels: n integers.
        anchors: boxes in the same form, one after the other.
        criteria: threshold of the intersection over union, 0 to 1.
        means: subtracted from the offsets, in the order x, y, w, h.
        offset: return offsets from the anchors: ``(x - x_anchor) / w_anchor``, ``log(w / w_anchor)``, less the means
            and divided by `stds`.
        scale: factor of boxes and anchors before offsets are computed; it cancels out.
        stds: divisors of the offsets.

    Returns:
        float32 [anchors, 4]: x and y of the centre, width, height, or offsets; int32 [anchors] labels.

    Raises:
        ArgumentValueError: `anchors`, `means` or `stds` of a wrong number of elements, `criteria` out of range.
        ShapeError: boxes that are not [n, 4], or not one label each.

    Example:
        >>> boxes, labels = fn.box_encoder(boxes, labels, anchors=anchors)  # doctest: +SKIP
    """
    if not anchors or len(anchors) % 4:
        raise ArgumentValueError(f"anchors must be boxes of 4 numbers; got {len(anchors)} numbers.")
    if not 0 <= criteria <= 1:
        raise ArgumentValueError(f"criteria must lie between 0 and 1; got {criteria:g}.")
    if len(means) != 4 or len(stds) != 4:
        raise ArgumentValueError(f"means and stds need 4 numbers each; got {len(means)} and {len(stds)}.")
    count = len(anchors) // 4
    if boxes.shape is not None and labels.shape is not None:
        if len(boxes.shape) != 2 or boxes.shape[1] != 4:
            raise ShapeError(f"boxes must be [n, 4]; got {boxes.shape}.")
        if int(np.prod(labels.shape)) != boxes.shape[0]:
            raise ShapeError(f"{boxes.shape[0]} boxes need as many labels; got {labels.shape}.")
    return Spec(DALIDataType.FLOAT, 2, "", (count, 4)), Spec(DALIDataType.INT32, 1, "", (count,))


def _centred(boxes: np.ndarray) -> np.ndarray:
    """Turn left, top, right, bottom into centre, width and height."""
    start, end = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([(start + end) * np.float32(0.5), end - start], axis=-1)


def _overlaps(boxes: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Return the intersection over union [boxes, anchors]."""
    start = np.maximum(boxes[:, None, :2], anchors[None, :, :2])
    end = np.minimum(boxes[:, None, 2:], anchors[None, :, 2:])
    common = np.prod(np.clip(end - start, 0, None), axis=2)
    areas = [np.prod(items[:, 2:] - items[:, :2], axis=1) for items in (boxes, anchors)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(common / (areas[0][:, None] + areas[1][None] - common))


@box_encoder.cpu
def _(out_boxes, out_labels, boxes, labels, *, anchors, criteria, means, offset, scale, stds):
    anchor_boxes = np.array(anchors, np.float32).reshape(-1, 4)
    anchor_places = _centred(anchor_boxes)
    for n in range(len(boxes)):
        out_boxes[n] = 0 if offset else anchor_places
        out_labels[n] = 0
        if not boxes.shape[1]:
            continue
        overlaps = _overlaps(boxes[n], anchor_boxes)
        best_box, best = overlaps.argmax(axis=0), overlaps.max(axis=0)
        for box, anchor in enumerate(overlaps.argmax(axis=1)):  # one after the other: the last box wins an anchor
            best_box[anchor], best[anchor] = box, 2
        chosen = best > criteria
        places = _centred(boxes[n])[best_box[chosen]]
        if offset:
            ours, theirs = places * np.float32(scale), anchor_places[chosen] * np.float32(scale)
            with np.errstate(divide="ignore"):  # a box without extent: minus infinity
                parts = [(ours[:, :2] - theirs[:, :2]) / theirs[:, 2:], np.log(ours[:, 2:] / theirs[:, 2:])]
            places = (np.concatenate(parts, axis=1) - np.float32(means)) / np.float32(stds)
        out_boxes[n, chosen] = places
        out_labels[n, chosen] = labels[n].reshape(-1)[best_box[chosen]]
