"""fn.filter beside the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


WIDE = RANDOM.random((3, 5)).astype(np.float32) / 8
TALL = RANDOM.random((4, 2)).astype(np.float32) / 4


@pytest.mark.parametrize("border", ["reflect_101", "reflect_1001", "wrap", "clamp", "constant"])
def test_borders(device, border):
    assert_equals_dali(
        "filter", IMAGES, [WIDE, TALL], layouts=["HWC", ""], device=device, tolerance=1, share=1e-3, border=border
    )


@pytest.mark.parametrize("arguments", [{"anchor": [0, 1]}, {"mode": "valid", "dtype": "FLOAT"}])
def test_options(device, arguments):
    assert_equals_dali("filter", IMAGES, [WIDE, TALL], layouts=["HWC", ""], device=device, tolerance=1e-3, **arguments)


def test_fill_value(device):
    fills = [np.uint8(7), np.uint8(200)]
    assert_equals_dali(
        "filter", IMAGES, [WIDE, TALL], fills, layouts=["HWC", "", ""], device=device, tolerance=1, share=1e-3,
        border="constant",
    )  # fmt: skip


def test_layouts(device):
    planar = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in IMAGES]
    grey = [image[..., 0] for image in IMAGES]
    for data, layout in ((planar, "CHW"), (grey, "HW")):
        assert_equals_dali("filter", data, [WIDE, TALL], layouts=[layout, ""], device=device, tolerance=1, share=1e-3)
    for filters, layout in (([WIDE], ""), ([np.stack([WIDE, WIDE * 2, WIDE / 2])], "Fab")):
        assert_equals_dali(
            "filter", SEQUENCES, filters, layouts=["FHWC", layout], device=device, tolerance=1, share=1e-3
        )


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.float32])
def test_types(device, dtype):
    images = [image.astype(dtype) for image in IMAGES]
    tolerance = 1e-3 if dtype == np.float32 else 1
    assert_equals_dali("filter", images, [WIDE, -TALL], layouts=["HWC", ""], device=device, tolerance=tolerance)


def test_large_filter(device):
    large = RANDOM.random((15, 15)).astype(np.float32) / 120
    assert_equals_dali("filter", IMAGES, [large, large], layouts=["HWC", ""], device=device, tolerance=1, share=1e-3)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="border must be one of"):
        run_dalify("filter", IMAGES, [WIDE, TALL], layouts=["HWC", ""], border="mirror")
    with pytest.raises(ArgumentValueError, match="anchor must lie within the filter of 3 x 5"):
        run_dalify("filter", IMAGES[:1], [WIDE], layouts=["HWC", ""], anchor=[3, 1])
    with pytest.raises(ShapeError, match="is larger than the image"):
        run_dalify("filter", [np.zeros((2, 2, 1), np.uint8)], [WIDE], layouts=["HWC", ""], mode="valid")
    with pytest.raises(LayoutError, match="'DHWC' has 3"):
        run_dalify("filter", [np.zeros((2, 2, 2, 1), np.uint8)], [WIDE], layouts=["DHWC", ""])
    with pytest.raises(DTypeError, match="dtype must be"):
        run_dalify("filter", IMAGES, [WIDE, TALL], layouts=["HWC", ""], dtype="INT32")
