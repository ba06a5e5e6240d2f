"""fn.bbox_rotate beside the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


CORNERS = np.sort(RANDOM.random((12, 2, 2)), axis=1).reshape(-1, 4).astype(np.float32)
LABELS = np.arange(12, dtype=np.int32)


@pytest.mark.parametrize("mode", ["expand", "fixed", "halfway"])
@pytest.mark.parametrize("keep_size", [False, True])
@pytest.mark.parametrize("angle", [30.0, -100.0, 90.0])
def test_modes(mode, keep_size, angle):
    assert_equals_dali(
        "bbox_rotate", [CORNERS], [LABELS], tolerance=1e-5, angle=angle, input_shape=[100, 200], mode=mode,
        keep_size=keep_size, remove_threshold=0.5,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_shape": [200, 100], "shape_layout": "WH"},
        {"input_shape": [100, 200, 3], "shape_layout": "HWC"},
        {"input_shape": [100, 200], "bbox_layout": "xyWH"},
        {"input_shape": [101, 200], "size": [60, 90]},
        {"input_shape": Each(np.int64([[50, 70], [90, 31]]))},
    ],
)
def test_options(arguments):
    assert_equals_dali("bbox_rotate", [CORNERS, CORNERS[:3] * 0.5], tolerance=1e-5, angle=25.0, **arguments)


def test_pixels():
    boxes = CORNERS * np.float32([200, 100, 200, 100])
    assert_equals_dali(
        "bbox_rotate", [boxes], tolerance=1e-3, angle=25.0, input_shape=[100, 200], bbox_normalized=False
    )


def test_mistakes():
    for arguments, text in (
        ({"mode": "grow"}, "mode must be one of"),
        ({"size": [5, 5], "keep_size": True}, "give either `keep_size` or `size`"),
        ({"remove_threshold": 2.0}, "remove_threshold must lie"),
        ({"shape_layout": "XY"}, "must name H and W"),
        ({"bbox_layout": "yxYX"}, "bbox_layout must be one of"),
    ):
        with pytest.raises(ArgumentValueError, match=text):
            run_dalify("bbox_rotate", [CORNERS], angle=1.0, input_shape=[5, 5], **arguments)
    with pytest.raises(ShapeError, match="12 boxes need as many labels"):
        run_dalify("bbox_rotate", [CORNERS], [LABELS[:3]], angle=1.0, input_shape=[5, 5])
    with pytest.raises(DTypeError, match="boxes must be float32"):
        run_dalify("bbox_rotate", [CORNERS.astype(np.float64)], angle=1.0, input_shape=[5, 5])
