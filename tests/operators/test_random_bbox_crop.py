"""fn.random_bbox_crop: its guarantees for every sample, and its distribution compared with DALI's."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import run_dali

TWO = np.array([[0.1, 0.1, 0.3, 0.3], [0.5, 0.5, 0.9, 0.9]], np.float32)
SMALL = np.array([[0.4, 0.4, 0.6, 0.6]], np.float32)
SHAPES = {"scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0]}


def overlap(boxes: np.ndarray, anchor: np.ndarray, shape: np.ndarray) -> np.ndarray:
    start, end = np.maximum(boxes[:, :2], anchor), np.minimum(boxes[:, 2:], anchor + shape)
    inside = np.prod(np.clip(end - start, 0, None), axis=1)
    return inside / (np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) + np.prod(shape) - inside)


def test_windows_satisfy_the_rules():
    labels = np.array([4, 5], np.int32)
    outputs = run_dalify(
        "random_bbox_crop", [TWO] * 300, [labels] * 300, allow_no_crop=False, thresholds=[0.1], num_attempts=5,
        all_boxes_above_threshold=False, output_bbox_indices=True, **SHAPES,
    )  # fmt: skip
    for anchor, shape, boxes, kept_labels, indices in zip(*outputs, strict=True):
        assert (anchor >= 0).all()
        assert (anchor + shape <= 1 + 1e-6).all()
        assert (shape >= 0.3).all()
        assert 0.5 <= shape[0] / shape[1] <= 2.0
        assert overlap(TWO, anchor, shape).max() >= 0.1
        assert len(boxes) == len(kept_labels) == len(indices) > 0
        np.testing.assert_array_equal(kept_labels, labels[indices])
        centers = (TWO[:, :2] + TWO[:, 2:]) / 2
        inside = ((centers >= anchor) & (centers <= anchor + shape)).all(axis=1)
        np.testing.assert_array_equal(np.flatnonzero(inside), indices)
        expected = np.clip((TWO[indices].reshape(-1, 2, 2) - anchor) / shape, 0, 1).reshape(-1, 4)
        np.testing.assert_allclose(boxes, expected, atol=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"thresholds": [0.0], "allow_no_crop": False},
        {"thresholds": [0.0, 0.1, 0.3], "num_attempts": 50},
        {"thresholds": [0.7], "threshold_type": "overlap", "num_attempts": 20, "bbox_prune_threshold": 0.5},
        {"thresholds": [0.0], "allow_no_crop": False, "input_shape": [200, 100]},
        {"thresholds": [0.0], "allow_no_crop": False, "aspect_ratio": [2.0, 2.0]},
        {"thresholds": [0.0], "allow_no_crop": False, "aspect_ratio": [0.0, 0.8]},
        {"thresholds": [0.3], "all_boxes_above_threshold": False, "num_attempts": 3},
        {
            "thresholds": [0.5, 0.9],
            "threshold_type": "overlap",
            "num_attempts": 5,
            "total_num_attempts": 30,
            "quiet": True,
        },
        {
            "thresholds": [0.0],
            "all_boxes_above_threshold": False,
            "crop_shape": [150, 60],
            "input_shape": [200, 100],
            "shape_layout": "HW",
            "total_num_attempts": 50,
            "quiet": True,
        },
        {"thresholds": [0.0], "allow_no_crop": False, "bbox_layout": "xyXY", "bbox_prune_threshold": 0.3},
    ],
)
@pytest.mark.parametrize("boxes", [SMALL, TWO])
def test_distribution_equals_dali(arguments, boxes):
    count = 1500
    arguments = arguments if "crop_shape" in arguments else SHAPES | arguments
    theirs = run_dali("random_bbox_crop", [boxes] * count, **arguments)
    ours = run_dalify("random_bbox_crop", [boxes] * count, **arguments)
    for index in (0, 1):
        expected, result = np.stack(theirs[index]), np.stack(ours[index])
        bound = 5 * np.sqrt((expected.var(axis=0) + result.var(axis=0)) / count) + 1e-6  # five standard errors
        assert (np.abs(expected.mean(axis=0) - result.mean(axis=0)) < bound).all()
    whole = [np.mean([shape.min() >= 1 for shape in outputs[1]]) for outputs in (theirs, ours)]
    assert abs(whole[0] - whole[1]) < 0.1


@pytest.mark.parametrize(
    "arguments",
    [
        {"aspect_ratio": [0.5, 2.0]},
        {"aspect_ratio": [0.5, 2.0, 0.8, 1.5, 0.6, 1.4]},
        {"crop_shape": [20, 30, 40], "input_shape": [50, 60, 70], "total_num_attempts": 50, "quiet": True},
    ],
)
def test_distribution_in_volumes(arguments):
    volume = np.array([[0.2, 0.2, 0.2, 0.6, 0.7, 0.8]], np.float32)
    common = {"thresholds": [0.0], "allow_no_crop": False, "num_attempts": 20}
    arguments = {**common, **({} if "crop_shape" in arguments else {"scaling": [0.4, 1.0]}), **arguments}
    count = 600
    theirs = run_dali("random_bbox_crop", [volume] * count, ltrb=True, **arguments)
    ours = run_dalify("random_bbox_crop", [volume] * count, ltrb=True, **arguments)
    for index in (0, 1):
        expected, result = np.stack(theirs[index]), np.stack(ours[index])
        bound = 5 * np.sqrt((expected.var(axis=0) + result.var(axis=0)) / count) + 1e-6
        assert (np.abs(expected.mean(axis=0) - result.mean(axis=0)) < bound).all()


def test_ragged_batches_with_labels_and_indices():
    counts = (3, 0, 1, 5)
    random = np.random.default_rng(1)
    boxes = [np.sort(random.random((count, 2, 2)), axis=1).reshape(count, 4).astype(np.float32) for count in counts]
    labels = [np.arange(count, dtype=np.int64)[:, None] + 10 for count in counts]
    outputs = run_dalify(
        "random_bbox_crop", boxes, labels, allow_no_crop=False, output_bbox_indices=True, thresholds=[0.0], **SHAPES
    )
    for n, count in enumerate(counts):
        indices = outputs[4][n]
        assert indices.dtype == np.int32
        assert len(indices) > 0 or not count
        assert outputs[3][n].shape == (len(indices), 1)
        np.testing.assert_array_equal(outputs[3][n], labels[n][indices])
        kept = boxes[n][indices].reshape(-1, 2, 2)
        expected = np.clip((kept - outputs[0][n]) / outputs[1][n], 0, 1).reshape(-1, 4)
        np.testing.assert_allclose(outputs[2][n], expected, atol=1e-5)


def test_fixed_windows_are_in_pixels():
    anchor, shape, boxes = run_dalify(
        "random_bbox_crop", [TWO] * 50, crop_shape=[50, 60], input_shape=[100, 200], all_boxes_above_threshold=False
    )
    for corner, extents, kept in zip(anchor, shape, boxes, strict=True):
        assert extents.tolist() == [50, 60]
        assert (corner == np.round(corner)).all()
        assert (corner >= 0).all()
        assert (corner + extents <= [100, 200]).all()
        assert ((kept >= 0) & (kept <= 1)).all()


def test_layouts_of_boxes_agree():
    corners = run_dalify("random_bbox_crop", [TWO] * 20, seed=3, **SHAPES)
    extents = TWO.copy()
    extents[:, 2:] -= extents[:, :2]
    for arguments in ({"ltrb": False}, {"bbox_layout": "xyWH"}):
        other = run_dalify("random_bbox_crop", [extents] * 20, seed=3, **SHAPES, **arguments)
        np.testing.assert_allclose(np.stack(other[0]), np.stack(corners[0]), atol=1e-6)
        for one, two in zip(corners[2], other[2], strict=True):
            np.testing.assert_allclose(two[:, 2:], one[:, 2:] - one[:, :2], atol=1e-5)


def test_results_have_no_layout():
    """As in DALI, also if the inputs have layouts."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        boxes = fn.external_source(source=lambda: [TWO], layout="AB")
        labels = fn.external_source(source=lambda: [np.int32([1, 2])], layout="A")
        return fn.random_bbox_crop(boxes, labels, thresholds=[0.0], output_bbox_indices=True)

    with graph() as pipe:
        assert [output.layout() for output in pipe.run()] == [""] * 5


