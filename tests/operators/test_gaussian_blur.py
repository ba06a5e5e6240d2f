"""fn.gaussian_blur compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]
VOLUMES = [RANDOM.integers(0, 256, (9, 20, 31, 2), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"sigma": 1.5},
        {"window_size": 5},
        {"sigma": [1.0, 0.0], "window_size": [0, 5]},
        {"sigma": 2.0, "window_size": 7},
        {"sigma": Each(np.float32([0.4, 3]))},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("gaussian_blur", IMAGES, layouts="HWC", device=device, tolerance=1, share=1e-3, **arguments)


def test_frames(device):
    for sigma in (1.0, [1.0, 2.0], Each([np.float32([0.5, 1, 2])], "F")):
        assert_equals_dali(
            "gaussian_blur", SEQUENCES, layouts="FHWC", device=device, tolerance=1, share=1e-3, sigma=sigma
        )


def test_other_layouts(device):
    planar = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in IMAGES]
    assert_equals_dali("gaussian_blur", planar, layouts="CHW", device=device, tolerance=1, share=1e-3, sigma=1.0)
    assert_equals_dali("gaussian_blur", SEQUENCES, layouts="FCHW", device=device, tolerance=1, share=1e-3, sigma=1.0)
    assert_equals_dali("gaussian_blur", SEQUENCES, layouts="CFHW", device=device, tolerance=1, share=1e-3, sigma=1.0)
    gray = [image[..., 0] for image in IMAGES]
    assert_equals_dali("gaussian_blur", gray, layouts="HW", device=device, tolerance=1, share=1e-3, sigma=1.0)
    assert_equals_dali(
        "gaussian_blur", VOLUMES, layouts="DHWC", device=device, tolerance=1, share=1e-3, sigma=[1.0, 2.0, 0.5]
    )


def test_bytes_to_floats(device):
    assert_equals_dali("gaussian_blur", IMAGES, layouts="HWC", device=device, tolerance=1e-3, sigma=1.0, dtype="FLOAT")


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="must not both be 0"):
        run_dalify("gaussian_blur", IMAGES, layouts="HWC")
    with pytest.raises(ArgumentValueError, match="must not be negative"):
        run_dalify("gaussian_blur", IMAGES, layouts="HWC", sigma=-1.0)
    for sigma in (float("nan"), 1001.0):
        with pytest.raises(ArgumentValueError, match=f"sigma must be from 0 to 1000 pixels; got {sigma:g}"):
            run_dalify("gaussian_blur", IMAGES, layouts="HWC", sigma=sigma)
    with pytest.raises(ArgumentValueError, match="odd positive"):
        run_dalify("gaussian_blur", IMAGES, layouts="HWC", window_size=4)
    with pytest.raises(ShapeError, match="one for each of the 2 data axes; got 3"):
        run_dalify("gaussian_blur", IMAGES, layouts="HWC", sigma=[1.0, 2.0, 3.0])
    with pytest.raises(
        DTypeError, match=r"dtype must be types\.FLOAT, the type of the input \(uint8\), or omitted; got int32"
    ):
        run_dalify("gaussian_blur", IMAGES, layouts="HWC", sigma=1.0, dtype="INT32")
    with pytest.raises(LayoutError, match="adjacent data axes"):
        run_dalify("gaussian_blur", IMAGES, layouts="HCW", sigma=1.0)
