"""Masks of objects as one picture of labels, drawn by ``pycocotools``.

Alone because which pixels belong to a polygon is what that package says and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.optional import LazyModule
from dalify.formats.coco import decompressed

__all__ = ["pixelwise_mask"]

pycocotools: Any = LazyModule("pycocotools.mask", "drawing masks of pixels", "dalify[coco]")


def pixelwise_mask(
    height: int,
    width: int,
    labels: NDArray[np.int32],
    polygons: NDArray[np.int32],
    vertices: NDArray[Any],
    rles: Iterable[tuple[int, tuple[int, int, NDArray[np.uint32]]]],
) -> NDArray[np.int32]:
    """Return the label of each pixel, int32 ``[height, width, 1]``; 0 for none.

    Where objects overlap, the one with the larger label covers the other.

    Args:
        height: of the picture.
        width: of the picture.
        labels: of the objects.
        polygons: number of the object, begin and end of its vertices, ``[P, 3]``.
        vertices: x, y in pixels, ``[V, 2]``.
        rles: number of an object and its mask by runs: height, width, runs.

    Raises:
        ReaderError: a mask by runs that is not of the picture's size.
        MissingPackageError: ``pycocotools`` is not installed.
    """
    mask = np.zeros((height, width), np.int32)
    drawings: list[tuple[int, Any]] = []
    for number, start, stop in polygons.tolist():
        outline = vertices[start:stop].astype(np.float64).reshape(-1).tolist()
        drawings += [(int(labels[number]), drawn) for drawn in pycocotools.frPyObjects([outline], height, width)]
    for number, (own_height, own_width, runs) in rles:
        if (own_height, own_width) != (height, width):
            raise ReaderError(
                f"a mask by runs is of {own_height} x {own_width} pixels, its picture of {height} x {width}."
            )
        drawing = pycocotools.frPyObjects({"size": [height, width], "counts": runs.tolist()}, height, width)
        drawings.append((int(labels[number]), drawing))
    for label in sorted({label for label, _ in drawings}):
        joined = pycocotools.merge([drawing for own, drawing in drawings if own == label])
        runs = decompressed(joined["counts"].decode())
        inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs)  # column by column
        mask.T[inside.reshape(width, height)] = label
    return mask[..., None]
