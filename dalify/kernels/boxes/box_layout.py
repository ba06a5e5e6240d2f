"""Layouts of bounding boxes: the order of their numbers.

A layout is a string like "xyXY": lowercase letters are the start, uppercase letters the end, and W, H, D the extents
along x, y, z.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dalify.base.errors import ArgumentValueError

_EXTENTS = {"x": "W", "y": "H", "z": "D"}


@lru_cache(64)
def _columns(layout: str, axes: int) -> tuple[list[int], list[int], list[bool], bool]:
    """Return for each axis the column of the start, the column of the end or extent, and whether it is an extent.

    The last value is whether the layout already consists of corners.
    """
    letters = "xyz"[:axes]
    starts, ends, are_extents = [], [], []
    for letter in letters:
        extent = _EXTENTS[letter]
        if letter not in layout or (letter.upper() in layout) == (extent in layout) or len(layout) != 2 * axes:
            raise ArgumentValueError(
                f"bbox_layout must contain start and end (or extent) of {', '.join(letters)}; got {layout!r}.",
                hint="Example: 'xyXY' or 'xyWH'.",
            )
        starts.append(layout.index(letter))
        are_extents.append(extent in layout)
        ends.append(layout.index(extent if extent in layout else letter.upper()))
    is_plain = not any(are_extents) and starts + ends == list(range(2 * axes))
    return starts, ends, are_extents, is_plain


def to_corners(boxes: np.ndarray, layout: str) -> np.ndarray:
    """Convert boxes [n, 2 * axes] to start corner, then end corner, x first; the same array if unchanged.

    Raises:
        ArgumentValueError: the layout is invalid.
    """
    axes = boxes.shape[1] // 2
    starts, ends, are_extents, is_plain = _columns(layout, axes)
    if is_plain:
        return boxes
    result = np.concatenate([boxes[:, starts], boxes[:, ends]], axis=1)
    result[:, axes:] += np.where(are_extents, result[:, :axes], 0)
    return result


def from_corners(corners: np.ndarray, layout: str) -> np.ndarray:
    """Convert boxes from corners to another layout: the inverse of `to_corners`."""
    axes = corners.shape[1] // 2
    starts, ends, are_extents, is_plain = _columns(layout, axes)
    if is_plain:
        return corners
    result = np.empty_like(corners)
    result[:, starts] = corners[:, :axes]
    result[:, ends] = corners[:, axes:] - np.where(are_extents, corners[:, :axes], 0)
    return result