def test_volumes_and_empty_samples():
    volumes = np.array([[0.1, 0.1, 0.1, 0.6, 0.7, 0.8]], np.float32)
    outputs = run_dalify("random_bbox_crop", [volumes] * 30, allow_no_crop=False, **SHAPES)
    assert all(
        anchor.shape == (3,) and boxes.shape == (1, 6) for anchor, boxes in zip(outputs[0], outputs[2], strict=True)
    )
    outputs = run_dalify("random_bbox_crop", [TWO[:0]] * 3, allow_no_crop=False, **SHAPES)
    assert all(boxes.shape == (0, 4) for boxes in outputs[2])


def test_the_best_candidate_where_none_is_good_enough():
    arguments = {"allow_no_crop": False, "thresholds": [0.99], "total_num_attempts": 20, **SHAPES}
    outputs = run_dalify("random_bbox_crop", [TWO], quiet=True, **arguments)
    assert (outputs[1][0] < 1).all()
    with pytest.warns(UserWarning, match="found no window for 2 boxes after 20 candidates"):
        run_dalify("random_bbox_crop", [TWO], **arguments)


def test_mistakes():
    for arguments, text in (
        ({"crop_shape": [5, 5]}, "crop_shape requires input_shape"),
        ({"crop_shape": [5, 5], "input_shape": [9, 9], "scaling": [0.5, 1.0]}, "cannot be combined with it"),
        ({"crop_shape": [5, 5], "input_shape": [9, 9], "aspect_ratio": [0.5, 2.0]}, "cannot be combined with it"),
        ({"thresholds": [0.5, 1.5]}, "thresholds must be between 0 and 1"),
        ({"thresholds": [-0.1]}, "thresholds must be between 0 and 1"),
        ({"scaling": [1.0, 0.5]}, "scaling must be a non-negative range"),
        ({"aspect_ratio": [0.0, 0.0]}, "aspect_ratio must be"),
        ({"aspect_ratio": [-0.5, 0.5]}, "aspect_ratio must be"),
        ({"aspect_ratio": [0.5, 0.1]}, "aspect_ratio must be"),
        ({"threshold_type": "iuo"}, "Did you mean 'iou'"),
        ({"bbox_layout": "xyXX"}, "bbox_layout must contain"),
        ({"bbox_layout": ""}, "bbox_layout must contain"),
        ({"bbox_layout": "xyXY", "ltrb": False}, "bbox_layout='xyXY' and ltrb=False"),
        ({"input_shape": [5, 5], "shape_layout": ""}, "shape_layout must name W, H"),
        ({"input_shape": [0, 5]}, r"input_shape must be positive; got \[0, 5\]"),
        ({"input_shape": [5, 5], "crop_shape": [2, -3]}, r"crop_shape must be positive; got \[2, -3\]"),
        ({"input_shape": [5, 5], "crop_shape": [0, 3]}, "crop_shape must be positive"),
        ({"total_num_attempts": 0}, "total_num_attempts must be at least 1; got 0"),
        ({"total_num_attempts": -2}, "total_num_attempts must be at least 1; got -2"),
        ({"input_shape": [5, 5], "shape_layout": "WD"}, "shape_layout must name W, H"),
        ({"num_attempts": 0}, "num_attempts must be at least 1"),
    ):
        with pytest.raises(ArgumentValueError, match=text):
            run_dalify("random_bbox_crop", [TWO], **arguments)
    with pytest.raises(ShapeError, match="got 2 boxes and labels of shape"):
        run_dalify("random_bbox_crop", [TWO], [np.zeros(3, np.int32)])
    with pytest.raises(DTypeError, match="boxes must be float32"):
        run_dalify("random_bbox_crop", [TWO.astype(np.float64)])
    with pytest.raises(ShapeError, match=r"boxes must be \[n, 4\]"):
        run_dalify("random_bbox_crop", [TWO[:, :3]])
    with pytest.raises(ArgumentValueError, match=r"between 0 and 1; got \[50.0, 50.0, 90.0, 90.0\]"):
        run_dalify("random_bbox_crop", [SMALL, np.concatenate([TWO[:1], TWO[1:] * 100])])
    with pytest.raises(ArgumentValueError, match=r"got \[0.1, 0.2, 1.5, 0.6\]"):
        run_dalify("random_bbox_crop", [np.float32([[0.1, 0.2, 1.5, 0.6]])])
