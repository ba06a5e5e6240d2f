"""fn.random_resized_crop: its windows are tested in tests/kernels; here, that they are resampled as fn.resize does."""

from __future__ import annotations

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentValueError
from tests.helpers.one_operator import run_dalify
from tests.helpers.photos import drawn_photo

PHOTOS = [drawn_photo(48, 64, 1), drawn_photo(64, 41, 2)]


def test_the_whole_image_is_a_resize(device):
    square = [drawn_photo(50, 50, seed) for seed in range(3)]
    arguments = {"layouts": "HWC", "device": device, "size": [20, 30]}
    got = run_dalify("random_resized_crop", square, random_area=[1, 1], random_aspect_ratio=[1, 1], **arguments)
    for one, other in zip(got, run_dalify("resize", square, **arguments), strict=True):
        np.testing.assert_array_equal(one, other)


def test_positions_are_recovered(device):
    """Pixels equal to their coordinates show which window was cropped."""
    rows, columns = np.mgrid[0:200, 0:300].astype(np.float32)
    images = [np.stack([rows + 0.5, columns + 0.5], -1)] * 32
    got = run_dalify("random_resized_crop", images, layouts="HWC", device=device, size=50, random_area=[0.1, 0.5])
    areas, ratios = [], []
    for image in got:
        assert image.shape == (50, 50, 2)
        # Away from the border, where the filter is cut.
        height, width = ((image[30, 30] - image[20, 20]) * 5).tolist()
        areas.append(height * width / 60000)
        ratios.append(width / height)
    assert 0.09 < min(areas) < 0.25 < 0.35 < max(areas) < 0.51
    assert 0.74 < min(ratios) < 0.95 < 1.05 < max(ratios) < 1.35


def test_frames_share_a_window(device):
    frames = [np.repeat(PHOTOS[0][None], 3, 0)]
    (got,) = run_dalify("random_resized_crop", frames, layouts="FHWC", device=device, size=20)
    assert got.shape == (3, 20, 20, 3)
    np.testing.assert_array_equal(got[0], got[2])
    (planes,) = run_dalify(
        "random_resized_crop", [PHOTOS[0].transpose(2, 0, 1)], layouts="CHW", device=device, size=[9, 8], dtype="FLOAT"
    )
    assert planes.shape == (3, 9, 8)
    assert planes.dtype == np.float32


def test_seeds(device):
    first, same, other = (
        run_dalify("random_resized_crop", PHOTOS, layouts="HWC", device=device, size=20, seed=seed)[0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="random_area"):
        run_dalify("random_resized_crop", PHOTOS, layouts="HWC", size=20, random_area=[0.5, 0.1])
    with pytest.raises(ArgumentValueError, match="size"):
        run_dalify("random_resized_crop", PHOTOS, layouts="HWC", size=[1, 2, 3])
    with pytest.raises(TypeError, match="size"):
        dalify.fn.random_resized_crop(dalify.fn.external_source(source=lambda: PHOTOS))
