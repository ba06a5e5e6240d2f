"""fn.crop_mirror_normalize compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((25, 36, 3), (31, 24, 3))]
SHAPES = {
    "HWC": (15, 26, 3),
    "CHW": (3, 15, 26),
    "FHWC": (4, 15, 26, 3),
    "FCHW": (4, 3, 15, 26),
    "CFHW": (3, 4, 15, 26),
    "DHWC": (7, 15, 26, 3),
    "CDHW": (3, 7, 15, 26),
}
IMAGENET = {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4]}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {**IMAGENET, "crop": [20, 21], "mirror": Each(np.int32([1, 0]))},
        {"crop": [20, 21], "mean": Each(np.float32([[1, 2, 3], [4, 5, 6]])), "std": 3.0, "scale": 2.0, "shift": -1.5},
        {"crop_h": 10, "crop_w": 7, "crop_pos_x": Each(np.float32([0.1, 0.9])), "output_layout": "HWC", "mirror": 1},
        {"crop": [-1, 20], "crop_pos_x": 0.9, **IMAGENET},
        {"crop": [10, 7], "rounding": "truncate", "output_layout": "WHC", "mirror": 1},
        {"pad_output": True, **IMAGENET},
        {"pad_output": True, "output_layout": "HWC", "mirror": 1},
        {"dtype": "UINT8", "mean": 20.0, "std": 0.5},
        {"dtype": "INT8", "mean": 100.0, "mirror": 1},
        {"dtype": "FLOAT16", "mean": 100.0, "std": 50.0},
        {"crop": [28, 20], "out_of_bounds_policy": "pad", "fill_values": [7, 8, 9], "mirror": 1, **IMAGENET},
        {"crop": [28, 40], "out_of_bounds_policy": "pad", "crop_pos_x": 0.2, "mirror": 1, "output_layout": "HWC"},
        {"crop": [28, 20], "out_of_bounds_policy": "trim_to_shape", "crop_pos_y": 0.9, "mirror": 1},
    ],
    ids=str,
)
def test_images(device, arguments):
    tolerance = 1e-2 if arguments.get("dtype") == "FLOAT16" else 1e-4
    assert_equals_dali("crop_mirror_normalize", IMAGES, layouts="HWC", device=device, tolerance=tolerance, **arguments)


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
def test_layouts(device, layout, dtype):
    data = [RANDOM.integers(0, 256, SHAPES[layout]).astype(dtype) for _ in range(2)]
    orders = [order for order in SHAPES if sorted(order) == sorted(layout)]
    for order in orders:
        arguments = {"crop": [9, 20], "crop_pos_y": Each(np.float32([0, 0.7])), "mirror": Each(np.int32([0, 1]))}
        arguments |= {"output_layout": order, "layouts": layout, **IMAGENET}
        assert_equals_dali("crop_mirror_normalize", data, device=device, tolerance=1e-4, **arguments)


@pytest.mark.parametrize("layout", ["FHWC", "DHWC", "CDHW"])
def test_three_axes(device, layout):
    data = [RANDOM.integers(0, 256, SHAPES[layout], dtype=np.uint8) for _ in range(2)]
    order = "FCHW" if "F" in layout else "CDHW"
    arguments = {"crop": [3, 9, 20], "crop_pos_z": 0.8, "output_layout": order, "layouts": layout, **IMAGENET}
    assert_equals_dali("crop_mirror_normalize", data, device=device, tolerance=1e-4, **arguments)


@pytest.mark.parametrize("shape", [(3, 2), (3,), (2, 3), (2, 3, 4), (3, 2, 4)], ids=str)
@pytest.mark.parametrize(
    "arguments",
    [
        {"crop": [9, 20], **IMAGENET},
        {"std": Each(np.float32([[1, 2, 3], [4, 5, 6]])), "mean": 3.0, "scale": 2.0, "shift": -1.5, "dtype": "UINT8"},
        {"crop": [28, 20], "out_of_bounds_policy": "pad", "fill_values": 7, **IMAGENET},
        {"crop": [28, 20], "out_of_bounds_policy": "pad", "fill_values": [7, 8, 9], **IMAGENET},
        {"crop": [9, 20], "pad_output": True, "fill_values": 7, **IMAGENET},
    ],
    ids=str,
)
def test_planes_of_ragged_samples(device, shape, arguments):
    data = [RANDOM.integers(0, 256, (*shape, *extents), dtype=np.uint8) for extents in ((15, 26), (22, 31))]
    layout = {(3,): "CHW", (3, 2): "CFHW", (2, 3): "FCHW", (2, 3, 4): "FCDHW", (3, 2, 4): "CFDHW"}[shape]
    arguments = {"mirror": Each(np.int32([0, 1])), "layouts": layout, "output_layout": layout, **arguments}
    for samples in (data, [data[0], data[0][..., ::-1].copy()]):  # ragged, uniform
        assert_equals_dali("crop_mirror_normalize", samples, device=device, tolerance=1e-4, **arguments)


def test_mistakes():
    with pytest.raises(
        LayoutError, match=r"output_layout 'CHW' must be a permutation of the input layout 'FHWC'"
    ) as caught:
        run_dalify("crop_mirror_normalize", [np.zeros(SHAPES["FHWC"], np.uint8)], layouts="FHWC")
    assert "'FCHW'" in str(caught.value)
    with pytest.raises(ShapeError, match="mean must be one number or one for each of the 3 channels; got 2"):
        run_dalify("crop_mirror_normalize", IMAGES, layouts="HWC", mean=[1, 2])
    with pytest.raises(IndexingError, match="30 x 30 does not fit into 25 x 36"):
        run_dalify("crop_mirror_normalize", IMAGES, layouts="HWC", crop=[30, 30])
    with pytest.raises(ArgumentValueError, match="out_of_bounds_policy must be one of"):
        run_dalify("crop_mirror_normalize", IMAGES, layouts="HWC", out_of_bounds_policy="wrap")
