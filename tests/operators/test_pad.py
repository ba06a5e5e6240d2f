"""fn.pad compared with the real DALI."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((4, 5, 3), (6, 2, 3))]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"axes": [0], "shape": [3], "align": [4]},
        {"axis_names": "HC", "shape": [-1, 5], "fill_value": 3.0},
        {"axis_names": "HW", "align": 4, "fill_value": 254.5},
        {"axis_names": "HW", "shape": 7},
        {"axis_names": "HW", "shape": [0, 7]},
        {"axis_names": "HW", "shape": 0},
        {"axes": [0, 1], "shape": []},
        {"axes": [-1], "shape": [5]},
        {"axes": [0], "shape": Each([np.int32([9]), np.int32([7])]), "fill_value": Each(np.float32([1, 2]))},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int32])
def test_images(device, dtype, arguments):
    data = [image.astype(dtype) for image in IMAGES]
    assert_equals_dali("pad", data, layouts="HWC", device=device, **arguments)


def test_vectors(device):
    vectors = [np.array([3, 4, 2, 5, 4]), np.array([2, 2]), np.array([3, 199, 5])]
    for arguments in ({"axes": [0]}, {"axes": [0], "align": [4]}, {"axes": [0], "shape": [1], "align": [2]}, {}):
        assert_equals_dali("pad", vectors, device=device, fill_value=-1, **arguments)


@pytest.mark.parametrize("rows", [(0, 0, 0), (0, 3, 1), (2, 0, 0), (4,)])
@pytest.mark.parametrize("dtype", [np.uint16, np.float16, np.float64, np.int64])
def test_images_without_boxes(device, dtype, rows):
    boxes = [RANDOM.integers(0, 100, (count, 4)).astype(dtype) for count in rows]
    found = run_dalify("pad", boxes, device=device, axes=[0], fill_value=5)
    for sample, source in zip(found, boxes, strict=True):
        assert sample.dtype == dtype
        missing = max(rows) - len(source)
        np.testing.assert_array_equal(sample, np.pad(source, ((0, missing), (0, 0)), constant_values=5))


def test_the_device_pads_all_samples_together(gpu, monkeypatch):
    calls = []
    module = importlib.import_module("dalify.operators.pad")
    copy = module.window_samples_torch

    def counted(out, *arguments, **options):
        if options["fill_values"] == -1.5:  # a pipeline of another test may still compute a batch
            calls.append(len(out))
        copy(out, *arguments, **options)

    monkeypatch.setattr(module, "window_samples_torch", counted)
    vectors = [np.arange(count + 1, dtype=np.float32) for count in range(9)]
    found = run_dalify("pad", vectors, device=gpu, fill_value=-1.5)
    np.testing.assert_array_equal(found, [np.pad(v, (0, 9 - len(v)), constant_values=-1.5) for v in vectors])
    assert {*calls} == {9}  # one call for each batch that was computed


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="axes and axis_names are mutually exclusive"):
        run_dalify("pad", IMAGES, layouts="HWC", axes=[0], axis_names="H")
    for names in ({"axes": [0, 0]}, {"axes": [1, -2]}, {"axis_names": "HH"}):
        with pytest.raises(ArgumentValueError, match="axes must not be repeated"):
            run_dalify("pad", IMAGES, layouts="HWC", align=[4, 8], **names)
    with pytest.raises(IndexingError, match="out of range for data with 3 dimensions"):
        run_dalify("pad", IMAGES, layouts="HWC", axes=[5])
    with pytest.raises(LayoutError, match="axis_names 'D' must all be in"):
        run_dalify("pad", IMAGES, layouts="HWC", axis_names="D")
    with pytest.raises(ArgumentValueError, match="one number or 2, one for each axis; got 3"):
        run_dalify("pad", IMAGES, layouts="HWC", axis_names="HW", shape=[1, 2, 3])
