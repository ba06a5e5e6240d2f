"""fn.transforms.crop compared with the real DALI."""

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
        {"from_start": [0.1, 0.2], "from_end": [0.8, 0.6], "to_start": [0.5, 0.3], "to_end": [0.2, 0.5]},
        {
            "from_start": [0.1, 0.2],
            "from_end": [0.8, 0.6],
            "to_start": [0.5, 0.3],
            "to_end": [0.2, 0.5],
            "absolute": True,
        },
        {},
        {"from_start": [0.1, 0.2], "from_end": 3.0},
    ],
)
def test_constants(arguments):
    assert_equals_dali("transforms.crop", tolerance=1e-5, **arguments)


@pytest.mark.parametrize("reverse_order", [False, True])
def test_after_another(reverse_order):
    arguments = {"from_start": [0.1, 0.2], "from_end": [0.8, 0.6], "to_start": [0.5, 0.3], "to_end": [0.2, 0.5]} | {
        "reverse_order": reverse_order
    }
    assert_equals_dali("transforms.crop", [INPUT, OTHER], tolerance=1e-5, **arguments)
    frames = [np.stack([INPUT, OTHER, INPUT])]
    assert_equals_dali("transforms.crop", frames, layouts="F**", tolerance=1e-5, **arguments)


def test_per_sample():
    assert_equals_dali(
        "transforms.crop", tolerance=1e-5, from_end=Each(np.float32([[1, 2], [3, 4]])), from_start=[0.5, 0.25]
    )


def test_mistakes():
    with pytest.raises(ShapeError, match="input transforms 2-D points, the arguments need 3-D points"):
        run_dalify("transforms.crop", [INPUT], to_end=[1, 2, 3])
    with pytest.raises(ShapeError, match="k rows and k"):
        run_dalify("transforms.crop", [np.eye(2, dtype=np.float32)], to_end=2.0)
