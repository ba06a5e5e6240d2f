"""fn.rotate compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]
VOLUMES = [RANDOM.integers(0, 256, (9, 20, 31, 2), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"angle": 30.0},
        {"angle": 90.0},
        {"angle": Each(np.float32([45, -77.5])), "fill_value": 3.0},
        {"angle": 30.0, "keep_size": True, "interp_type": "INTERP_NN"},
        {"angle": 200.0, "size": [33.4, 44.5], "keep_size": True},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("rotate", IMAGES, layouts="HWC", device=device, tolerance=1, share=0.05, **arguments)


def test_floats(device):
    floats = [image.astype(np.float32) / 255 for image in IMAGES]
    assert_equals_dali("rotate", floats, layouts="HWC", device=device, tolerance=1e-4, angle=33.0)
    assert_equals_dali("rotate", IMAGES, layouts="HWC", device=device, tolerance=0.02, angle=33.0, dtype="FLOAT")


@pytest.mark.parametrize("angles", [[0, 30, 80], [80, 70, 0], [20, 50, 10]])
def test_frames_share_a_canvas(device, angles):
    angle = Each([np.float32(angles)], "F")
    for fill in ({}, {"fill_value": 7.0}):
        assert_equals_dali("rotate", SEQUENCES, layouts="FHWC", device=device, tolerance=1, angle=angle, **fill)


@pytest.mark.parametrize("axis", [[0, 0, 1], [1, 2, 3], [-1, 0, 0]])
def test_volumes(device, axis):
    for angle in (30.0, 90.0):
        assert_equals_dali(
            "rotate", VOLUMES, layouts="DHWC", device=device, tolerance=1, share=0.02, angle=angle, axis=axis
        )


def test_canvas_sizes_equal_dali():
    angles = np.float32([0, 45, -45, 135, 225, 90, 1, 89, 44.9999, 45.0001, 17.3, 123.4])
    for height, width in ((10, 20), (11, 20), (31, 2), (1, 1)):
        images = [np.zeros((height, width, 1), np.uint8)] * len(angles)
        assert_equals_dali("rotate", images, layouts="HWC", angle=Each(angles))


def test_row_turned_by_90_degrees():
    row = np.array([[[1], [2], [3]]], np.uint8)
    assert run_dalify("rotate", [row], layouts="HWC", angle=90.0)[0].ravel().tolist() == [3, 2, 1]


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="volumes require axis"):
        run_dalify("rotate", VOLUMES, layouts="DHWC", angle=10.0)
    with pytest.raises(ArgumentValueError, match="axis must not be zero"):
        run_dalify("rotate", VOLUMES, layouts="DHWC", angle=10.0, axis=[0, 0, 0])
    with pytest.raises(ArgumentValueError, match="interp_type must be one of"):
        run_dalify("rotate", IMAGES, layouts="HWC", angle=10.0, interp_type="INTERP_CUBIC")
    with pytest.raises(ArgumentValueError, match="size must have 2 extents"):
        run_dalify("rotate", IMAGES, layouts="HWC", angle=10.0, size=[5])
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify("rotate", IMAGES, layouts="CHW", angle=10.0)
