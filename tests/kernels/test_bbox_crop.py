"""The search for crop windows: its rules, for any boxes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.data.rows import Rows
from dalify.kernels.boxes.bbox_crop import CropRules, Found, search
from dalify.kernels.random.philox import Draws

RULES = CropRules((0.1,), False, False, False, (0.3, 1.0), ((0.5, 2.0),), 5, 200, None)


def found_for(samples: list[np.ndarray], rules: CropRules, seed: int = 0, sizes: np.ndarray | None = None) -> Found:
    count, axes = len(samples), samples[0].shape[1] // 2
    numbers = Draws(seed).numba_arguments(np.arange(count))
    return search(Rows.of_samples(samples), numbers, rules, np.ones((count, axes)), sizes)


def random_boxes(seed: int, count: int, axes: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).random((count, 2, axes)), axis=1).reshape(count, 2 * axes)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), min_size=1, max_size=4), st.sampled_from([2, 3]))
def test_windows_lie_in_the_image_and_keep_a_box(seed, counts, axes):
    samples = [random_boxes(seed, count, axes) for count in counts]
    found = found_for(samples, RULES if axes == 2 else replace(RULES, aspect_ratio=((0.5, 2.0),) * 3), seed)
    assert (found.anchors >= 0).all()
    assert (found.anchors + found.shapes <= 1 + 1e-9).all()
    start = 0
    for boxes, kept, is_valid, anchor, shape in zip(
        samples, found.boxes.split(), found.is_valid, found.anchors, found.shapes, strict=True
    ):
        chosen = found.kept[start : start + len(boxes)]
        start += len(boxes)
        assert kept.shape == (chosen.sum(), 2 * axes)
        assert chosen.any() or not is_valid or not len(boxes)
        expected = np.clip((boxes[chosen].reshape(-1, 2, axes) - anchor) / shape, 0, 1).reshape(-1, 2 * axes)
        np.testing.assert_allclose(kept, expected)


def test_other_samples_change_nothing():
    """The result of a sample is the same alone, among others, and if repeated."""
    samples = [random_boxes(seed, seed, 2) for seed in (1, 5, 0, 3)]
    together, again = found_for(samples, RULES), found_for(samples, RULES)
    np.testing.assert_array_equal(together.anchors, again.anchors)
    for n, boxes in enumerate(samples):
        numbers = Draws(0).numba_arguments(np.array([n]))
        alone = search(Rows.of_samples([boxes]), numbers, RULES, np.ones((1, 2)), None)
        np.testing.assert_array_equal(alone.anchors[0], together.anchors[n])
        np.testing.assert_array_equal(alone.boxes.values, together.boxes.split()[n])


def test_no_crop_is_one_of_the_choices():
    boxes = np.array([[0.0, 0.0, 1.0, 1.0]])
    rules = CropRules((0.0,), True, False, True, (0.3, 0.9), ((0.1, 10.0),), 50, 10_000, None)
    whole = found_for([boxes] * 300, rules).shapes.min(axis=1) == 1
    assert 0.4 < np.mean(whole) < 0.7


def test_rules_that_cannot_be_met_return_the_best_window():
    boxes = np.array([[0.0, 0.0, 0.01, 0.01], [0.99, 0.99, 1.0, 1.0]])
    rules = CropRules((0.9,), False, False, True, (0.3, 0.5), ((0.5, 2.0),), 5, 50, None)
    assert not found_for([boxes], rules).is_valid.any()
    one = np.array([[0.4, 0.4, 0.6, 0.6]])
    few, many = (
        found_for([one] * 20, replace(rules, thresholds=(2.0,), is_overlap=False, total_num_attempts=count))
        for count in (1, 300)
    )
    reached = [overlap_of(one, found) for found in (few, many)]
    assert (reached[1] >= reached[0]).all()
    assert reached[1].min() > 0.2


def overlap_of(boxes: np.ndarray, found: Found) -> np.ndarray:
    start = np.maximum(boxes[0, :2], found.anchors)
    end = np.minimum(boxes[0, 2:], found.anchors + found.shapes)
    inside = np.clip(end - start, 0, None).prod(axis=1)
    return inside / ((boxes[0, 2:] - boxes[0, :2]).prod() + found.shapes.prod(axis=1) - inside)


def test_fixed_windows():
    boxes = random_boxes(0, 3, 2)
    found = found_for([boxes] * 5, replace(RULES, thresholds=(0.0,)), sizes=np.full((5, 2), 0.5))
    np.testing.assert_array_equal(found.shapes, 0.5)
