"""fn.color_twist, fn.hsv, fn.hue and fn.saturation compared with the real DALI."""

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
    "color_twist": {"hue": 30.0, "brightness": 1.2, "contrast": 0.7, "saturation": 1.5},
    "hsv": {"hue": -50.0, "saturation": 0.3, "value": 1.3},
    "hue": {"hue": 120.0},
    "saturation": {"saturation": 2.0},
}
each_operator = pytest.mark.parametrize("operator", ARGUMENTS)


def varying(operator: str) -> str:
    return "saturation" if operator == "saturation" else "hue"


@each_operator
def test_images(device, operator):
    assert_equals_dali(operator, IMAGES, layouts="HWC", device=device, tolerance=1, share=1e-3, **ARGUMENTS[operator])


@pytest.mark.parametrize(
    "arguments",
    [{"brightness": 1.5}, {"contrast": 1.5}, {"brightness": 1.3, "saturation": 0.7}, {"hue": 71.0, "contrast": 1.7}],
)
def test_halves_are_rounded_as_in_dali(arguments):
    """With these factors many results are at half way between two integers, or nearly: the order of products counts."""
    assert_equals_dali("color_twist", IMAGES, layouts="HWC", tolerance=0, **arguments)


@each_operator
def test_one_value_per_sample(device, operator):
    arguments = {varying(operator): Each(np.float32([0.5, 1.5]))}
    assert_equals_dali(operator, IMAGES, layouts="HWC", device=device, tolerance=1, share=1e-3, **arguments)


@each_operator
def test_one_value_per_frame(device, operator):
    arguments = {varying(operator): Each([np.float32([0.5, 1.5, 30])], "F")}
    assert_equals_dali(operator, SEQUENCES, layouts="FHWC", device=device, tolerance=1, share=1e-3, **arguments)


@each_operator
@pytest.mark.parametrize("source", [np.uint8, np.int16, np.int32, np.float32])
@pytest.mark.parametrize("dtype", ["UINT8", "FLOAT", "INT16"])
def test_types(device, operator, source, dtype):
    images = [image.astype(source) for image in IMAGES]
    tolerance = 1e-3 if dtype == "FLOAT" else 1
    arguments = ARGUMENTS[operator] | {"dtype": dtype}
    assert_equals_dali(operator, images, layouts="HWC", device=device, tolerance=tolerance, **arguments)


@each_operator
def test_mistakes(operator):
    with pytest.raises(ShapeError, match="need 3 channels; the image has 1"):
        run_dalify(operator, [image[..., :1] for image in IMAGES], layouts="HWC", **ARGUMENTS[operator])
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify(operator, IMAGES, layouts="CHW", **ARGUMENTS[operator])


def test_hsv_returns_bytes_by_default(device):
    images = [image.astype(np.float32) for image in IMAGES]
    assert_equals_dali("hsv", images, layouts="HWC", device=device, tolerance=1, **ARGUMENTS["hsv"])
