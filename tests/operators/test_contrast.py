"""fn.contrast compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


ARGUMENTS = {"contrast": 0.7}


def test_one_value_per_sample(device):
    values = Each(np.float32([0.5, 1.5]))
    assert_equals_dali("contrast", IMAGES, layouts="HWC", device=device, contrast=values)


def test_one_value_per_frame(device):
    values = Each([np.float32([0.5, 1.5, 3])], "F")
    assert_equals_dali("contrast", SEQUENCES, layouts="FHWC", device=device, contrast=values)


@pytest.mark.parametrize("source", [np.uint8, np.int16, np.int32, np.float32])
@pytest.mark.parametrize("dtype", [None, "UINT8", "FLOAT", "INT16", "INT32"])
def test_types(device, source, dtype):
    images = [image.astype(source) for image in IMAGES]
    arguments = ARGUMENTS if dtype is None else ARGUMENTS | {"dtype": dtype}
    # Sums near 2**31 in float32 are coarse.
    tolerance = 256 if source == np.int32 or dtype == "INT32" else 1e-4
    assert_equals_dali("contrast", images, layouts="HWC", device=device, tolerance=tolerance, **arguments)


def test_center(device):
    assert_equals_dali("contrast", IMAGES, layouts="HWC", device=device, contrast=1.4, contrast_center=20.0)


def test_mistakes():
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify("contrast", IMAGES, layouts="CHW")
    with pytest.raises(ShapeError, match=r"contrast needs one value per sample; the graph value has shape \(2,\)"):
        run_dalify("contrast", IMAGES, layouts="HWC", contrast=Each(np.ones((2, 2), np.float32)))
