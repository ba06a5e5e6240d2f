"""fn.grid_mask compared with the real DALI."""

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
        {},
        {"tile": 10, "ratio": 0.4, "angle": 0.5, "shift_x": 3.0, "shift_y": 1.0},
        {"tile": Each(np.int32([7, 9])), "ratio": Each(np.float32([0.3, 0.6]))},
        {"tile": 4, "ratio": 0.0},
        {"tile": 4, "ratio": 1.0},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("grid_mask", IMAGES, layouts="HWC", device=device, tolerance=255, share=1e-3, **arguments)


def test_frames_are_images(device):
    result = run_dalify("grid_mask", SEQUENCES, layouts="FHWC", device=device, tile=Each([np.int32([5, 6, 7])], "F"))
    for frame, (image, tile) in enumerate(zip(SEQUENCES[0], (5, 6, 7), strict=True)):
        alone = run_dalify("grid_mask", [image], layouts="HWC", device=device, tile=tile)
        np.testing.assert_array_equal(result[0][frame], alone[0])


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="tile must be a positive number"):
        run_dalify("grid_mask", IMAGES, layouts="HWC", tile=0)
    with pytest.raises(LayoutError, match="'CHW'"):
        run_dalify("grid_mask", IMAGES, layouts="CHW")
