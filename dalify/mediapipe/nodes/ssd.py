"""Operators of SSD's training: a crop with its boxes, a mirror of boxes, the anchors they are matched to.

Alone because they share one form of boxes: ``[N, most, 4]``, left, top, right, bottom in parts of the image, of which
the first `lengths` count. Each cuts the others off, composes an operator of dalify, and fills up again.
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
from dalify.mediapipe.node import Lowering, Value, operator, seed_of

__all__ = ["MOST_BOXES", "SSDBBoxFlip", "SSDCropWindowGen", "SSDEncode", "SSDMetadata", "default_boxes"]

MOST_BOXES = 200
_IMAGE_SIZE = 300
_CELLS = (38, 19, 10, 5, 3, 1)
_STEPS = (8, 16, 32, 64, 100, 300)
_SIDES = (21, 45, 99, 153, 207, 261, 315)
_RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))
_STAGES = {MetadataOps.crop: "crop", MetadataOps.flip: "flip", MetadataOps.encode: "encode"}


@lru_cache(maxsize=1)
def default_boxes() -> np.ndarray[Any, Any]:
    """Return the anchors of SSD300 for COCO: float32 ``[8732, 4]``, left, top, right, bottom.

    Six grids of cells; each cell has a square, a larger one, and one upright and one flat box for each ratio. Centres
    and extents are limited to the image, edges are not.
    """
    boxes = []
    for cells, step, side, next_side, ratios in zip(_CELLS, _STEPS, _SIDES, _SIDES[1:], _RATIOS, strict=False):
        small = side / _IMAGE_SIZE
        between = math.sqrt(small * next_side / _IMAGE_SIZE)
        extents = [(small, small), (between, between)]
        for ratio in ratios:
            wide, narrow = small * math.sqrt(ratio), small / math.sqrt(ratio)
            extents += [(wide, narrow), (narrow, wide)]
        centres = (np.arange(cells) + 0.5) * step / _IMAGE_SIZE
        x, y = np.meshgrid(centres, centres)
        for width, height in extents:
            grid = np.stack([x, y, np.full_like(x, width), np.full_like(x, height)], axis=-1)
            boxes.append(grid.reshape(-1, 4))
    centred = np.concatenate(boxes).astype(np.float32).clip(0, 1)
    half = np.float32(0.5) * centred[:, 2:]
    return np.concatenate([centred[:, :2] - half, centred[:, :2] + half], axis=1)


def _counted(node: DataNode, lengths: Value) -> DataNode:
    """Cut off what only fills up."""
    return node[0 : dali.cast(lengths.node, dtype=DALIDataType.INT32)]


def _filled(node: DataNode) -> DataNode:
    return dali.pad(node, axes=[0], shape=[MOST_BOXES])


@operator(outputs=4)
def SSDCropWindowGen(
    context: Lowering,
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
    """Choose a random window that keeps enough of the boxes, as SSD is trained (Liu et al., arXiv:1512.02325).

    One of these is chosen: all of the image; a window that overlaps every box by at least one of `min_iou`; any window.
    Boxes whose centre is outside are dropped, the others clipped and made relative to the window.

    Args:
        context: the graph.
        sizes: height and width of each image.
        boxes: left, top, right, bottom, in parts of the image.
        labels: one for each box.
        lengths: number of boxes.
        seed: of the draws.
        num_iterations: windows that are tried before one chooses again what to look for.
        min_width: least extent of a window, in parts of the image's width and height.
        max_width: largest.
        min_ratio: least width / height of a window in these parts.
        max_ratio: largest.
        min_iou: intersections over union, one of which all boxes have to reach.

    Returns:
        boxes, labels and lengths that are left; windows for ``ImageDecoder``, float32 ``[N, 4]``: x, y, width, height
        in parts of the image, whole pixels of it.
    """
    del context
    if num_iterations < 1:
        raise ArgumentValueError(f"num_iterations must be at least 1; got {num_iterations}.")
    anchor, extent, kept, kept_labels = dali.random_bbox_crop(
        _counted(boxes.node, lengths),
        _counted(labels.node, lengths),
        thresholds=[0.0, *(float(least) for least in min_iou)],
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
    end = graph_math.floor((anchor + extent) * pixels + 1e-3)  # 1.0 may have become a little less
    window = dali.cat(start / pixels, (end - start) / pixels, axis=0)
    count = dali.cast_like(kept.shape()[0], lengths.node)
    return (
        boxes.having(_filled(kept)),
        labels.having(_filled(kept_labels)),
        lengths.having(count),
        Value(dali.cast(window, dtype=DALIDataType.FLOAT)),
    )


@operator()
def SSDBBoxFlip(context: Lowering, is_flip: Value, boxes: Value, lengths: Value, /) -> Value:
    """Mirror boxes left to right, of those images whose `is_flip` is not 0.

    Args:
        context: the graph.
        is_flip: one number for each image; the same that ``RandomFlip`` gets.
        boxes: left, top, right, bottom, in parts of the image.
        lengths: number of boxes.

    Returns:
        boxes.
    """
    del context
    chosen = dali.cast(is_flip.node, dtype=DALIDataType.INT32)
    return boxes.having(_filled(dali.bb_flip(_counted(boxes.node, lengths), ltrb=True, horizontal=chosen)))


@operator(outputs=2)
def SSDEncode(
    context: Lowering, boxes: Value, labels: Value, lengths: Value, /, *, criteria: float = 0.5
) -> tuple[Value, Value]:
    """Match boxes to the 8732 anchors of SSD300.

    An anchor gets the box that it overlaps most, if by more than `criteria`; the best anchor of each box gets it
    in any case. Other anchors keep their own place, and label 0.

    Args:
        context: the graph.
        boxes: left, top, right, bottom, in parts of the image.
        labels: one for each box.
        lengths: number of boxes.
        criteria: intersection over union.

    Returns:
        boxes, float32 ``[N, 8732, 4]``: x and y of the centre, width, height; labels ``[N, 8732]``.
    """
    del context
    encoded, classes = dali.box_encoder(
        _counted(boxes.node, lengths),
        dali.cast(_counted(labels.node, lengths), dtype=DALIDataType.INT32),
        anchors=default_boxes().ravel().tolist(),
        criteria=criteria,
    )
    return boxes.having(encoded), labels.having(dali.cast_like(classes, labels.node))


def _results(arguments: Mapping[str, Any]) -> int:
    return 5 + (MetadataOps.crop in arguments["serialize"])


@operator(inputs=(5, 6), outputs=_results)
def SSDMetadata(
    context: Lowering,
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
    """Do several steps on boxes and labels: ``SSDCropWindowGen``, ``SSDBBoxFlip``, ``SSDEncode``.

    Args:
        context: the graph.
        ids: handed on.
        sizes: height and width of each image; handed on.
        boxes: left, top, right, bottom, in parts of the image.
        labels: one for each box.
        lengths: number of boxes.
        flip: one number for each image; needed for the mirror.
        workers: accepted: the pipe's threads do it.
        serialize: the steps, of ``MetadataOps``, in their order.
        seed: of the windows.

    Returns:
        ids, sizes, boxes, labels, lengths; with a crop, the windows for ``ImageDecoder``, too.
    """
    del workers
    strange = next((step for step in serialize if step not in _STAGES), None)
    if strange is not None:
        names = [f"MetadataOps.{name}" for name in _STAGES.values()]
        raise ArgumentValueError(option_error_text("serialize", strange, names))
    if MetadataOps.flip in serialize and flip is None:
        raise ArgumentTypeError("the step MetadataOps.flip needs the input flip, one number for each image.")
    windows = []
    for step in serialize:
        if step == MetadataOps.crop:
            boxes, labels, lengths, window = SSDCropWindowGen.lower(context, sizes, boxes, labels, lengths, seed=seed)
            windows.append(window)
        elif step == MetadataOps.flip:
            boxes = SSDBBoxFlip.lower(context, flip, boxes, lengths)
        else:
            boxes, labels = SSDEncode.lower(context, boxes, labels, lengths)
    return (ids, sizes, boxes, labels, lengths, *windows[-1:])
