"""The search for crop windows: its rules, for any boxes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.kernels.bbox_crop import ATTEMPTS_AT_ONCE, DRAWS_PER_ATTEMPT, CropRules, clipped_boxes, search

RULES = CropRules((0.1,), False, False, False, (0.3, 1.0), ((0.5, 2.0),), 5, 200, None)


def numbers(seed):
    def draw(portion):
        return np.random.default_rng([seed, portion]).random((ATTEMPTS_AT_ONCE, DRAWS_PER_ATTEMPT))

    return draw


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([2, 3]))
def test_windows_lie_in_the_image_and_keep_a_box(seed, count, axes):
    boxes = np.sort(np.random.default_rng(seed).random((count, 2, axes)), axis=1).reshape(count, -1)
    rules = RULES if axes == 2 else CropRules(**{**RULES.__dict__, "aspect_ratio": ((0.5, 2.0),) * 3})
    found = search(boxes, numbers(seed), rules, np.ones(axes), None)
    assert (found.anchor >= 0).all()
    assert (found.anchor + found.shape <= 1 + 1e-9).all()
    assert found.kept.any() or not found.is_valid
    kept = clipped_boxes(boxes, found)
    assert kept.shape == (found.kept.sum(), 2 * axes)
    assert ((kept >= 0) & (kept <= 1)).all()


def test_same_numbers_same_window():
    boxes = np.array([[0.1, 0.1, 0.5, 0.5]])
    one, other = (search(boxes, numbers(3), RULES, np.ones(2), None) for _ in range(2))
    np.testing.assert_array_equal(one.anchor, other.anchor)
    np.testing.assert_array_equal(one.shape, other.shape)


def test_no_crop_is_one_of_the_choices():
    boxes = np.array([[0.0, 0.0, 1.0, 1.0]])
    rules = CropRules((0.0,), True, False, True, (0.3, 0.9), ((0.1, 10.0),), 50, 10_000, None)
    whole = [search(boxes, numbers(seed), rules, np.ones(2), None).shape.min() == 1 for seed in range(300)]
    assert 0.4 < np.mean(whole) < 0.7


def test_hopeless_rules_end():
    boxes = np.array([[0.0, 0.0, 0.01, 0.01], [0.99, 0.99, 1.0, 1.0]])
    rules = CropRules((0.9,), False, False, True, (0.3, 0.5), ((0.5, 2.0),), 5, 50, None)
    assert not search(boxes, numbers(0), rules, np.ones(2), None).is_valid
