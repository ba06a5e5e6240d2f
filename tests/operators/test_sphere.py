"""fn.sphere compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"interp_type": "INTERP_LINEAR", "fill_value": 100.0}, {"mask": Each(np.int32([1, 0]))}],
)
def test_images(device, arguments):
    assert_equals_dali("sphere", IMAGES, layouts="HWC", device=device, tolerance=1, share=0.01, **arguments)


def test_floats(device):
    images = [image.astype(np.float32) for image in IMAGES]
    assert_equals_dali("sphere", images, layouts="HWC", device=device, share=0.01)


def test_mistakes():
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify("sphere", IMAGES, layouts="CHW")
