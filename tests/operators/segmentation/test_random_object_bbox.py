"""fn.segmentation.random_object_bbox: which boxes and how often, compared with the real DALI and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each, run_dali

NAME = "segmentation.random_object_bbox"
COUNT = 1200
MASK = np.zeros((8, 10), np.int32)
MASK[1:3, 1:4] = MASK[5:7, 5:9] = MASK[4, 3] = 1
MASK[0:2, 7:9] = 2
MASK[7, 0] = 3
WHOLE = (0, 0, 8, 10)
ONES = [(1, 1, 3, 4), (4, 3, 5, 4), (5, 5, 7, 9)]
TWO, THREE = (0, 7, 2, 9), (7, 0, 8, 1)


def shares(outputs):
    """Return how often each result came, as parts of one: box and label."""
    arrays = [np.array(output).reshape(COUNT, -1) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]
    values, counts = np.unique(np.concatenate(arrays, axis=1), axis=0, return_counts=True)
    return {tuple(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


def each(boxes, label, share):
    return {(*box, label): share / len(boxes) for box in boxes}


CASES = [
    ({}, {**each(ONES, 1, 1 / 3), **each([TWO], 2, 1 / 3), **each([THREE], 3, 1 / 3)}),
    (
        {"foreground_prob": 0.3},
        {**each([WHOLE], 0, 0.7), **each(ONES, 1, 0.1), **each([TWO], 2, 0.1), **each([THREE], 3, 0.1)},
    ),
    ({"classes": [1, 3]}, {**each(ONES, 1, 0.5), **each([THREE], 3, 0.5)}),
    ({"classes": [1, 3], "class_weights": [1, 3]}, {**each(ONES, 1, 0.25), **each([THREE], 3, 0.75)}),
    ({"class_weights": [1, 3]}, {**each(ONES, 1, 0.25), **each([TWO], 2, 0.75)}),
    ({"class_weights": [0, 1]}, each([TWO], 2, 1)),
    ({"class_weights": [0, 0]}, each([WHOLE], 0, 1)),
    ({"k_largest": 1}, {**each(ONES[2:], 1, 1 / 3), **each([TWO], 2, 1 / 3), **each([THREE], 3, 1 / 3)}),
    ({"k_largest": 2, "classes": [1]}, {**each([ONES[0], ONES[2]], 1, 1)}),
    ({"threshold": [2, 3]}, each([ONES[0], ONES[2]], 1, 1)),
    ({"threshold": 2}, {**each([ONES[0], ONES[2]], 1, 0.5), **each([TWO], 2, 0.5)}),
    ({"threshold": [2, 4], "k_largest": 1}, each([ONES[2]], 1, 1)),
    ({"threshold": [3, 3]}, each([WHOLE], 0, 1)),
    ({"background": 1}, {**each([WHOLE], 0, 1 / 3), **each([TWO], 2, 1 / 3), **each([THREE], 3, 1 / 3)}),
    ({"classes": [0, 1]}, {**each([WHOLE], 0, 0.5), **each(ONES, 1, 0.5)}),
    ({"classes": [0, 1], "foreground_prob": 0.0}, each([WHOLE], -1, 1)),
    ({"classes": [1, 7]}, each(ONES, 1, 1)),
    ({"classes": [7]}, each([WHOLE], 0, 1)),
]
WITHOUT_CLASSES = [
    ({}, [*ONES, TWO, THREE]),
    ({"k_largest": 2}, [ONES[0], ONES[2]]),
    ({"threshold": [2, 2]}, [ONES[0], ONES[2], TWO]),
    ({"background": 1}, [WHOLE, TWO, THREE]),
]


def assert_distributed(found, expected):
    assert set(found) == set(expected)
    if len(found) > 1:
        keys = sorted(found)
        assert stats.chisquare([found[key] for key in keys], [expected[key] * COUNT for key in keys]).pvalue > 1e-4


@pytest.mark.parametrize(("arguments", "expected"), CASES, ids=lambda value: str(value)[:60])
def test_classes(arguments, expected):
    arguments = {"format": "box", "output_class": True, **arguments}
    assert_distributed(shares(run_dalify(NAME, [MASK] * COUNT, **arguments)), expected)
    assert set(shares(run_dali(NAME, [MASK] * COUNT, **arguments))) == set(expected)


@pytest.mark.parametrize(("arguments", "boxes"), WITHOUT_CLASSES, ids=str)
def test_without_classes(arguments, boxes):
    arguments = {"format": "box", "ignore_class": True, **arguments}
    assert_distributed(shares(run_dalify(NAME, [MASK] * COUNT, **arguments)), {box: 1 / len(boxes) for box in boxes})
    assert set(shares(run_dali(NAME, [MASK] * COUNT, **arguments))) == set(boxes)


def test_formats():
    seeds = {"seed": 5, "foreground_prob": 0.9}
    masks = [MASK] * 20
    boxes = np.array(run_dalify(NAME, masks, format="box", **seeds))
    begin, end = run_dalify(NAME, masks, format="start_end", **seeds)
    anchor, shape = run_dalify(NAME, masks, **seeds)
    labeled = run_dalify(NAME, masks, output_class=True, **seeds)
    assert len(labeled) == 3
    assert labeled[2][0].shape == ()
    for found in (begin, anchor, labeled[0]):
        np.testing.assert_array_equal(found, boxes[:, :2])
    np.testing.assert_array_equal(end, boxes[:, 2:])
    np.testing.assert_array_equal(shape, boxes[:, 2:] - boxes[:, :2])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "uint32", "bool"])
def test_types(dtype):
    found = run_dalify(NAME, [(MASK == 2).astype(dtype)], format="box", output_class=True)
    assert (*found[0][0].tolist(), int(found[1][0])) == (*TWO, 1)
    assert found[0][0].dtype == np.int32


def test_any_dimensions():
    block = np.zeros((3, 4, 5, 2), np.uint8)
    block[1:3, 2, 1:4] = 4
    anchor, shape = run_dalify(NAME, [block])
    assert (anchor[0].tolist(), shape[0].tolist()) == ([1, 2, 1, 0], [2, 1, 3, 2])
    anchor, shape = run_dalify(NAME, [np.uint8([0, 3, 3, 0])])
    assert (anchor[0].tolist(), shape[0].tolist()) == ([1], [2])
    anchor, shape = run_dalify(NAME, [np.ones((1, 1), np.uint8)])
    assert (anchor[0].tolist(), shape[0].tolist()) == ([0, 0], [1, 1])
    corners = np.eye(2, dtype=np.uint8)  # sharing a corner is not enough
    assert run_dalify(NAME, [corners])[1][0].tolist() == [1, 1]


def test_each_sample_has_its_own():
    masks = [MASK, MASK, MASK[:3, :5], MASK]
    found = run_dalify(
        NAME,
        masks,
        format="box",
        output_class=True,
        foreground_prob=Each(np.float32([0, 1, 1, 1])),
        background=Each(np.int32([0, 1, 9, 9])),
        classes=Each([np.int32([1]), np.int32([2, 7]), np.int32([1]), np.int32([3, 3, 7])]),
        threshold=Each(np.int32([[1, 1], [2, 2], [1, 1], [1, 1]])),
    )
    rows = [(*box.tolist(), int(label)) for box, label in zip(*found, strict=True)]
    assert rows == [(*WHOLE, 0), (*TWO, 2), (1, 1, 3, 4, 1), (*THREE, 3)]


def test_cached_boxes_change_nothing():
    masks = [MASK, MASK.T.copy(), MASK[::-1].copy()] * 10
    arguments = {"format": "box", "output_class": True, "threshold": [1, 2], "k_largest": 2, "seed": 3}
    plain = run_dalify(NAME, masks, **arguments)
    for _ in range(2):
        cached = run_dalify(NAME, masks, cache_objects=True, **arguments)
        for one, other in zip(plain, cached, strict=True):
            np.testing.assert_array_equal(one, other)


def test_empty_masks():
    begin, shape, label = run_dalify(NAME, [np.zeros((4, 5), np.int32)], output_class=True)
    assert (begin[0].tolist(), shape[0].tolist(), int(label[0])) == ([0, 0], [4, 5], 0)


def test_mistakes():
    def run(mask=MASK, **arguments):
        run_dalify(NAME, [mask], **arguments)

    for arguments in ({"output_class": True}, {"classes": [1]}, {"class_weights": [1]}):
        with pytest.raises(ArgumentValueError, match="ignore_class cannot be combined"):
            run(ignore_class=True, **arguments)
    with pytest.raises(ArgumentValueError, match="format must be one of anchor_shape"):
        run(format="xyxy")
    with pytest.raises(ArgumentValueError, match="k_largest must be at least 1; got 0"):
        run(k_largest=0)
    with pytest.raises(ArgumentValueError, match="label 2 is both background and a class"):
        run(classes=[1, 2], background=2)
    with pytest.raises(ShapeError, match="got 1 for 2 classes"):
        run(classes=[1, 2], class_weights=[1.0])
    with pytest.raises(ArgumentValueError, match="finite and not negative"):
        run(class_weights=[-1.0])
    with pytest.raises(ShapeError, match="threshold must have one number or 2, one per axis; got 3"):
        run(threshold=[1, 1, 1])
    for dtype in (np.int64, np.float32):
        with pytest.raises(DTypeError, match="at most 32 bits"):
            run(MASK.astype(dtype))
    with pytest.raises(ShapeError, match=r"got the shape \(0, 4\)"):
        run(np.zeros((0, 4), np.uint8))
