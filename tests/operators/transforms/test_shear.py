"""fn.transforms.shear compared with the real DALI."""

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
        {"shear": [0.5, 0.25], "center": [1, 2]},
        {"angles": [45, 10]},
        {"shear": [1, 2, 3, 4, 5, 6]},
    ],
)
def test_constants(arguments):
    assert_equals_dali("transforms.shear", tolerance=1e-5, **arguments)


@pytest.mark.parametrize("reverse_order", [False, True])
def test_after_another(reverse_order):
    arguments = {"shear": [0.5, 0.25], "center": [1, 2]} | {"reverse_order": reverse_order}
    assert_equals_dali("transforms.shear", [INPUT, OTHER], tolerance=1e-5, **arguments)
    frames = [np.stack([INPUT, OTHER, INPUT])]
    assert_equals_dali("transforms.shear", frames, layouts="F**", tolerance=1e-5, **arguments)


def test_per_sample():
    assert_equals_dali("transforms.shear", tolerance=1e-5, shear=Each(np.float32([[1, 2], [3, 4]])))


def test_mistakes():
    with pytest.raises(ShapeError, match="input transforms 2-D points, the arguments need 3-D points"):
        run_dalify("transforms.shear", [INPUT], shear=[1, 2, 3, 4, 5, 6])
    with pytest.raises(ShapeError, match="k rows and k"):
        run_dalify("transforms.shear", [np.eye(2, dtype=np.float32)], shear=[1, 2])
    with pytest.raises(ArgumentValueError, match="specify either shear or angles"):
        run_dalify("transforms.shear")
    with pytest.raises(ShapeError, match="2 factors in 2-D or 6 in 3-D; got 3"):
        run_dalify("transforms.shear", shear=[1, 2, 3])
