"""fn.experimental.median_blur compared with SciPy; DALI has it on GPUs only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from dalify.base.errors import ArgumentValueError, LayoutError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
NAME = "experimental.median_blur"
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((20, 31, 3), (17, 12, 3))]


def expected(image, width, height):
    return ndimage.median_filter(image, size=(height, width, 1), mode="nearest")


@pytest.mark.parametrize("window", [[3, 3], [5, 5], [9, 9], [3, 7], [5, 1], [1, 1]], ids=str)
def test_windows(device, window):
    result = run_dalify(NAME, IMAGES, layouts="HWC", device=device, window_size=window)
    for one, image in zip(result, IMAGES, strict=True):
        np.testing.assert_array_equal(one, expected(image, *window))


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "float32", "float64"]
)
@pytest.mark.parametrize("window", [[3, 3], [7, 7], [3, 5]], ids=str)
def test_types(device, dtype, window):
    image = np.abs(RANDOM.normal(0, 60, (9, 11, 3))).astype(dtype)
    result = run_dalify(NAME, [image], layouts="HWC", device=device, window_size=window)[0]
    assert result.dtype == image.dtype
    np.testing.assert_array_equal(result, expected(image, *window))


def test_layouts(device):
    image = RANDOM.integers(0, 256, (10, 13, 5), dtype=np.uint8)
    for channels in (1, 2, 4, 5):
        part = np.ascontiguousarray(image[..., :channels])
        for layout, order in (("HWC", (0, 1, 2)), ("CHW", (2, 0, 1))):
            data = np.ascontiguousarray(part.transpose(order))
            result = run_dalify(NAME, [data], layouts=layout, device=device, window_size=5)[0]
            np.testing.assert_array_equal(result, expected(part, 5, 5).transpose(order))
    flat = np.ascontiguousarray(image[..., 0])
    np.testing.assert_array_equal(
        run_dalify(NAME, [flat], layouts="HW", device=device)[0], expected(image, 3, 3)[..., 0]
    )
    frames = np.stack([image, image[::-1]])
    each = Each(np.int32([[[3, 5], [1, 3]]]), "FX")
    result = run_dalify(NAME, [frames], layouts="FHWC", device=device, window_size=each)[0]
    np.testing.assert_array_equal(result[0], expected(image, 3, 5))
    np.testing.assert_array_equal(result[1], expected(image[::-1], 1, 3))
    planar = np.ascontiguousarray(frames.transpose(0, 3, 1, 2))
    result = run_dalify(NAME, [planar], layouts="FCHW", device=device)[0]
    np.testing.assert_array_equal(result[1], expected(image[::-1], 3, 3).transpose(2, 0, 1))


def test_samples_have_their_own_windows(device):
    each = Each(np.int32([[3, 3], [7, 5]]))
    result = run_dalify(NAME, IMAGES, layouts="HWC", device=device, window_size=each)
    np.testing.assert_array_equal(result[0], expected(IMAGES[0], 3, 3))
    np.testing.assert_array_equal(result[1], expected(IMAGES[1], 7, 5))


def test_windows_larger_than_the_image(device):
    small = [RANDOM.integers(0, 256, (4, 5, 3), dtype=np.uint8), np.full((1, 1, 3), 7, np.uint8)]
    for window in ([15, 15], [21, 3]):
        result = run_dalify(NAME, small, layouts="HWC", device=device, window_size=window)
        for one, image in zip(result, small, strict=True):
            np.testing.assert_array_equal(one, expected(image, *window))


def test_mistakes():
    for window in ([4, 3], [0, 0], [-3, 3], [257, 3]):
        with pytest.raises(ArgumentValueError, match="window_size must be odd and between 1 and 255"):
            run_dalify(NAME, IMAGES, layouts="HWC", window_size=window)
    with pytest.raises(LayoutError):
        run_dalify(NAME, [np.zeros((3, 4, 5, 2), np.uint8)], layouts="DHWC")


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_deterministic_algorithms_of_torch(dtype, gpu, monkeypatch):
    """On CUDA, torch refuses its median then."""
    images = [image.astype(dtype) for image in IMAGES]
    if dtype == "float32":
        images[0][3, 4] = np.nan
    usual = run_dalify(NAME, images, layouts="HWC", device=gpu, window_size=[3, 5])
    monkeypatch.setattr(torch.Tensor, "median", None)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        found = run_dalify(NAME, images, layouts="HWC", device=gpu, window_size=[3, 5])
    finally:
        torch.use_deterministic_algorithms(before)
    for one, other in zip(found, usual, strict=True):
        np.testing.assert_array_equal(one, other)
