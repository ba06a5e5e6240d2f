"""fn.experimental.dilate and erode compared with SciPy and OpenCV; DALI has them on GPUs only."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy import ndimage

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((20, 31, 3), (17, 12, 3))]
# SciPy's names; its constant border has a value, here one that never wins.
BORDERS = {
    "constant": "constant",
    "replicate": "nearest",
    "reflect": "reflect",
    "reflect_101": "mirror",
    "wrap": "wrap",
}
OPERATORS = [("experimental.dilate", ndimage.maximum_filter), ("experimental.erode", ndimage.minimum_filter)]


def expected(image, find, width, height, anchor=(-1, -1), border="constant"):
    """Filter an image HWC by SciPy."""
    cval = -np.inf if find is ndimage.maximum_filter else np.inf
    x, y = (size // 2 if point == -1 else point for point, size in zip(anchor, (width, height), strict=True))
    origin = (y - height // 2, x - width // 2, 0)  # SciPy's counts from the middle
    found = find(image.astype(np.float64), size=(height, width, 1), origin=origin, mode=BORDERS[border], cval=cval)
    return found.astype(image.dtype)


@pytest.mark.parametrize(("name", "find"), OPERATORS)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(
    ("size", "anchor"), [((3, 5), (-1, -1)), ((4, 2), (-1, -1)), ((5, 3), (4, 0)), ((1, 7), (0, 6))]
)
def test_borders_and_anchors(device, name, find, border, size, anchor):
    result = run_dalify(
        name, IMAGES, layouts="HWC", device=device, mask_size=list(size), anchor=list(anchor), border_mode=border
    )
    for one, image in zip(result, IMAGES, strict=True):
        np.testing.assert_array_equal(one, expected(image, find, *size, anchor, border))


@pytest.mark.parametrize(("name", "function"), [("experimental.dilate", cv2.dilate), ("experimental.erode", cv2.erode)])
@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_equals_opencv(device, name, function, iterations):
    arguments = {"mask_size": [5, 4], "anchor": [1, 3], "iterations": iterations}
    result = run_dalify(name, IMAGES, layouts="HWC", device=device, **arguments)
    element = np.ones((4, 5), np.uint8)
    for one, image in zip(result, IMAGES, strict=True):
        np.testing.assert_array_equal(one, function(image, element, anchor=(1, 3), iterations=iterations))


@pytest.mark.parametrize(("name", "find"), OPERATORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64", "bool"])
def test_types(device, name, find, dtype):
    values = RANDOM.normal(0, 1e4, (9, 11, 2))
    image = (values > 0 if dtype == "bool" else np.abs(values) if dtype[0] == "u" else values).astype(dtype)
    result = run_dalify(name, [image], layouts="HWC", device=device, mask_size=[3, 2])[0]
    np.testing.assert_array_equal(result, expected(image, find, 3, 2))


@pytest.mark.parametrize(("name", "find"), OPERATORS)
def test_layouts(device, name, find):
    image = RANDOM.integers(0, 256, (10, 13, 6), dtype=np.uint8)
    wanted = expected(image, find, 3, 5)
    for channels in (1, 5, 6):
        part = np.ascontiguousarray(image[..., :channels])
        found = run_dalify(name, [part], layouts="HWC", device=device, mask_size=[3, 5])[0]
        np.testing.assert_array_equal(found, wanted[..., :channels])
        planar = np.ascontiguousarray(part.transpose(2, 0, 1))
        found = run_dalify(name, [planar], layouts="CHW", device=device, mask_size=[3, 5])[0]
        np.testing.assert_array_equal(found, wanted[..., :channels].transpose(2, 0, 1))
    flat = np.ascontiguousarray(image[..., 0])
    np.testing.assert_array_equal(
        run_dalify(name, [flat], layouts="HW", device=device, mask_size=[3, 5])[0], wanted[..., 0]
    )
    frames = np.stack([image, image[::-1]])
    each = Each(np.int32([[[3, 5], [1, 2]]]), "FX")
    found = run_dalify(name, [frames], layouts="FHWC", device=device, mask_size=each)[0]
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[1], expected(image[::-1], find, 1, 2))
    planar = np.ascontiguousarray(frames.transpose(0, 3, 1, 2))
    found = run_dalify(name, [planar], layouts="FCHW", device=device, mask_size=[3, 5])[0]
    np.testing.assert_array_equal(found[0], wanted.transpose(2, 0, 1))


@pytest.mark.parametrize(("name", "find"), OPERATORS)
@pytest.mark.parametrize("border", BORDERS)
def test_masks_larger_than_the_image(device, name, find, border):
    image = RANDOM.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    one = np.full((1, 1, 3), 7, np.uint8)
    for size in ((31, 21), (9, 1)):
        arguments = {"layouts": "HWC", "device": device, "mask_size": list(size), "border_mode": border}
        result = run_dalify(name, [image, one], **arguments)
        np.testing.assert_array_equal(result[0], expected(image, find, *size, border=border))
        np.testing.assert_array_equal(result[1], one)
    huge = run_dalify(name, [image], layouts="HWC", device=device, mask_size=[9, 9], iterations=4000)[0]
    np.testing.assert_array_equal(huge, np.broadcast_to(find(image, (99, 99, 1)), image.shape))


def test_each_sample_has_its_own_mask(device):
    sizes = Each(np.int32([[3, 5], [2, 2]]))
    result = run_dalify("experimental.dilate", [IMAGES[0]] * 2, layouts="HWC", device=device, mask_size=sizes)
    np.testing.assert_array_equal(result[0], expected(IMAGES[0], ndimage.maximum_filter, 3, 5))
    np.testing.assert_array_equal(result[1], expected(IMAGES[0], ndimage.maximum_filter, 2, 2))
    square = run_dalify("experimental.dilate", [IMAGES[0]], layouts="HWC", device=device, mask_size=5, anchor=0)[0]
    np.testing.assert_array_equal(square, expected(IMAGES[0], ndimage.maximum_filter, 5, 5, (0, 0)))


@pytest.mark.parametrize("name", ["experimental.dilate", "experimental.erode"])
def test_mistakes(name):
    def run(image=IMAGES[0], layout="HWC", **arguments):
        run_dalify(name, [image], layouts=layout, **arguments)

    with pytest.raises(ArgumentValueError, match="border_mode must be one of constant, replicate"):
        run(border_mode="mirror")
    with pytest.raises(ArgumentValueError, match=r"a width and a height in \[1, 32768\]; got \[0, 3\]"):
        run(mask_size=[0, 3])
    with pytest.raises(ArgumentValueError, match=r"inside the mask of 3 x 5; got \[3, 0\]"):
        run(mask_size=[3, 5], anchor=[3, 0])
    with pytest.raises(ArgumentValueError, match="iterations must not be negative; got -1"):
        run(iterations=-1)
    with pytest.raises(ShapeError, match="mask_size must have one value or one for each of the 2 data axes; got 3"):
        run(mask_size=[3, 3, 3])
    with pytest.raises(DTypeError, match="64-bit integers are not supported"):
        run(IMAGES[0].astype(np.int64))
    with pytest.raises(LayoutError):
        run(np.zeros((3, 4, 5, 2), np.uint8), "DHWC")
