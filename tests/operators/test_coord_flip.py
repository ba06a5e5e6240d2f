"""fn.coord_flip compared with the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

POINTS = np.random.default_rng(0).random((100, 2)).astype(np.float32)


@pytest.mark.parametrize("arguments", [{}, {"layout": "yx"}, {"flip_y": 1, "center_y": 3.0, "flip_x": 0}])
def test_points(device, arguments):
    assert_equals_dali("coord_flip", [POINTS], device=device, tolerance=1e-6, **arguments)


def test_per_sample(device):
    flips, centers = map(list, (np.array([0, 1, 1], np.int32), np.array([0, 1, 2], np.float32)))
    arguments: dict[str, Any] = {"flip_y": Each(flips), "center_y": Each(centers)}
    assert_equals_dali("coord_flip", [POINTS, POINTS[:1], POINTS[:31]], device=device, tolerance=1e-6, **arguments)


def test_three_dimensions(device):
    points = np.random.default_rng(0).random((50, 3)).astype(np.float32)
    assert_equals_dali("coord_flip", [points], device=device, tolerance=1e-6, flip_z=1, center_z=3.0)


def test_mistakes():
    with pytest.raises(DTypeError, match="points must be float32"):
        run_dalify("coord_flip", [POINTS.astype(np.int32)])
    with pytest.raises(ShapeError, match="1 to 3 coordinates; got 4"):
        run_dalify("coord_flip", [np.zeros((1, 4), np.float32)])
    with pytest.raises(ArgumentValueError, match="names 3 coordinates; the points have 2"):
        run_dalify("coord_flip", [POINTS], layout="xyz")
    with pytest.raises(ArgumentValueError, match="letters x, y and z"):
        run_dalify("coord_flip", [POINTS], layout="xw")
