"""fn.color_twist compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


ARGUMENTS = {"hue": 30.0, "brightness": 1.2, "contrast": 0.7, "saturation": 1.5}


def test_images(device):
    assert_equals_dali("color_twist", IMAGES, layouts="HWC", device=device, tolerance=1, share=1e-3, **ARGUMENTS)


@pytest.mark.parametrize(
    "arguments",
    [{"brightness": 1.5}, {"contrast": 1.5}, {"brightness": 1.3, "saturation": 0.7}, {"hue": 71.0, "contrast": 1.7}],
)
def test_halves_are_rounded_as_in_dali(arguments):
    """With these factors many results are at half way between two integers, or nearly: the order of products counts."""
    assert_equals_dali("color_twist", IMAGES, layouts="HWC", tolerance=0, **arguments)


def test_one_value_per_sample(device):
    values = Each(np.float32([0.5, 1.5]))
    assert_equals_dali("color_twist", IMAGES, layouts="HWC", device=device, tolerance=1, share=1e-3, hue=values)


def test_one_value_per_frame(device):
    arguments = {"hue": Each([np.float32([0.5, 1.5, 30])], "F")}
    assert_equals_dali("color_twist", SEQUENCES, layouts="FHWC", device=device, tolerance=1, share=1e-3, **arguments)


@pytest.mark.parametrize("source", [np.uint8, np.int16, np.int32, np.float32])
@pytest.mark.parametrize("dtype", ["UINT8", "FLOAT", "INT16"])
def test_types(device, source, dtype):
    images = [image.astype(source) for image in IMAGES]
    tolerance = 1e-3 if dtype == "FLOAT" else 1
    arguments = ARGUMENTS | {"dtype": dtype}
    assert_equals_dali("color_twist", images, layouts="HWC", device=device, tolerance=tolerance, **arguments)


def test_mistakes():
    with pytest.raises(ShapeError, match="need 3 channels; the image has 1"):
        run_dalify("color_twist", [image[..., :1] for image in IMAGES], layouts="HWC", **ARGUMENTS)
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify("color_twist", IMAGES, layouts="CHW", **ARGUMENTS)
