"""fn.crop compared with the real DALI."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
SHAPES = {
    "HWC": (15, 16, 3),
    "CHW": (3, 15, 16),
    "FHWC": (4, 15, 16, 3),
    "CFHW": (3, 4, 15, 16),
    "DHWC": (7, 15, 16, 2),
}
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((15, 16, 3), (21, 14, 3))]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"crop": [10, 11]},
        {"crop": [10.9, 11.1], "rounding": "truncate"},
        {"crop_h": 10, "crop_w": 7, "crop_pos_x": 1.0, "crop_pos_y": 0.3},
        {"crop": [10, 6], "crop_pos_x": 0.7, "crop_pos_y": 0.7},
        {"crop": [5, 6], "crop_pos_x": 0.7, "crop_pos_y": 0.9, "rounding": "truncate"},
        {"crop": [3, 4], "crop_pos_x": Each(np.float32([0.1, 0.9]))},
        {"crop": Each(np.float32([[3, 4], [5, 6]])), "dtype": "FLOAT"},
        {"crop_w": Each(np.float32([3, 4])), "crop_h": Each(np.float32([8, 4]))},
        {"crop": [-2, 4]},
        {"crop": [5, 0]},
        {"crop": [-0.5, 0.9]},
        {"crop_h": -1, "crop_w": 3},
        {"crop_w": Each(np.float32([-3, 4])), "crop_h": Each(np.float32([8, -1e9]))},
        {"crop": [18, 9], "out_of_bounds_policy": "pad", "fill_values": [7, 8, 9]},
        {"crop": [18, 19], "out_of_bounds_policy": "pad", "fill_values": 250.4, "crop_pos_x": 0.1},
        {"crop": [18, 15], "out_of_bounds_policy": "trim_to_shape", "crop_pos_y": 0.9},
    ],
    ids=str,
)
def test_images(device, arguments):
    assert_equals_dali("crop", IMAGES, layouts="HWC", device=device, **arguments)


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int32])
def test_layouts(device, layout, dtype):
    data = [RANDOM.integers(0, 256, SHAPES[layout]).astype(dtype) for _ in range(2)]
    assert_equals_dali("crop", data, layouts=layout, device=device, crop=[9, 4], crop_pos_x=Each(np.float32([0, 0.7])))
    if "D" in layout or "F" in layout:
        assert_equals_dali("crop", data, layouts=layout, device=device, crop=[3, 9, 4], crop_pos_z=0.2)


@pytest.mark.parametrize("rounding", ["round", "truncate"])
@pytest.mark.parametrize("operator", ["crop", "crop_mirror_normalize"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_positions_are_rounded_as_exact_products(operator, rounding, axis):
    """0.7 as a float32 is slightly less than 0.7, so that 0.7 of 10 elements is slightly less than 7."""
    room = range(100)
    layout, argument = "DHWC", ("crop_pos_z", "crop_pos_y", "crop_pos_x")[axis]
    shape, window = np.array([1, 1, 1, 1]), [1, 1, 1]
    window[axis] = 3
    data = []
    for extent in room:
        shape[axis] = extent + 3
        data.append(np.arange(extent + 3, dtype=np.float32).reshape(shape))
    options: dict[str, Any] = {"crop": window, "rounding": rounding}
    if operator == "crop_mirror_normalize":
        options["output_layout"] = layout
    for position in (0.1, 0.3, 0.35, 0.5, 0.55, 0.7, 0.9):
        exact = [Fraction(float(np.float32(position))) * extent for extent in room]
        starts = [math.floor(product + (Fraction(1, 2) if rounding == "round" else 0)) for product in exact]
        options[argument] = position
        windows = run_dalify(operator, data, layouts=layout, **options)
        assert [int(found.min()) for found in windows] == starts


@pytest.mark.parametrize("shape", [[3, -1, 4], [-1, 0, 4], [-7, -7, -7]])
def test_negative_extents_of_volumes(device, shape):
    data = [RANDOM.integers(0, 256, SHAPES["DHWC"], dtype=np.uint8)]
    assert_equals_dali("crop", data, layouts="DHWC", device=device, crop=shape)


def test_mistakes():
    with pytest.raises(IndexingError, match="18 x 15 does not fit into 15 x 16"):
        run_dalify("crop", IMAGES, layouts="HWC", crop=[18, 15])
    with pytest.raises(
        ArgumentValueError, match=r"crop_pos_x must be in \[0, 1\]; got 1\.5(?s:.*)fn\.slice takes"
    ) as caught:
        run_dalify("crop", [IMAGES[0]] * 2, layouts="HWC", crop=[3, 4], crop_pos_x=Each(np.float32([0, 1.5])))
    assert "sample 1" in str(caught.value)
    with pytest.raises(ArgumentValueError, match="must be used together"):
        run_dalify("crop", IMAGES, layouts="HWC", crop_w=3)
    with pytest.raises(ArgumentValueError, match="cannot be used together"):
        run_dalify("crop", IMAGES, layouts="HWC", crop=[3, 4], crop_w=3, crop_h=3)
    with pytest.raises(ArgumentValueError, match="2 or 3 elements"):
        run_dalify("crop", IMAGES, layouts="HWC", crop=3)
    with pytest.raises(ArgumentValueError, match="one for each of the 3 channels"):
        run_dalify("crop", IMAGES, layouts="HWC", crop=[3, 3], fill_values=[1, 2], out_of_bounds_policy="pad")
    with pytest.raises(LayoutError, match="'HW'"):
        run_dalify("crop", [IMAGES[0][..., 0]], layouts="HW", crop=[3, 3])


@pytest.mark.parametrize(
    ("name", "arguments"), [("crop", {"crop": [2, 3]}), ("slice", {"rel_start": [0.0, 0.0], "rel_shape": [0.5, 0.5]})]
)
def test_every_type_can_be_requested(device, name, arguments):
    """UINT8 is number 0 of the types, and no less a type than others."""
    images = [np.linspace(-5, 300, 60, dtype=np.float32).reshape(4, 5, 3)]
    (floats,) = run_dalify(name, images, layouts="HWC", device=device, **arguments)
    for dtype in ("UINT8", "INT16"):
        (ours,) = run_dalify(name, images, layouts="HWC", device=device, dtype=dtype, **arguments)
        assert ours.dtype == np.dtype(dtype.lower())
        limits = np.iinfo(ours.dtype)
        np.testing.assert_array_equal(ours, np.trunc(floats).clip(limits.min, limits.max))


@pytest.mark.parametrize("layout", ["DHW", "HW", "WHC", "HCWD"])
def test_hints_about_layouts_can_be_followed(layout):
    """Layouts other than those of images: the correction that the error suggests works."""
    data = [RANDOM.integers(0, 256, (4, 5, 6, 7)[: len(layout)], dtype=np.uint8)] * 2

    def run(change: Callable[[Any], Any]) -> Any:
        @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def pipeline() -> Any:
            return dalify.fn.crop(change(dalify.fn.external_source(source=lambda: data, layout=layout)), crop=[2, 2])

        return pipeline().run()[0]

    with pytest.raises(LayoutError) as caught:
        run(lambda x: x)
    written = re.search(r"first: (fn\..*\))\.", str(caught.value))
    assert written is not None
    result = run(lambda x: eval(written[1], {"fn": dalify.fn, "x": x}))
    assert sorted(result.layout()) == sorted({*layout, "C"})
    options = re.findall(r"[A-Z]+", str(caught.value).partition("supports")[2].partition(".")[0])
    assert len(options) == len(set(options))
