"""fn.color_space_conversion compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


SPACES = ["RGB", "BGR", "GRAY", "YCbCr"]


@pytest.mark.parametrize("source", SPACES)
@pytest.mark.parametrize("target", SPACES)
def test_images(device, source, target):
    images = [image[..., :1] for image in IMAGES] if source == "GRAY" else IMAGES
    if source == target:  # DALI refuses
        result = run_dalify(
            "color_space_conversion", images, layouts="HWC", device=device, image_type=source, output_type=target
        )
        np.testing.assert_array_equal(result[0], images[0])
    else:
        assert_equals_dali(
            "color_space_conversion", images, layouts="HWC", device=device, tolerance=1, share=5e-3,
            image_type=source, output_type=target,
        )  # fmt: skip


def test_vectors(device):
    pixel = np.array([[[200, 100, 50]]], np.uint8)
    for target, expected in (("GRAY", [124]), ("YCbCr", [123, 91, 175])):
        result = run_dalify(
            "color_space_conversion", [pixel], layouts="HWC", device=device, image_type="RGB", output_type=target
        )
        assert result[0].ravel().tolist() == expected


def test_sequences(device):
    assert_equals_dali(
        "color_space_conversion", SEQUENCES, layouts="FHWC", device=device, tolerance=1, image_type="RGB",
        output_type="GRAY",
    )  # fmt: skip


def test_mistakes():
    with pytest.raises(DTypeError, match="must have uint8 elements"):
        run_dalify("color_space_conversion", [np.zeros((2, 2, 3), np.float32)], layouts="HWC", image_type="RGB",
                   output_type="GRAY")  # fmt: skip
    with pytest.raises(ShapeError, match="GRAY requires 1 channel;"):
        run_dalify("color_space_conversion", IMAGES, layouts="HWC", image_type="GRAY", output_type="RGB")
    with pytest.raises(ArgumentValueError, match="not ANY_DATA"):
        run_dalify("color_space_conversion", IMAGES, layouts="HWC", image_type="ANY_DATA", output_type="RGB")
