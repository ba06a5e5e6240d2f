"""fn.water compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"interp_type": "INTERP_LINEAR", "fill_value": 100.0},
        {"ampl_x": 3.0, "ampl_y": 20.0, "freq_x": 0.1, "phase_y": 1.0, "mask": Each(np.int32([1, 0]))},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("water", IMAGES, layouts="HWC", device=device, tolerance=1, share=0.01, **arguments)


def test_nearest_up_to_ties(device):
    # Where the wave moves by a whole number of pixels, the last bit decides which pixel is the nearest.
    assert_equals_dali("water", IMAGES, layouts="HWC", device=device, tolerance=255, share=0.01)


def test_mistakes():
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify("water", IMAGES, layouts="CHW")
    with pytest.raises(ArgumentValueError, match="interp_type must be one of"):
        run_dalify("water", IMAGES, layouts="HWC", interp_type="INTERP_CUBIC")
