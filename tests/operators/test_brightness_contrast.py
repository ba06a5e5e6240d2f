"""fn.brightness_contrast, fn.brightness and fn.contrast compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]

ARGUMENTS = {
    "brightness_contrast": {"brightness": 1.2, "brightness_shift": -0.1, "contrast": 0.7},
    "brightness": {"brightness": 1.2, "brightness_shift": 0.1},
    "contrast": {"contrast": 0.7},
}
each_operator = pytest.mark.parametrize("operator", ARGUMENTS)


def varying(operator: str) -> str:
    return "contrast" if operator == "contrast" else "brightness"


@each_operator
def test_one_value_per_sample(device, operator):
    arguments = {varying(operator): Each(np.float32([0.5, 1.5]))}
    assert_equals_dali(operator, IMAGES, layouts="HWC", device=device, **arguments)


@each_operator
def test_one_value_per_frame(device, operator):
    arguments = {varying(operator): Each([np.float32([0.5, 1.5, 3])], "F")}
    assert_equals_dali(operator, SEQUENCES, layouts="FHWC", device=device, **arguments)


@each_operator
@pytest.mark.parametrize("source", [np.uint8, np.int16, np.int32, np.float32])
@pytest.mark.parametrize("dtype", [None, "UINT8", "FLOAT", "INT16", "INT32"])
def test_types(device, operator, source, dtype):
    images = [image.astype(source) for image in IMAGES]
    arguments = ARGUMENTS[operator] | ({} if dtype is None else {"dtype": dtype})
    # Sums near 2**31 in float32 are coarse.
    tolerance = 256 if source == np.int32 or dtype == "INT32" else 1e-4
    assert_equals_dali(operator, images, layouts="HWC", device=device, tolerance=tolerance, **arguments)


@pytest.mark.parametrize("operator", ["brightness_contrast", "contrast"])
def test_center(device, operator):
    assert_equals_dali(operator, IMAGES, layouts="HWC", device=device, contrast=1.4, contrast_center=20.0)


@pytest.mark.parametrize(
    ("arguments", "expected"), [({"brightness_shift": 0.1}, [226, 126, 76]), ({"contrast": 2.0}, [255, 72, 0])]
)
def test_vectors(device, arguments, expected):
    pixel = np.array([[[200, 100, 50]]], np.uint8)
    result = run_dalify("brightness_contrast", [pixel], layouts="HWC", device=device, **arguments)
    assert result[0].ravel().tolist() == expected


@each_operator
def test_mistakes(operator):
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify(operator, IMAGES, layouts="CHW")
    name = varying(operator)
    with pytest.raises(ShapeError, match=rf"{name} needs one value per sample; the graph value has shape \(2,\)"):
        run_dalify(operator, IMAGES, layouts="HWC", **{name: Each(np.ones((2, 2), np.float32))})
