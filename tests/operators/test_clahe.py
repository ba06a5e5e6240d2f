"""fn.clahe beside the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


@pytest.mark.parametrize("luma_only", [False, True])
@pytest.mark.parametrize(("tiles_x", "tiles_y", "clip_limit"), [(4, 3, 2.0), (8, 8, 1.5)])
def test_images(luma_only, tiles_x, tiles_y, clip_limit):
    arguments = {"tiles_x": tiles_x, "tiles_y": tiles_y, "clip_limit": clip_limit, "luma_only": luma_only}
    assert_equals_dali("clahe", IMAGES, layouts="HWC", **arguments)
    assert_equals_dali("clahe", [image[..., :1] for image in IMAGES], layouts="HWC", **arguments)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="must be positive; got 0, 4 and 2"):
        run_dalify("clahe", IMAGES, layouts="HWC", tiles_x=0, tiles_y=4, clip_limit=2.0)
    with pytest.raises(ArgumentValueError, match="bins must be 256"):
        run_dalify("clahe", IMAGES, layouts="HWC", tiles_x=4, tiles_y=4, clip_limit=2.0, bins=128)
    with pytest.raises(ShapeError, match="1 or 3 channels; the input has 2"):
        run_dalify("clahe", [np.zeros((8, 8, 2), np.uint8)], layouts="HWC", tiles_x=4, tiles_y=4, clip_limit=2.0)
