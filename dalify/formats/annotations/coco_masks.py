"""Renders the masks of objects as one image of labels, with ``pycocotools``.

It computes every point of an outline and checks no sizes, so outlines are checked first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ReaderError
from dalify.base.limits import check_image, check_sample_bytes, check_shape, current
from dalify.base.optional import LazyModule
from dalify.base.wording import counted
from dalify.formats.annotations.coco import decode_runs

pycocotools: Any = LazyModule("pycocotools.mask", "drawing masks of pixels", "dalify[coco]")

_MIN_NUMBERS = 6  # polygons with fewer than three vertices have no interior
_POINTS_PER_PIXEL = 5  # of an outline, along each axis
_BYTES_PER_POINT = 24
_MAX_COORDINATE = float((1 << 31) // _POINTS_PER_PIXEL - 1)


def pixelwise_mask(
    height: int,
    width: int,
    labels: NDArray[np.int32],
    polygons: NDArray[np.int32],
    vertices: NDArray[Any],
    rles: Iterable[tuple[int, tuple[int, int, NDArray[np.uint32]]]],
    ids: Sequence[int] | None = None,
) -> NDArray[np.int32]:
    """Return the label of each pixel, int32 ``[height, width, 1]``; 0 for none, the larger label if objects overlap.

    Args:
        height: height of the image.
        width: width of the image.
        labels: labels of the objects.
        polygons: index of the object, start and end of its vertices, ``[P, 3]``.
        vertices: x, y in pixels, ``[V, 2]``.
        rles: index of an object and its run-length encoded mask: height, width, runs.
        ids: annotation ids of the objects, for error messages.

    Raises:
        ReaderError: a polygon cannot be drawn, or a run-length encoded mask does not have the size of the image.
        LimitError: the image or the outlines of polygons are larger than the limits allow.
        MissingPackageError: ``pycocotools`` is not installed.
    """
    if min(height, width) < 0:
        raise ReaderError(f"the annotations declare an image of {height} x {width} pixels.")
    check_image(height, width, "the mask of the image")
    check_shape((height, width, 1), 4, "the mask")
    mask = np.zeros((height, width), np.int32)
    drawings: list[tuple[int, Any]] = []
    rles = list(rles)
    for number in [*polygons[:, 0].tolist(), *(number for number, _ in rles)]:
        if not 0 <= number < len(labels):
            raise ReaderError(
                f"the annotations have a mask for object {number}, but the image has {counted(len(labels), 'object')}."
            )
    _check_outlines(polygons, vertices, ids)
    for number, start, stop in polygons.tolist():
        outline = vertices[start:stop].astype(np.float64).reshape(-1).tolist()
        if len(outline) >= _MIN_NUMBERS and mask.size:
            drawings += [(int(labels[number]), drawn) for drawn in pycocotools.frPyObjects([outline], height, width)]
    for number, (own_height, own_width, runs) in rles:
        if (own_height, own_width) != (height, width) or int(runs.sum(dtype=np.uint64)) != height * width:
            raise ReaderError(
                f"{_name(number, ids)} has a run-length encoded mask of {own_height} x {own_width} pixels; the image "
                f"has {height} x {width}."
            )
        drawing = pycocotools.frPyObjects({"size": [height, width], "counts": runs.tolist()}, height, width)
        drawings.append((int(labels[number]), drawing))
    for label in sorted({label for label, _ in drawings}):
        joined = pycocotools.merge([drawing for own, drawing in drawings if own == label])
        _paint(mask, decode_runs(joined["counts"].decode()), label)
    return mask[..., None]


def _paint(mask: NDArray[np.int32], runs: list[int], label: int) -> None:
    """Set the pixels of every second run, column by column, from the first such pixel to the last."""
    if len(runs) < 2 or not mask.size:
        return
    height = len(mask)
    first = runs[0] // height
    runs[0] -= first * height
    if len(runs) % 2:
        runs.pop()
    total = sum(runs)
    last = -(-total // height)
    runs.append(last * height - total)
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    mask.T[first : first + last][inside.reshape(last, height)] = label


def _check_outlines(polygons: NDArray[np.int32], vertices: NDArray[Any], ids: Sequence[int] | None) -> None:
    """Check the coordinates of outlines and their total number of points."""
    points = 2.0 * _POINTS_PER_PIXEL * len(vertices) * float(np.abs(vertices).max(initial=0))
    if points * _BYTES_PER_POINT <= current().max_sample_bytes:
        return  # an upper bound, which is sufficient for nearly all images
    points = 0.0
    for number, start, stop in polygons.tolist():
        own = vertices[start:stop].astype(np.float64)
        if not (np.abs(own) <= _MAX_COORDINATE).all():
            raise ReaderError(
                f"{_name(number, ids)} has a polygon with a coordinate beyond {_MAX_COORDINATE:.0f} pixels."
            )
        if len(own):
            points += float(np.abs(own - np.roll(own, 1, axis=0)).max(axis=1).sum()) * _POINTS_PER_PIXEL
            check_sample_bytes(int(points) * _BYTES_PER_POINT, f"drawing the polygons up to {_name(number, ids)}")


def _name(number: int, ids: Sequence[int] | None) -> str:
    return f"object {number} of the image" if ids is None else f"the annotation with id {ids[number]}"
