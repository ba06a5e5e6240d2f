"""Orders of a box's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError
from dalify.kernels.boxes.box_layout import from_corners, to_corners


@pytest.mark.parametrize(
    ("layout", "box"),
    [
        ("xyXY", [1, 2, 4, 8]),
        ("xyWH", [1, 2, 3, 6]),
        ("yxYX", [2, 1, 8, 4]),
        ("xXyY", [1, 4, 2, 8]),
        ("xyHW", [1, 2, 6, 3]),
    ],
)
def test_conversion_and_inverse(layout, box):
    boxes = np.array([box], np.float64)
    assert to_corners(boxes, layout).tolist() == [[1, 2, 4, 8]]
    np.testing.assert_array_equal(from_corners(to_corners(boxes, layout), layout), boxes)


def test_volumes():
    boxes = np.array([[1.0, 2, 3, 4, 5, 6]])
    assert to_corners(boxes, "xyzWHD").tolist() == [[1, 2, 3, 5, 7, 9]]
    np.testing.assert_array_equal(from_corners(to_corners(boxes, "xyzWHD"), "xyzWHD"), boxes)


@pytest.mark.parametrize("layout", ["xy", "xyXX", "xyXYWH", "abcd", "xyWX"])
def test_incomplete_layouts(layout):
    with pytest.raises(ArgumentValueError, match="bbox_layout must contain start and end"):
        to_corners(np.zeros((1, 4)), layout)
