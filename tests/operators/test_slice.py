"""fn.slice compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((10, 8, 3), (12, 9, 3))]


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": [2, 1]},
        {"end": [2, 1]},
        {"shape": [2, 1]},
        {"rel_start": [0.25, 0.2], "rel_end": [0.75, 0.5]},
        {"rel_start": [0.15, 0.05], "rel_shape": [0.2, 0.1]},
        {"rel_start": [0.25, 0.2], "shape": [3, 4]},
        {"start": [1, 2], "rel_shape": [0.33, 0.5], "dtype": "FLOAT"},
        {"start": 2, "end": 5, "axes": [0]},
        {"start": Each(np.int32([[4, 5], [1, 2]])), "end": [6, 6], "axis_names": "HW"},
        {"start": [-2, 5], "shape": [4, 9], "out_of_bounds_policy": "pad", "fill_values": [1, 2, 3]},
        {"start": [-2, 5], "shape": [4, 9], "out_of_bounds_policy": "trim_to_shape"},
        *(
            {"start": [-9, 3], "shape": [24, 30], "out_of_bounds_policy": policy}
            for policy in ("edge", "clamp", "reflect", "reflect_1001", "reflect_101", "wrap")
        ),
    ],
    ids=str,
)
def test_images(device, arguments):
    assert_equals_dali("slice", IMAGES, layouts="HWC", device=device, **arguments)


@pytest.mark.parametrize(
    ("dtype", "begin", "size", "arguments"),
    [
        (np.float32, [[0.25, 0.2], [0.1, 0]], [[0.5, 0.3], [0.15, 1]], {}),
        (np.float32, [[2.5, 0.2], [1, 1]], [[3.5, 4], [1, 1]], {"normalized_anchor": False, "normalized_shape": False}),
        (np.int32, [[2, 1], [0, 0]], [[3, 4], [1, 2]], {}),
        (np.int32, [[2], [0]], [[3], [1]], {"axes": [-2]}),
    ],
)
def test_coordinates_as_inputs(dtype, begin, size, arguments):
    inputs = [np.array(row, dtype) for row in begin], [np.array(row, dtype) for row in size]
    assert_equals_dali("slice", IMAGES, *inputs, layouts=["HWC", "", ""], **arguments)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.int8])
def test_any_data(device, dtype):
    vectors = [np.arange(9).astype(dtype), np.arange(7).astype(dtype)]
    assert_equals_dali("slice", vectors, device=device, start=[4], end=[6], axes=[0])


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="the slice is not specified"):
        run_dalify("slice", IMAGES, layouts="HWC")
    with pytest.raises(ArgumentValueError, match="the inputs anchor and shape must be specified together"):
        run_dalify("slice", IMAGES, [np.float32([0.1, 0.1])] * len(IMAGES), layouts=["HWC", ""])
    with pytest.raises(ArgumentValueError, match="end and shape are mutually exclusive"):
        run_dalify("slice", IMAGES, layouts="HWC", end=[4, 5], shape=[2, 2])
    with pytest.raises(ArgumentValueError, match="ends at 2, before its start 4"):
        run_dalify("slice", IMAGES, layouts="HWC", start=[4, 5], end=[2, 2])
    with pytest.raises(ArgumentValueError, match="must match the 2 axes; got 3"):
        run_dalify("slice", IMAGES, layouts="HWC", start=[4, 5, 1])
    with pytest.raises(IndexingError, match="axis 1 extends outside its 8 elements") as caught:
        run_dalify("slice", IMAGES, layouts="HWC", start=[4, 5], shape=[20, 2])
    assert "sample 0" in str(caught.value)
    with pytest.raises(LayoutError, match="axis_names 'DW' must all be in the layout of the data, 'HWC'"):
        run_dalify("slice", IMAGES, layouts="HWC", start=[4, 5], axis_names="DW")
    with pytest.raises(IndexingError, match="out of range for data with 1 dimension"):
        run_dalify("slice", [np.arange(5)], start=[4], axes=[1])
    with pytest.raises(ArgumentValueError, match="axes and axis_names are mutually exclusive"):
        run_dalify("slice", IMAGES, layouts="HWC", start=[4], axes=[0], axis_names="W")


@pytest.mark.parametrize("layout", ["", "A"])
def test_default_axes_that_do_not_exist(layout):
    """The message does not mention axes that the user did not write."""
    with pytest.raises(
        LayoutError, match=r"(?s)by default the coordinates refer to the axes W and H, but the data has .*axes=\[0\]"
    ):
        run_dalify("slice", [np.arange(5)], layouts=layout, start=[4])


@pytest.mark.parametrize("names", [{"axes": [0, 0]}, {"axes": [1, -2]}, {"axis_names": "HH"}])
def test_repeated_axes(names):
    coordinates = [np.int32([1, 1])] * len(IMAGES)
    with pytest.raises(ArgumentValueError, match="axes must not be repeated"):
        run_dalify("slice", IMAGES, layouts="HWC", start=[1, 1], **names)
    with pytest.raises(ArgumentValueError, match="axes must not be repeated"):
        run_dalify("slice", IMAGES, coordinates, coordinates, layouts=["HWC", "", ""], **names)


@pytest.mark.parametrize("how", ["arguments", "constant inputs", "inputs", "varying argument"])
def test_windows_follow_shapes_and_values_of_each_batch(how: str) -> None:
    """Windows are cached only for the same shapes, and not if they depend on values."""
    shapes = [(8, 6), (8, 6), (5, 7), (8, 6), (4, 4)]
    batches = [[RANDOM.integers(0, 256, (*shape, 3), dtype=np.uint8) for _ in range(4)] for shape in shapes]
    is_constant = how in ("arguments", "constant inputs")
    firsts = [np.int64([1, 1, 1, 1]) if is_constant else (np.arange(4) + n) % 3 for n in range(len(shapes))]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipeline():
        images = fn.external_source(batches, batch=True, cycle="quiet", layout="HWC")
        starts = fn.external_source([list(first[:, None]) for first in firsts], batch=True, cycle="quiet")
        if how == "arguments":
            return fn.slice(images, start=[1], shape=[2], axes=[0])
        if how == "constant inputs":
            return fn.slice(images, 1, 2, axes=[0])
        if how == "inputs":
            return fn.slice(images, starts, np.int64([2]), axes=[0])
        return fn.slice(images, start=fn.cast(starts, dtype=types.INT32), shape=[2], axes=[0])

    pipe = pipeline()
    for images, first in zip(batches * 2, firsts * 2, strict=True):
        (sliced,) = pipe.run()
        for sample, (image, row) in enumerate(zip(images, first, strict=True)):
            np.testing.assert_array_equal(sliced.at(sample), image[row : row + 2])
