"""fn.jpeg_compression_distortion compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


@pytest.mark.parametrize("quality", [5, 50, 100, 0, Each(np.int32([20, 95]))])
def test_images(device, quality):
    assert_equals_dali("jpeg_compression_distortion", IMAGES, layouts="HWC", device=device, quality=quality)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5), (5, 4), (9, 5), (4, 100), (33, 17), (16, 32)], ids=str)
@pytest.mark.parametrize("quality", [1, 30, 90])
def test_small_images(device, shape, quality):
    """Blocks that reach out of the image, and chroma too narrow to be blended; smooth images, too."""
    noise = RANDOM.integers(0, 256, (*shape, 3), dtype=np.uint8)
    slope = np.linspace(0, 255, noise.size).reshape(noise.shape).astype(np.uint8)
    images = [noise, slope, np.full_like(noise, 255)]
    assert_equals_dali("jpeg_compression_distortion", images, layouts="HWC", device=device, quality=quality)


def test_frames(device):
    assert_equals_dali("jpeg_compression_distortion", SEQUENCES, layouts="FHWC", device=device)
    qualities = Each([np.int32([5, 50, 95])], "F")  # DALI takes one per sample only
    result = run_dalify("jpeg_compression_distortion", SEQUENCES, layouts="FHWC", device=device, quality=qualities)[0]
    worst = run_dalify("jpeg_compression_distortion", [SEQUENCES[0][0]], layouts="HWC", device=device, quality=5)[0]
    np.testing.assert_array_equal(result[0], worst)


def test_mistakes():
    with pytest.raises(ShapeError, match="must have 3 channels; got 1"):
        run_dalify("jpeg_compression_distortion", [np.zeros((8, 8, 1), np.uint8)], layouts="HWC")
    with pytest.raises(DTypeError, match="must have uint8 elements"):
        run_dalify("jpeg_compression_distortion", [np.zeros((8, 8, 3), np.float32)], layouts="HWC")
    small, wide = np.zeros((4, 4, 3), np.uint8), np.zeros((2, 65501, 3), np.uint8)
    with pytest.raises(ShapeError, match=r"at most 65500 rows and columns; got 2 x 65501\.\n  sample 1 of the batch"):
        run_dalify("jpeg_compression_distortion", [small, wide], layouts="HWC")
