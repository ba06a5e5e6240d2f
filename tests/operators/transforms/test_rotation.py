"""fn.transforms.rotation compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

INPUT = np.array([[2, 0, 1], [0, 3, 1]], np.float32)
OTHER = np.array([[0, 1, 5], [1, 0, 7]], np.float32)


@pytest.mark.parametrize(
    "arguments",
    [
        {"angle": 90.0, "center": [1, 2]},
        {"angle": 33.0},
        {"angle": 30.0, "axis": [1, 2, 2], "center": [1, 2, 3]},
        {"angle": 30.0, "axis": [0, 0, -2]},
    ],
)
def test_constants(arguments):
    assert_equals_dali("transforms.rotation", tolerance=1e-5, **arguments)


@pytest.mark.parametrize("reverse_order", [False, True])
def test_after_another(reverse_order):
    arguments = {"angle": 90.0, "center": [1, 2]} | {"reverse_order": reverse_order}
    assert_equals_dali("transforms.rotation", [INPUT, OTHER], tolerance=1e-5, **arguments)
    frames = [np.stack([INPUT, OTHER, INPUT])]
    assert_equals_dali("transforms.rotation", frames, layouts="F**", tolerance=1e-5, **arguments)


def test_per_sample():
    assert_equals_dali("transforms.rotation", tolerance=1e-5, angle=Each(np.float32([30, 40])))


def test_mistakes():
    with pytest.raises(ShapeError, match="input transforms 2-D points, the arguments need 3-D points"):
        run_dalify("transforms.rotation", [INPUT], angle=3.0, axis=[0, 0, 1])
    with pytest.raises(ShapeError, match="k rows and k"):
        run_dalify("transforms.rotation", [np.eye(2, dtype=np.float32)], angle=3.0)
    with pytest.raises(ArgumentValueError, match="axis must not have length 0"):
        run_dalify("transforms.rotation", angle=3.0, axis=[0, 0, 0])


def test_vector():
    expected = np.array([[0, -1, 0], [1, 0, 0]])
    np.testing.assert_allclose(run_dalify("transforms.rotation", angle=90.0)[0], expected, atol=1e-6)
