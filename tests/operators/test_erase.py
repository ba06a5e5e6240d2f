"""fn.erase compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"shape": [3, 6]},
        {"anchor": [0.0, 2.6], "shape": [1.0, 2.6]},
        {"anchor": [-1.5, 8], "shape": [3, 300]},
        {"anchor": [5, 10, 20, 30], "shape": [3, 4, 5, 6]},
        {"anchor": [0.2, 0.3], "shape": [0.3, 0.2], "normalized": True, "centered_anchor": True},
        {"anchor": [0.2, 0.3], "shape": [3, 4], "normalized_anchor": True, "fill_value": [1.0, 2.0, 3.0]},
        {"anchor": [5, 20], "shape": [3, 6], "axis_names": "W", "fill_value": 1.5},
        {"anchor": [10, 20], "shape": [5, 6], "axes": [1, 0]},
        {"anchor": [1, 10], "shape": [2, 6], "axis_names": "CW", "fill_value": [1.0, 2.0, 3.0]},
        {"anchor": [5, 10], "shape": [2, 6], "fill_value": Each(np.float32([[1, 2, 3], [4, 5, 6]]))},
        {"anchor": Each(np.float32([[1, 2], [3, 4]])), "shape": Each(np.float32([[1, 2], [30, 4]]))},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("erase", IMAGES, layouts="HWC", device=device, **arguments)


def test_sequences(device):
    assert_equals_dali("erase", SEQUENCES, layouts="FHWC", device=device, anchor=[1, 2, 3], shape=[1, 4, 5])


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_types(device, dtype):
    images = [image.astype(dtype) for image in IMAGES]
    assert_equals_dali("erase", images, layouts="HWC", device=device, anchor=[1, 2], shape=[3, 4], fill_value=-1.5)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="specify either normalized"):
        run_dalify("erase", IMAGES, layouts="HWC", shape=[1, 1], normalized=True, normalized_shape=True)
    with pytest.raises(ShapeError, match="anchor and shape must have the same size; got 4 and 2"):
        run_dalify("erase", IMAGES, layouts="HWC", anchor=[1, 2, 3, 4], shape=[1, 1])
    with pytest.raises(ShapeError, match="must have 2 numbers per region"):
        run_dalify("erase", IMAGES, layouts="HWC", shape=[1, 1, 1])
    with pytest.raises(ShapeError, match="anchor requires shape"):
        run_dalify("erase", IMAGES, layouts="HWC", anchor=[1, 1])
    with pytest.raises(ShapeError, match="fill_value has 2 values; the data has 3 channels"):
        run_dalify("erase", IMAGES, layouts="HWC", shape=[1, 1], fill_value=[1.0, 2.0])
    with pytest.raises(LayoutError, match="no layout"):
        run_dalify("erase", IMAGES, shape=[1, 1])
