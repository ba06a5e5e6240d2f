"""fn.laplacian compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]
VOLUMES = [RANDOM.integers(0, 256, (9, 20, 31, 2), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"window_size": 5},
        {"window_size": 3, "smoothing_size": 1, "dtype": "FLOAT"},
        {"normalized_kernel": True},
        {"window_size": [3, 5], "scale": [1.0, 2.0]},
        {"window_size": Each(np.int32([3, 7])), "dtype": "FLOAT", "scale": 0.01},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("laplacian", IMAGES, layouts="HWC", device=device, tolerance=1e-3, **arguments)


def test_other_layouts(device):
    sizes = Each([np.int32([3, 5, 7])], "F")
    assert_equals_dali(
        "laplacian", SEQUENCES, layouts="FHWC", device=device, tolerance=1e-2, dtype="FLOAT", window_size=sizes
    )
    assert_equals_dali("laplacian", VOLUMES, layouts="DHWC", device=device, tolerance=1, scale=0.05)
    assert_equals_dali("laplacian", SEQUENCES, layouts="FCHW", device=device)


def test_mistakes():
    for arguments, text in (
        ({"window_size": 4}, "window_size must be odd and between 3 and 31; got 4"),
        ({"window_size": 1}, "window_size must be odd and between 3 and 31; got 1"),
        ({"smoothing_size": 2}, "smoothing_size must be odd and between 1 and 31; got 2"),
        ({"normalized_kernel": True, "scale": 2.0}, "specify either scale"),
    ):
        with pytest.raises(ArgumentValueError, match=text):
            run_dalify("laplacian", IMAGES, layouts="HWC", **arguments)
    with pytest.raises(ShapeError, match="one for each of the 2 data axes; got 3"):
        run_dalify("laplacian", IMAGES, layouts="HWC", window_size=[3, 3, 3])
    with pytest.raises(DTypeError, match="dtype must be"):
        run_dalify("laplacian", IMAGES, layouts="HWC", dtype="INT32")
