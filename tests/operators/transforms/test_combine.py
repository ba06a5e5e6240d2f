"""fn.transforms.combine compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

INPUT = np.array([[2, 0, 1], [0, 3, 1]], np.float32)
OTHER = np.array([[0, 1, 5], [1, 0, 7]], np.float32)


@pytest.mark.parametrize("reverse_order", [False, True])
def test_order(reverse_order):
    assert_equals_dali("transforms.combine", [INPUT], [OTHER], tolerance=1e-5, reverse_order=reverse_order)
    assert_equals_dali("transforms.combine", [INPUT], [OTHER], [INPUT], tolerance=1e-5, reverse_order=reverse_order)


def test_sequences():
    frames = [np.stack([INPUT, OTHER, INPUT])]
    assert_equals_dali("transforms.combine", frames, [OTHER], layouts=["F**", "**"], tolerance=1e-5)
    assert_equals_dali("transforms.combine", frames, frames, layouts=["F**", "F**"], tolerance=1e-5)


def test_three_dimensions():
    matrices = np.random.default_rng(0).random((2, 3, 4)).astype(np.float32)
    assert_equals_dali("transforms.combine", [matrices[0]], [matrices[1]], tolerance=1e-5)


def test_mistakes():
    with pytest.raises(ShapeError, match="must have the same shape"):
        run_dalify("transforms.combine", [INPUT], [np.zeros((3, 4), np.float32)])
