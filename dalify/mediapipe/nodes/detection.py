"""Readers of detection datasets."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ReaderError
from dalify.data import DALIDataType
from dalify.formats import BoxOptions, DataRoot, read_annotations
from dalify.mediapipe.node import Lowering, Value, operator
from dalify.mediapipe.nodes.readers import path_rows
from dalify.mediapipe.nodes.ssd import MAX_BOXES
from dalify.mediapipe.slicing import IndexedReader, Indices, SlicedOrder, SliceOptions

_OPTIONS = BoxOptions(
    ltrb=True,
    ratio=True,
    size_threshold=0.0,
    skip_empty=True,
    include_iscrowd=True,
    avoid_class_remapping=False,
    has_masks=False,
)


@operator(outputs=7)
def CocoReader(
    context: Lowering,
    /,
    *,
    root: str,
    annfile: str,
    seed: int | None = None,
    slices: SliceOptions,
    partial_batch: bool = False,
    allow_outside_root: bool = False,
) -> tuple[Value, ...]:
    """Read images and boxes of a dataset in COCO's format. Images without boxes are skipped.

    Args:
        context: the graph.
        root: folder of the images.
        annfile: file of the annotations.
        seed: seed of the order.
        slices: order, slice and padding.
        partial_batch: the last output is the number of images that are not padding; otherwise it is the batch size.
        allow_outside_root: whether names of images may be absolute paths or URLs, or point outside `root`.

    Returns:
        paths; ids, uint32 ``[N]``; sizes, uint32 ``[N, 2]``: height, width; boxes, float32 ``[N, 200, 4]``: left, top,
        right, bottom as fractions of the width and height, as the operators of SSD expect; labels, uint32 ``[N, 200]``:
        1, 2 … in the order of the file's categories; lengths, uint32 ``[N]``: number of boxes; batch, uint32 ``[1]``:
        number of images that are not padding.
    """
    found = read_annotations(str(annfile), None, _OPTIONS)
    assert found.ids is not None, "dalify bug: annotations of a JSON file without ids"
    assert found.extents is not None, "dalify bug: annotations of a JSON file without extents"
    ids, sizes = found.ids.astype(np.uint32), found.extents.astype(np.uint32)
    lengths = np.minimum(np.diff(found.box_firsts), MAX_BOXES).astype(np.uint32)
    folder = DataRoot(str(root), allow_outside_root=allow_outside_root)
    names = [folder.path(name, str(annfile)) for name in found.names]
    order = SlicedOrder(len(names), context.batch_size, slices, seed=seed, pipe_seed=context.seed)

    def take(items: Indices, valid: int) -> tuple[Any, ...]:
        boxes = np.zeros((len(items), MAX_BOXES, 4), np.float32)
        labels = np.zeros((len(items), MAX_BOXES), np.uint32)
        for row, item in enumerate(items.tolist()):
            if item in found.problems:
                raise ReaderError(f"{names[item]!r}: {found.problems[item]}")
            first, length = found.box_firsts[item], lengths[item]
            boxes[row, :length] = found.boxes[first : first + length]
            labels[row, :length] = found.labels[first : first + length]
        paths = path_rows([names[item] for item in items])
        real = np.full((len(items), 1), valid if partial_batch else len(items), np.uint32)
        return paths, ids[items], sizes[items], boxes, labels, lengths[items], real

    reader = IndexedReader(order, take)
    number = DALIDataType.UINT32
    dtypes = [DALIDataType.UINT8, number, number, DALIDataType.FLOAT, number, number, number]
    nodes = context.read(reader, 7, dtype=dtypes, ndim=[1, 0, 1, 2, 1, 0, 1])
    values = [Value(node) for node in nodes]
    values[0] = Value(nodes[0], kind="path")
    values[6] = Value(nodes[6], batched=False)
    return tuple(values)
