"""fn.bbox_rotate compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
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


ODD = np.float32([[0, 0, 1, 1], [0.3, 0.3, 0.3, 0.3], [0.9, 0.9, 1, 1], [-0.2, -0.1, 0.3, 0.4], [2, 2, 3, 3]])


@pytest.mark.parametrize("mode", ["expand", "fixed", "halfway"])
@pytest.mark.parametrize("angle", [0.0, 44.0, 46.0, -46.0, 134.0, 136.0, 400.0])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9])
def test_degenerate_boxes(mode, angle, threshold, device):
    """Without area, over the border, outside; DALI keeps and drops the same."""
    boxes = [np.concatenate([CORNERS, ODD]), ODD[:1], CORNERS[:0], ODD]
    labels = [np.arange(len(item), dtype=np.int32)[:, None] for item in boxes]
    assert_equals_dali(
        "bbox_rotate", boxes, labels, device=device, tolerance=1e-5, angle=angle, input_shape=[100, 200], mode=mode,
        keep_size=True, remove_threshold=threshold,
    )  # fmt: skip


def test_corners_in_the_wrong_order():
    assert_equals_dali(
        "bbox_rotate", [np.float32([[0.5, 0.6, 0.2, 0.1]])], angle=30.0, input_shape=[50, 50], tolerance=1e-5
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "expand"},
        {"mode": "fixed", "keep_size": True},
        {"mode": "halfway", "size": [60.0, 90.0]},
        {"bbox_layout": "xyWH"},
        {"bbox_normalized": False},
    ],
)
def test_gpu(arguments, gpu):
    boxes, labels = [CORNERS, CORNERS[:0], CORNERS[:5]], [LABELS, LABELS[:0], LABELS[:5]]
    arguments = {"angle": Each(np.float32([20, 50, -110])), "input_shape": [100, 201], **arguments}
    results = [run_dalify("bbox_rotate", boxes, labels, device=device, **arguments) for device in ("cpu", gpu)]
    for one, other in zip(results[0][0], results[1][0], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    for one, other in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_angles_that_are_not_finite():
    with pytest.raises(ArgumentValueError, match=r"finite number of degrees; got nan(?s:.)*sample 1 of the batch"):
        run_dalify("bbox_rotate", [CORNERS] * 2, angle=Each(np.float32([1, np.nan])), input_shape=[5, 5])


def test_pixels():
    boxes = CORNERS * np.float32([200, 100, 200, 100])
    assert_equals_dali(
        "bbox_rotate", [boxes], tolerance=1e-3, angle=25.0, input_shape=[100, 200], bbox_normalized=False
    )


def test_mistakes():
    for arguments, text in (
        ({"mode": "grow"}, "mode must be one of"),
        ({"size": [5, 5], "keep_size": True}, "specify either keep_size or size"),
        ({"remove_threshold": 2.0}, "remove_threshold must be between"),
        ({"shape_layout": "XY"}, "must name H and W"),
        ({"bbox_layout": "yxYX"}, "bbox_layout must be one of"),
    ):
        with pytest.raises(ArgumentValueError, match=text):
            run_dalify("bbox_rotate", [CORNERS], angle=1.0, input_shape=[5, 5], **arguments)
    with pytest.raises(ShapeError, match="got 12 boxes and labels of shape"):
        run_dalify("bbox_rotate", [CORNERS], [LABELS[:3]], angle=1.0, input_shape=[5, 5])
    with pytest.raises(DTypeError, match="boxes must be float32"):
        run_dalify("bbox_rotate", [CORNERS.astype(np.float64)], angle=1.0, input_shape=[5, 5])
