"""fn.clahe compared with the real DALI."""

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
def test_images(device, luma_only, tiles_x, tiles_y, clip_limit):
    arguments = {"tiles_x": tiles_x, "tiles_y": tiles_y, "clip_limit": clip_limit, "luma_only": luma_only}
    # Blends that end in halves are rounded by other arithmetic.
    near = {"device": device, "tolerance": 0 if device == "cpu" else 2, "share": 0 if device == "cpu" else 0.005}
    assert_equals_dali("clahe", IMAGES, layouts="HWC", **near, **arguments)
    assert_equals_dali("clahe", [image[..., :1] for image in IMAGES], layouts="HWC", **near, **arguments)


def by_definition(image, tiles_x, tiles_y, clip_limit, bins):
    """Equalise a plane whose extents are multiples of the tiles, pixel by pixel."""
    height, width = image.shape[0] // tiles_y, image.shape[1] // tiles_x
    levels = image.astype(int) * bins // 256
    tables = np.zeros((tiles_y, tiles_x, bins))
    for i in range(tiles_y):
        for j in range(tiles_x):
            counts = np.bincount(
                levels[i * height : (i + 1) * height, j * width : (j + 1) * width].ravel(), minlength=bins
            )
            limit = max(int(clip_limit * height * width / bins), 1)
            share, rest = divmod(np.maximum(counts - limit, 0).sum(), bins)
            counts = np.minimum(counts, limit) + share
            if rest:
                counts[np.arange(rest) * max(bins // rest, 1)] += 1
            tables[i, j] = np.rint(counts.cumsum() * 255 / (height * width))
    result = np.zeros(image.shape)
    for y, x in np.ndindex(image.shape):
        row, column = (y / height) - 0.5, (x / width) - 0.5
        i, j = int(np.floor(row)), int(np.floor(column))
        for at_y, weight_y in ((max(i, 0), 1 - (row - i)), (min(i + 1, tiles_y - 1), row - i)):
            for at_x, weight_x in ((max(j, 0), 1 - (column - j)), (min(j + 1, tiles_x - 1), column - j)):
                result[y, x] += tables[at_y, at_x, levels[y, x]] * weight_y * weight_x
    return result


@pytest.mark.parametrize("bins", [2, 16, 128, 256, 1024])
@pytest.mark.parametrize("clip_limit", [1.3, 40.0])
def test_bins(device, bins, clip_limit):
    image = RANDOM.integers(0, 256, (24, 30), dtype=np.uint8) // 2 + 40
    arguments = {"tiles_x": 5, "tiles_y": 3, "clip_limit": clip_limit}
    result = run_dalify("clahe", [image[..., None]], layouts="HWC", device=device, bins=bins, **arguments)[0]
    expected = by_definition(image, bins=min(bins, 256), **arguments)
    assert np.abs(result[..., 0] - expected).max() < 0.501


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 2, 1), (5, 40, 3)])
@pytest.mark.parametrize("bins", [64, 256])
def test_small_images(device, shape, bins):
    """Fewer pixels than tiles: the image is mirrored to and fro."""
    image = RANDOM.integers(0, 256, shape, dtype=np.uint8)
    arguments = {"layouts": "HWC", "tiles_x": 8, "tiles_y": 4, "clip_limit": 2.0}
    result = run_dalify("clahe", [image], device=device, bins=bins, **arguments)[0]
    assert result.shape == image.shape
    if bins == 256:
        assert_equals_dali("clahe", [image], device=device, tolerance=2, share=0.02, **arguments)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="must be positive; got 0, 4 and 2"):
        run_dalify("clahe", IMAGES, layouts="HWC", tiles_x=0, tiles_y=4, clip_limit=2.0)
    with pytest.raises(ArgumentValueError, match="bins must be a power of two"):
        run_dalify("clahe", IMAGES, layouts="HWC", tiles_x=4, tiles_y=4, clip_limit=2.0, bins=100)
    with pytest.raises(ShapeError, match="1 or 3 channels; got 2"):
        run_dalify("clahe", [np.zeros((8, 8, 2), np.uint8)], layouts="HWC", tiles_x=4, tiles_y=4, clip_limit=2.0)
