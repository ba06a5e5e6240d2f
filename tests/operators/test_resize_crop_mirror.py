"""fn.resize_crop_mirror compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.photos import drawn_photo
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
PHOTOS = [drawn_photo(48, 64, 1), drawn_photo(64, 41, 2)]
VOLUMES = [RANDOM.integers(0, 256, (9, 20, 31, 2), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"resize_shorter": 25, "crop": [20, 22]},
        {"resize_shorter": 25, "crop": [20, 22], "mirror": 1},
        {"size": [30, 40], "crop_h": 11, "crop_w": 20, "crop_pos_x": 0.1, "crop_pos_y": 0.9, "mirror": 3},
        {"size": [30, 40], "crop": [11, 21], "rounding": "truncate", "mirror": Each(np.int32([0, 2]))},
        {"size": [30, 40]},
        {"size": [30, 40], "crop": [-1, 21]},
        {"size": [30, 40], "crop_h": Each(np.float32([-1, 5])), "crop_w": 9},
        {"size": [90, 100], "crop": [50, 60], "roi_start": [40, 5], "roi_end": [3, 33], "dtype": "FLOAT"},
        {"size": [30, 40], "crop": [40, 20], "interp_type": "INTERP_CUBIC"},
        {"resize_longer": 33, "crop": [9, 9], "crop_pos_x": Each(np.float32([0.2, 0.7]))},
    ],
    ids=str,
)
def test_images(device, arguments):
    assert_equals_dali("resize_crop_mirror", PHOTOS, layouts="HWC", device=device, tolerance=1, **arguments)


def test_volumes_and_sequences(device):
    arguments = {"size": [5, 30, 33], "crop": [3, 20, 20], "mirror": 5, "crop_pos_z": 0.9, "layouts": "DHWC"}
    assert_equals_dali("resize_crop_mirror", VOLUMES, device=device, tolerance=1, **arguments)
    arguments = {"size": [30, 33], "crop": [20, 20]}
    assert_equals_dali("resize_crop_mirror", VOLUMES, layouts="FHWC", device=device, tolerance=1, **arguments)
    # DALI 2.4 takes other axes than the documented ones for sequences; here a frame is mirrored like an image.
    (frames,) = run_dalify("resize_crop_mirror", VOLUMES, layouts="FHWC", device=device, mirror=1, **arguments)
    images = run_dalify("resize_crop_mirror", list(VOLUMES[0]), layouts="HWC", device=device, mirror=1, **arguments)
    np.testing.assert_array_equal(frames, np.stack(images))


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="exactly one way"):
        run_dalify("resize_crop_mirror", PHOTOS, layouts="HWC", crop=[3, 4])
    with pytest.raises(ArgumentValueError, match="crop_h and crop_w must be used together"):
        run_dalify("resize_crop_mirror", PHOTOS, layouts="HWC", size=30, crop_w=3)
