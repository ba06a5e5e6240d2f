"""fn.filter compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


WIDE = RANDOM.random((3, 5)).astype(np.float32) / 8
TALL = RANDOM.random((4, 2)).astype(np.float32) / 4
BLOCK = (RANDOM.random((2, 3, 4)) / 12).astype(np.float32)
# SciPy's names of borders.
SCIPY = {"reflect_101": "mirror", "reflect_1001": "reflect", "wrap": "wrap", "clamp": "nearest", "constant": "constant"}


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
    gray = [image[..., 0] for image in IMAGES]
    for data, layout in ((planar, "CHW"), (gray, "HW")):
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


def correlated(volume, block, border="reflect_101", anchor=(1, 1, 2), fill=0.0):
    """Filter a volume DHWC by SciPy, in float64."""
    # SciPy's origin counts from the middle, rounded down.
    origin = [at - extent // 2 for at, extent in zip(anchor, block.shape, strict=True)]
    return ndimage.correlate(
        volume.astype(np.float64),
        block[..., None].astype(np.float64),
        mode=SCIPY[border],
        cval=fill,
        origin=[*origin, 0],
    )


@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.parametrize("anchor", [-1, [0, 2, 3]])
def test_volumes(device, border, anchor):
    volume = RANDOM.integers(0, 256, (5, 8, 9, 2), dtype=np.uint8)
    fills = [] if border != "constant" else [[np.uint8(50)]]
    at = (1, 1, 2) if anchor == -1 else anchor
    for dtype, tolerance in (("UINT8", 0.501), ("FLOAT", 1e-3)):
        result = run_dalify(
            "filter", [volume], [BLOCK], *fills, layouts=["DHWC", *[""] * (1 + len(fills))], device=device,
            border=border, anchor=anchor, dtype=dtype,
        )[0]  # fmt: skip
        expected = correlated(volume, BLOCK, border, at, 50.0 if fills else 0.0)
        assert np.abs(result - expected).max() < tolerance


def test_layouts_of_volumes(device):
    volume = RANDOM.normal(size=(5, 8, 9, 2)).astype(np.float32)
    expected = correlated(volume, BLOCK)
    planar = np.ascontiguousarray(volume.transpose(3, 0, 1, 2))
    cases = [
        (volume, BLOCK, "DHWC", expected),
        (volume, BLOCK, "", expected),
        (planar, BLOCK, "CDHW", expected.transpose(3, 0, 1, 2)),
        (np.ascontiguousarray(volume[..., 0]), BLOCK, "DHW", expected[..., 0]),
        (np.stack([volume, -volume]), np.stack([BLOCK, 2 * BLOCK]), "FDHWC", np.stack([expected, -2 * expected])),
    ]
    for data, block, layout, wanted in cases:
        result = run_dalify("filter", [data], [block], layouts=[layout, ""], device=device)[0]
        np.testing.assert_allclose(result, wanted, atol=1e-5)
    valid = run_dalify("filter", [volume], [BLOCK], layouts=["DHWC", ""], device=device, mode="valid")[0]
    np.testing.assert_allclose(valid, expected[1:, 1:-1, 2:-1], atol=1e-5)
    one = run_dalify("filter", [np.ones((1, 1, 1, 1), np.float32)], [BLOCK], layouts=["DHWC", ""], device=device)[0]
    np.testing.assert_allclose(one, BLOCK.sum(), rtol=1e-5)


def test_fill_is_constant(device):
    """Two names of one border."""
    arguments = {"layouts": ["HWC", "", ""], "device": device}
    fills = [np.uint8(7), np.uint8(200)]
    pair = [
        run_dalify("filter", IMAGES, [WIDE, TALL], fills, border=name, **arguments) for name in ("fill", "constant")
    ]
    for one, other in zip(*pair, strict=True):
        np.testing.assert_array_equal(one, other)


def test_large_filter(device):
    large = RANDOM.random((15, 15)).astype(np.float32) / 120
    assert_equals_dali("filter", IMAGES, [large, large], layouts=["HWC", ""], device=device, tolerance=1, share=1e-3)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="border must be one of"):
        run_dalify("filter", IMAGES, [WIDE, TALL], layouts=["HWC", ""], border="mirror")
    with pytest.raises(ArgumentValueError, match="anchor must be inside the filter of 3 x 5"):
        run_dalify("filter", IMAGES[:1], [WIDE], layouts=["HWC", ""], anchor=[3, 1])
    with pytest.raises(ShapeError, match="is larger than the image"):
        run_dalify("filter", [np.zeros((2, 2, 1), np.uint8)], [WIDE], layouts=["HWC", ""], mode="valid")
    with pytest.raises(ShapeError, match="must have at least one element"):
        run_dalify("filter", IMAGES[:1], [np.zeros((3, 0), np.float32)], layouts=["HWC", ""])
    with pytest.raises(LayoutError, match="'WC' has 1"):
        run_dalify("filter", [np.zeros((2, 2), np.uint8)], [WIDE], layouts=["WC", ""])
    volume = [np.zeros((2, 2, 2, 1), np.uint8)]
    with pytest.raises(ShapeError, match="the filter must have 3 axes"):
        run_dalify("filter", volume, [WIDE], layouts=["DHWC", ""])
    with pytest.raises(ShapeError, match="is larger than the image"):
        run_dalify("filter", volume, [BLOCK], layouts=["DHWC", ""], mode="valid")
    with pytest.raises(ArgumentValueError, match="inside the filter of 2 x 3 x 4"):
        run_dalify("filter", volume, [BLOCK], layouts=["DHWC", ""], anchor=[0, 0, 4])
    with pytest.raises(DTypeError, match="dtype must be"):
        run_dalify("filter", IMAGES, [WIDE, TALL], layouts=["HWC", ""], dtype="INT32")
