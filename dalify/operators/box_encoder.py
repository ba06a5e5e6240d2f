"""Assign bounding boxes to anchors, for training single-shot detectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.base.recent import Recent
from dalify.base.wording import counted
from dalify.data import DALIDataType, Rows
from dalify.kernels.boxes.box_matching import anchor_table, match, match_on_device
from dalify.registry import Parameters, Spec, operator


@dataclass(slots=True)
class Encoding(Parameters):
    """Anchors, and how boxes are assigned to them and encoded.

    Attributes:
        anchors: boxes in the same format, concatenated.
        criteria: threshold for the intersection over union, in [0, 1].
        means: subtracted from the offsets, in the order x, y, w, h.
        offset: return offsets from the anchors: ``(x - x_anchor) / w_anchor``, ``log(w / w_anchor)``, minus the means
            and divided by `stds`.
        scale: scales boxes and anchors before offsets are computed; it cancels out.
        stds: divisors of the offsets.
    """

    anchors: list[float]
    criteria: float = 0.5
    means: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    offset: bool = False
    scale: float = 1.0
    stds: list[float] = field(default_factory=lambda: [1.0, 1.0, 1.0, 1.0])


@operator(alphabetical=True, outputs=2)
def box_encoder(boxes: Spec, labels: Spec, /, *, encoding: Encoding) -> tuple[Spec, Spec]:
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
    if boxes.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(
            f"boxes must be float32; got {boxes.dtype_text}.", hint="Convert them: fn.cast(boxes, dtype=types.FLOAT)."
        )
    if not encoding.anchors or len(encoding.anchors) % 4:
        raise ArgumentValueError(f"anchors must be boxes of 4 numbers; got {counted(len(encoding.anchors), 'number')}.")
    if not 0 <= encoding.criteria <= 1:
        raise ArgumentValueError(f"criteria must be between 0 and 1; got {encoding.criteria:g}.")
    if len(encoding.means) != 4 or len(encoding.stds) != 4:
        raise ArgumentValueError(
            f"means and stds must have 4 numbers each; got {len(encoding.means)} and {len(encoding.stds)}."
        )
    count = len(encoding.anchors) // 4
    if boxes.shape is not None and labels.shape is not None:
        if len(boxes.shape) != 2 or boxes.shape[1] != 4:
            raise ShapeError(f"boxes must be [n, 4]; got {boxes.shape}.")
        is_row = labels.shape[0:1] == boxes.shape[0:1] and math.prod(labels.shape[1:]) == 1
        if not is_row and math.prod(labels.shape) != boxes.shape[0]:
            raise ShapeError(
                f"there must be one label per box; got {counted(boxes.shape[0], 'box')} and labels of "
                f"shape {labels.shape}."
            )
    return Spec(DALIDataType.FLOAT, 2, "", (count, 4)), Spec(DALIDataType.INT32, 1, "", (count,))


_tables: Recent[tuple[Any, np.ndarray]] = Recent(16)


def _table_of(anchors: Sequence[float]) -> np.ndarray:
    """Return the table of a tuple of anchors, cached by identity: each step passes the same large tuple."""
    found = _tables.get(id(anchors))
    if found is None or found[0] is not anchors:
        table = anchor_table(np.array(anchors, np.float32).reshape(-1, 4))
        found = anchors, table
        _tables.put(id(anchors), found)
    return found[1]


@lru_cache(64)  # nothing changes the array
def _numbers(values: tuple[float, ...]) -> np.ndarray:
    return np.array(values, np.float32)


@box_encoder.cpu_rows
@box_encoder.gpu_rows
def _(out_boxes: Rows, out_labels: Rows, boxes: Rows, labels: Rows, *, encoding: Encoding) -> None:
    kernel: Any = match if isinstance(boxes.values, np.ndarray) else match_on_device
    kernel(
        out_boxes.dense(),
        out_labels.dense(),
        boxes,
        labels.values.reshape(-1),
        _table_of(encoding.anchors),
        criteria=encoding.criteria,
        offset=encoding.offset,
        scale=encoding.scale,
        means=_numbers(tuple(encoding.means)),
        stds=_numbers(tuple(encoding.stds)),
    )
