"""Boxes and labels of the images of a chunk, in two compiled calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.compiling import njit
from dalify.data.rows import Rows


# These functions keep the GIL, because releasing it takes longer than the computation.
@njit(cache=True)
def _measure(firsts: Any, numbers: Any, starts: Any) -> Any:
    total = np.int64(0)
    for image in range(numbers.size):
        starts[image] = total
        total += firsts[numbers[image] + 1] - firsts[numbers[image]]
    starts[numbers.size] = total
    return total


@njit(cache=True)
def _copy(boxes: Any, labels: Any, firsts: Any, numbers: Any, own_boxes: Any, own_labels: Any) -> None:
    place = 0
    for image in range(numbers.size):
        for row in range(firsts[numbers[image]], firsts[numbers[image] + 1]):
            for coordinate in range(boxes.shape[1]):
                own_boxes[place, coordinate] = boxes[row, coordinate]
            own_labels[place] = labels[row]
            place += 1


def boxes_and_labels(
    boxes: NDArray[np.float32], labels: NDArray[np.int32], firsts: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[Rows, Rows]:
    """Return copies of the boxes and labels of some images.

    Args:
        boxes: boxes of all images, ``[M, 4]``.
        labels: their labels, ``[M]``.
        firsts: index of the first box of each image, and the number of all boxes, ``[images + 1]``.
        numbers: indices of the images, ``[N]``.
    """
    starts = np.empty(len(numbers) + 1, np.int64)
    total = _measure(firsts, numbers, starts)
    own_boxes, own_labels = np.empty((total, boxes.shape[1]), boxes.dtype), np.empty(total, labels.dtype)
    _copy(boxes, labels, firsts, numbers, own_boxes, own_labels)
    return Rows(own_boxes, starts), Rows(own_labels, starts)
