"""fn.debayer compared with the real DALI and images of known colors."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
MOSAICS = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((20, 24), (34, 50), (4, 6), (6, 4))]
POSITIONS = [[0, 0], [0, 1], [1, 0], [1, 1]]
COLOR = np.array([200, 100, 30])


def mosaic_of(color: np.ndarray, height: int, width: int, position: list[int], dtype: type = np.uint8) -> np.ndarray:
    """Return the values of a Bayer sensor for an image of one color."""
    rows, columns = np.indices((height, width)) % 2
    blue = (rows == (1 + position[0]) % 2) & (columns == (1 + position[1]) % 2)
    red = (rows != (1 + position[0]) % 2) & (columns != (1 + position[1]) % 2)
    return np.where(blue, color[2], np.where(red, color[0], color[1])).astype(dtype)


ALGORITHMS = ["bilinear_ocv", "edgeaware_ocv", "gray_ocv", None]


@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [("vng_ocv", np.uint8), *((name, dtype) for name in ALGORITHMS for dtype in (np.uint8, np.uint16))],
)
def test_algorithms(device, algorithm, dtype):
    mosaics = [mosaic.astype(dtype) * (1 if dtype == np.uint8 else 257) for mosaic in MOSAICS]
    arguments = {} if algorithm is None else {"algorithm": algorithm}
    each = Each(np.int32(POSITIONS))
    tolerance = {"tolerance": 1, "share": 0.01} if (device, algorithm) == ("gpu", "vng_ocv") else {}
    assert_equals_dali("debayer", mosaics, device=device, blue_position=each, **tolerance, **arguments)


@pytest.mark.parametrize("shape", [(4, 32), (4, 34), (6, 36), (10, 64), (8, 66), (12, 98), (32, 150)])
def test_widths_of_vectors(shape):
    mosaics = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for _ in POSITIONS]
    assert_equals_dali("debayer", mosaics, blue_position=Each(list(np.array(POSITIONS, np.int32))))


@pytest.mark.parametrize("kind", ["noise", "smooth", "black and white"])
def test_directions_of_gradients(gpu, kind):
    """Sums that are between two integers are frequent, and images below 8 pixels have no directions."""
    shapes = [(8, 8), (60, 100), (6, 40), (40, 6), (2, 12), (4, 4), (10, 8), (62, 98)]
    mosaics = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    if kind == "smooth":
        mosaics = [cv2.GaussianBlur(mosaic, (5, 5), 1.0) for mosaic in mosaics]
    elif kind == "black and white":
        mosaics = [(mosaic > 127).astype(np.uint8) * np.uint8(255) for mosaic in mosaics]
    positions = Each(list(np.array(POSITIONS * 2, np.int32)))
    found, expected = (
        run_dalify("debayer", mosaics, device=device, algorithm="vng_ocv", blue_position=positions)
        for device in (gpu, "cpu")
    )
    for image, other in zip(found, expected, strict=True):
        difference = np.abs(image.astype(int) - other)
        assert difference.max() <= 1
        assert (difference > 0).mean() <= 0.01  # OpenCV rounds the last columns of each row in another way


@pytest.mark.parametrize("algorithm", ["bilinear_ocv", "edgeaware_ocv", "vng_ocv", "default_npp"])
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("shape", [(8, 10), (2, 2), (2, 8), (6, 2)])
def test_one_color_is_restored(device, algorithm, position, shape):
    mosaic = mosaic_of(COLOR, *shape, position)
    result = run_dalify("debayer", [mosaic], device=device, algorithm=algorithm, blue_position=position)[0]
    np.testing.assert_array_equal(result, np.broadcast_to(COLOR, (*shape, 3)))


def test_the_direction_of_an_edge_decides_on_green(device):
    """A vertical edge: pixels of one column agree, and the mean across the edge would mix both sides."""
    image = np.where(np.arange(12) < 5, 20, 220) * np.ones((10, 1), np.int64)
    for dtype in (np.uint8, np.uint16):
        result = run_dalify(
            "debayer", [image.astype(dtype)], device=device, algorithm="default_npp", blue_position=[0, 0]
        )[0]
        np.testing.assert_array_equal(result[..., 1], image)


def test_layouts(device):
    frames = [np.stack([MOSAICS[0], MOSAICS[0][::-1]])]
    assert_equals_dali("debayer", frames, layouts="FHW", device=device, blue_position=[0, 1])
    assert_equals_dali("debayer", [frames[0][..., None]], layouts="FHWC", device=device, blue_position=[0, 1])
    assert_equals_dali("debayer", [MOSAICS[0][..., None]], layouts="HWC", device=device, blue_position=0)
    each = Each(np.int32([[[0, 1], [1, 1]]]), "FX")
    result = run_dalify("debayer", frames, layouts="FHW", device=device, blue_position=each)[0]
    for n, position in enumerate(([0, 1], [1, 1])):
        alone = run_dalify("debayer", [frames[0][n]], device=device, blue_position=position)[0]
        np.testing.assert_array_equal(result[n], alone)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="algorithm must be one of bilinear_ocv"):
        run_dalify("debayer", MOSAICS, blue_position=[0, 0], algorithm="bilinear")
    with pytest.raises(ArgumentValueError, match=r"each 0 or 1; got \[0, 2\]"):
        run_dalify("debayer", MOSAICS, blue_position=[0, 2])
    with pytest.raises(ShapeError, match="even extents; got 5 x 6"):
        run_dalify("debayer", [np.zeros((5, 6), np.uint8)], blue_position=[0, 0])
    with pytest.raises(ShapeError, match="even extents; got 1 x 1"):
        run_dalify("debayer", [np.zeros((1, 1), np.uint8)], blue_position=[0, 0])
    with pytest.raises(ShapeError, match="one channel; got 3"):
        run_dalify("debayer", [np.zeros((4, 6, 3), np.uint8)], layouts="HWC", blue_position=[0, 0])
    with pytest.raises(DTypeError, match="uint8 or uint16; got"):
        run_dalify("debayer", [np.zeros((4, 6), np.int16)], blue_position=[0, 0])
    with pytest.raises(DTypeError, match="uint8; got"):
        run_dalify("debayer", [np.zeros((4, 6), np.uint16)], blue_position=[0, 0], algorithm="vng_ocv")
    with pytest.raises(LayoutError):
        run_dalify("debayer", [np.zeros((4, 6, 1), np.uint8)], layouts="CHW", blue_position=[0, 0])
