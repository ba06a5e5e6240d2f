"""Readers of detection data sets.

Alone because annotations have a format of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dalify.base.errors import ReaderError
from dalify.data import DALIDataType
from dalify.mediapipe.node import Lowering, Value, operator
from dalify.mediapipe.nodes.readers import path_rows
from dalify.mediapipe.nodes.ssd import MOST_BOXES
from dalify.mediapipe.slicing import IndexedReader, SlicedOrder

__all__ = ["CocoReader"]


@operator(outputs=7)
def CocoReader(
    context: Lowering,
    /,
    *,
    root: str,
    annfile: str,
    seed: int | None = None,
    shuffle: bool = True,
    max_file: str | None = None,
    drop_remainder: bool = False,
    pad_remainder: bool = False,
    partial_batch: bool = False,
    num_slices: int = 1,
    slice_index: int = 0,
) -> tuple[Value, ...]:
    """Read images and boxes of a data set in COCO's format. Images without boxes are left out.

    Args:
        context: the graph.
        root: folder of the images.
        annfile: file of the annotations.
        seed: of the orders.
        shuffle: random order, another in each epoch.
        max_file: accepted.
        drop_remainder: leave out what fills no batch.
        pad_remainder: fill the last batch with the last image; otherwise with random ones.
        partial_batch: let the last output tell how many images of a batch are real; otherwise it is the batch's size.
        num_slices: number of cards that share the data set.
        slice_index: which of them this is.

    Returns:
        paths; ids, uint32 ``[N]``; sizes, uint32 ``[N, 2]``: height, width; boxes, float32 ``[N, 200, 4]``: left, top,
        right, bottom in parts of the width and height, as the operators of SSD take them; labels, uint32 ``[N, 200]``:
        1, 2 … in the order of the categories' ids; lengths, uint32 ``[N]``: number of boxes; batch, uint32 ``[1]``:
        number of real images.
    """
    del max_file
    paths, ids, sizes, boxes, labels, lengths = _annotations(Path(root), Path(annfile))
    order = SlicedOrder(
        len(paths),
        context.batch_size,
        shuffle=shuffle,
        seed=seed,
        num_slices=num_slices,
        slice_index=slice_index,
        drop_remainder=drop_remainder,
        pad_remainder=pad_remainder,
    )

    def take(items: np.ndarray[Any, Any], valid: int) -> tuple[Any, ...]:
        real = np.full((len(items), 1), valid if partial_batch else len(items), np.uint32)
        arrays = (each[items] for each in (ids, sizes, boxes, labels, lengths))
        return (path_rows([paths[item] for item in items]), *arrays, real)

    reader = IndexedReader(order, context.batch_size, take)
    number = DALIDataType.UINT32
    dtypes = [DALIDataType.UINT8, number, number, DALIDataType.FLOAT, number, number, number]
    nodes = context.read(reader, 7, dtype=dtypes, ndim=[1, 0, 1, 2, 1, 0, 1])
    values = [Value(node) for node in nodes]
    values[0] = Value(nodes[0], kind="path")
    values[6] = Value(nodes[6], batched=False)
    return tuple(values)


def _annotations(root: Path, file: Path) -> tuple[list[str], Any, Any, Any, Any, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        images, annotations, categories = content["images"], content["annotations"], content["categories"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReaderError(f"{file} cannot be read as annotations of COCO's format: {error!r}.") from None
    numbers = {category: index for index, category in enumerate(sorted(item["id"] for item in categories), 1)}
    by_image: dict[int, list[Any]] = {}
    for item in annotations:
        by_image.setdefault(item["image_id"], []).append(item)
    images = [image for image in images if image["id"] in by_image]
    boxes = np.zeros((len(images), MOST_BOXES, 4), np.float32)
    labels = np.zeros((len(images), MOST_BOXES), np.uint32)
    lengths = np.zeros(len(images), np.uint32)
    for row, image in enumerate(images):
        found = by_image[image["id"]][:MOST_BOXES]
        lengths[row] = len(found)
        for column, item in enumerate(found):
            left, top, width, height = item["bbox"]
            corners = left, top, left + width, top + height
            boxes[row, column] = np.divide(corners, (image["width"], image["height"]) * 2)
            labels[row, column] = numbers[item["category_id"]]
    ids = np.array([image["id"] for image in images], np.uint32)
    sizes = np.array([[image["height"], image["width"]] for image in images], np.uint32).reshape(-1, 2)
    return [str(root / image["file_name"]) for image in images], ids, sizes, boxes, labels, lengths
