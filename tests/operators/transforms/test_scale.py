"""fn.transforms.scale compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

INPUT = np.array([[2, 0, 1], [0, 3, 1]], np.float32)
OTHER = np.array([[0, 1, 5], [1, 0, 7]], np.float32)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scale": [2, 3], "center": [1, 5]},
        {"scale": 2.0},
        {"scale": 2.0, "ndim": 3},
        {"scale": [1, 2, 3]},
    ],
)
def test_constants(arguments):
    assert_equals_dali("transforms.scale", tolerance=1e-5, **arguments)


@pytest.mark.parametrize("reverse_order", [False, True])
def test_after_another(reverse_order):
    arguments = {"scale": [2, 3], "center": [1, 5]} | {"reverse_order": reverse_order}
    assert_equals_dali("transforms.scale", [INPUT, OTHER], tolerance=1e-5, **arguments)
    frames = [np.stack([INPUT, OTHER, INPUT])]
    assert_equals_dali("transforms.scale", frames, layouts="F**", tolerance=1e-5, **arguments)


def test_per_sample():
    assert_equals_dali("transforms.scale", tolerance=1e-5, scale=Each(np.float32([[1, 2], [3, 4]])))


def test_mistakes():
    with pytest.raises(ShapeError, match="input transforms 2-D points, the arguments need 3-D points"):
        run_dalify("transforms.scale", [INPUT], scale=[1, 2, 3])
    with pytest.raises(ShapeError, match="k rows and k"):
        run_dalify("transforms.scale", [np.eye(2, dtype=np.float32)], scale=2.0)
    with pytest.raises(ShapeError, match="ndim is 3; scale and center have 2 values"):
        run_dalify("transforms.scale", scale=[1, 2], ndim=3)
    with pytest.raises(ShapeError, match="different lengths: 2, 3"):
        run_dalify("transforms.scale", scale=[1, 2], center=[1, 2, 3])


def test_one_factor_for_the_dimensions_of_the_input():
    assert_equals_dali("transforms.scale", [INPUT], scale=2.0)
