"""Operators for training SSD: crop with boxes, flip of boxes, matching of boxes to anchors.

Boxes have shape ``[N, max, 4]``: left, top, right, bottom as fractions of the image, of which the first `lengths` are
valid. Each operator removes the padding, composes an operator of dalify, and pads again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dalify import fn as dali
from dalify import math as graph_math
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, option_error_text
from dalify.data import DALIDataType
from dalify.graph import DataNode
from dalify.mediapipe.media_types import MetadataOps
from dalify.mediapipe.node import Value, operator, seed_of

MAX_BOXES = 200
_IMAGE_SIZE = 300
_CELLS = (38, 19, 10, 5, 3, 1)
_STEPS = (8, 16, 32, 64, 100, 300)
_SIDES = (21, 45, 99, 153, 207, 261, 315)
_RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))
_STAGES = {MetadataOps.crop: "crop", MetadataOps.flip: "flip", MetadataOps.encode: "encode"}


@lru_cache(maxsize=1)
def default_boxes() -> np.ndarray[Any, Any]:
    """Return the anchors of SSD300 for COCO: float32 ``[8732, 4]``, left, top, right, bottom.

    Six grids of cells; each cell has a square, a larger square, and a tall and a wide box for each ratio. Centers
    and extents are clipped to the image, edges are not.
    """
    boxes = []
    for cells, step, side, next_side, ratios in zip(_CELLS, _STEPS, _SIDES, _SIDES[1:], _RATIOS, strict=False):
        small = side / _IMAGE_SIZE
        between = math.sqrt(small * next_side / _IMAGE_SIZE)
        extents = [(small, small), (between, between)]
        for ratio in ratios:
            wide, narrow = small * math.sqrt(ratio), small / math.sqrt(ratio)
            extents += [(wide, narrow), (narrow, wide)]
        centers = (np.arange(cells) + 0.5) * step / _IMAGE_SIZE
        x, y = np.meshgrid(centers, centers)
        for width, height in extents:
            grid = np.stack([x, y, np.full_like(x, width), np.full_like(x, height)], axis=-1)
            boxes.append(grid.reshape(-1, 4))
    centered = np.concatenate(boxes).astype(np.float32).clip(0, 1)
    half = np.float32(0.5) * centered[:, 2:]
    return np.concatenate([centered[:, :2] - half, centered[:, :2] + half], axis=1)


def _without_padding(node: DataNode, lengths: Value) -> DataNode:
    """Remove the padding."""
    return node[0 : dali.cast(lengths.node, dtype=DALIDataType.INT32)]


def _with_padding(node: DataNode) -> DataNode:
    return dali.pad(node, axes=[0], shape=[MAX_BOXES])


@operator(outputs=4)
def SSDCropWindowGen(
    sizes: Value,
    boxes: Value,
    labels: Value,
    lengths: Value,
    /,
    *,
    seed: int | None = None,
    num_iterations: int = 1,
    min_width: float = 0.3,
    max_width: float = 1.0,
    min_ratio: float = 0.5,
    max_ratio: float = 2.0,
    min_iou: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
) -> tuple[Value, Value, Value, Value]:
    """Choose a random window that keeps enough of the boxes, as in the training of SSD (Liu et al., arXiv:1512.02325).

    One of these is chosen: the whole image; a window that overlaps every box by at least one of `min_iou`; any window.
    Boxes whose center is outside are dropped; the others are clipped and made relative to the window.

    Args:
        sizes: height and width of each image.
        boxes: left, top, right, bottom, as fractions of the image.
        labels: one for each box.
        lengths: number of boxes.
        seed: seed of the random numbers.
        num_iterations: number of windows to try before the criterion is chosen again.
        min_width: minimum extent of a window, as a fraction of the image's width and height.
        max_width: maximum extent.
        min_ratio: minimum aspect ratio, width / height, of a window in these fractions.
        max_ratio: maximum aspect ratio.
        min_iou: intersections over union, one of which all boxes must reach.

    Returns:
        remaining boxes, labels and lengths; windows for ``ImageDecoder``, float32 ``[N, 4]``: x, y, width, height
        as fractions of the image, aligned to pixels.
    """
    if num_iterations < 1:
        raise ArgumentValueError(f"num_iterations must be at least 1; got {num_iterations}.")
    anchor, extent, kept, kept_labels = dali.random_bbox_crop(
        _without_padding(boxes.node, lengths),
        _without_padding(labels.node, lengths),
        thresholds=[0.0, *(float(iou) for iou in min_iou)],
        scaling=[min_width, max_width],
        aspect_ratio=[min_ratio, max_ratio],
        num_attempts=num_iterations,
        allow_no_crop=True,
        ltrb=True,
        quiet=True,
        seed=seed_of(seed),
    )
    pixels = dali.cast(dali.stack(sizes.node[1], sizes.node[0]), dtype=DALIDataType.FLOAT)
    start = graph_math.floor(anchor * pixels)
    end = graph_math.floor((anchor + extent) * pixels + 1e-3)  # 1.0 may have been rounded down
    window = dali.cat(start / pixels, (end - start) / pixels, axis=0)
    count = dali.cast_like(kept.shape()[0], lengths.node)
    return (
        boxes.with_node(_with_padding(kept)),
        labels.with_node(_with_padding(kept_labels)),
        lengths.with_node(count),
        Value(dali.cast(window, dtype=DALIDataType.FLOAT)),
    )


@operator()
def SSDBBoxFlip(is_flip: Value, boxes: Value, lengths: Value, /) -> Value:
    """Flip boxes left to right, for images whose `is_flip` is not 0.

    Args:
        is_flip: one number for each image; the same as for ``RandomFlip``.
        boxes: left, top, right, bottom, as fractions of the image.
        lengths: number of boxes.
    """
    chosen = dali.cast(is_flip.node, dtype=DALIDataType.INT32)
    return boxes.with_node(
        _with_padding(dali.bb_flip(_without_padding(boxes.node, lengths), ltrb=True, horizontal=chosen))
    )


@operator(outputs=2)
def SSDEncode(boxes: Value, labels: Value, lengths: Value, /, *, criteria: float = 0.5) -> tuple[Value, Value]:
    """Match boxes to the 8732 anchors of SSD300.

    An anchor is matched to the box with the largest overlap if that is above `criteria`; the best anchor of each box is
    always matched to it. Other anchors keep their own position, with label 0.

    Args:
        boxes: left, top, right, bottom, as fractions of the image.
        labels: one for each box.
        lengths: number of boxes.
        criteria: intersection over union.

    Returns:
        boxes, float32 ``[N, 8732, 4]``: x and y of the center, width, height; labels ``[N, 8732]``.
    """
    encoded, classes = dali.box_encoder(
        _without_padding(boxes.node, lengths),
        dali.cast(_without_padding(labels.node, lengths), dtype=DALIDataType.INT32),
        anchors=default_boxes().ravel().tolist(),
        criteria=criteria,
    )
    return boxes.with_node(encoded), labels.with_node(dali.cast_like(classes, labels.node))


def _results(arguments: Mapping[str, Any]) -> int:
    return 5 + (MetadataOps.crop in arguments["serialize"])


@operator(inputs=(5, 6), outputs=_results)
def SSDMetadata(
    ids: Value,
    sizes: Value,
    boxes: Value,
    labels: Value,
    lengths: Value,
    flip: Value | None = None,
    /,
    *,
    workers: int = 1,
    serialize: Sequence[int] = (MetadataOps.crop, MetadataOps.flip, MetadataOps.encode),
    seed: int | None = None,
) -> tuple[Value, ...]:
    """Apply several steps to boxes and labels: ``SSDCropWindowGen``, ``SSDBBoxFlip``, ``SSDEncode``.

    Args:
        ids: returned unchanged.
        sizes: height and width of each image; returned unchanged.
        boxes: left, top, right, bottom, as fractions of the image.
        labels: one for each box.
        lengths: number of boxes.
        flip: one number for each image; required for the flip.
        workers: accepted but ignored: the threads of the pipe are used.
        serialize: the steps, from ``MetadataOps``, in order.
        seed: seed of the windows.

    Returns:
        ids, sizes, boxes, labels, lengths; with a crop, also the windows for ``ImageDecoder``.
    """
    del workers
    unknown = next((step for step in serialize if step not in _STAGES), None)
    if unknown is not None:
        names = [f"MetadataOps.{name}" for name in _STAGES.values()]
        raise ArgumentValueError(option_error_text("serialize", unknown, names))
    if MetadataOps.flip in serialize and flip is None:
        raise ArgumentTypeError("the step MetadataOps.flip needs the input flip, one number for each image.")
    windows = []
    for step in serialize:
        if step == MetadataOps.crop:
            crop = SSDCropWindowGen.operator.rule
            boxes, labels, lengths, window = crop(sizes, boxes, labels, lengths, seed=seed)
            windows.append(window)
        elif step == MetadataOps.flip:
            boxes = SSDBBoxFlip.operator.rule(flip, boxes, lengths)
        else:
            boxes, labels = SSDEncode.operator.rule(boxes, labels, lengths)
    return (ids, sizes, boxes, labels, lengths, *windows[-1:])
