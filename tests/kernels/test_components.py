"""Objects of masks compared with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from dalify.data.samples import Samples
from dalify.kernels.boxes.components import labels_of_samples, objects_of_samples


def object_boxes(mask: np.ndarray, label: int, *, is_excluded: bool = False) -> np.ndarray:
    labels = np.array([7, label])
    boxes, counts = objects_of_samples(Samples.of_dense(np.stack([mask, mask])), labels, is_excluded=is_excluded)
    assert counts.sum() == len(boxes)
    return boxes[counts[0] :]


def present_labels(mask: np.ndarray) -> np.ndarray:
    labels, counts = labels_of_samples(Samples.of_dense(np.stack([mask, mask])))
    assert counts[0] == counts[1]
    np.testing.assert_array_equal(labels[: counts[0]], labels[counts[0] :])
    return labels[: counts[0]]


def expected_boxes(mask: np.ndarray, label: int) -> list[list[list[int]]]:
    """Boxes by scipy.ndimage, whose neighbors share a face, too; its objects come in the same order."""
    numbers, _ = ndimage.label(mask == label)
    found = ndimage.find_objects(numbers)
    return [[[part.start for part in box], [part.stop for part in box]] for box in found]


MASKS = hnp.arrays(np.int32, hnp.array_shapes(min_dims=1, max_dims=4, max_side=7), elements=st.integers(-1, 2))


@given(MASKS)
def test_objects_of_one_label(mask):
    for label in (-1, 0, 2, 9):
        assert object_boxes(mask, label).tolist() == expected_boxes(mask, label)


@given(MASKS)
def test_objects_of_all_labels_but_one(mask):
    expected = [box for label in (-1, 1, 2) for box in expected_boxes(mask, label)]
    assert sorted(object_boxes(mask, 0, is_excluded=True).tolist()) == sorted(expected)


def test_spirals_are_one_object():
    """The worst case of union-find: arms that are connected only at the end."""
    mask = np.zeros((21, 21), np.uint8)
    mask[::4] = 1
    mask[0:21, 0] = 1
    mask[2, 2:] = 1
    mask[2:5, 20] = 1
    assert object_boxes(mask, 1).tolist() == expected_boxes(mask, 1)
    assert len(object_boxes(mask, 1)) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32])
def test_types(dtype):
    mask = np.array([[1, 1, 0], [0, 2, 2], [1, 0, 2]], dtype)
    assert object_boxes(mask, 2).tolist() == [[[1, 1], [3, 3]]]
    assert present_labels(mask).tolist() == [0, 1, 2]


def test_labels_far_apart():
    mask = np.array([[-(2**31), 2**31 - 1, 5]], np.int32)
    assert present_labels(mask).tolist() == [-(2**31), 5, 2**31 - 1]
    assert len(object_boxes(mask, 0, is_excluded=True)) == 3


def test_large_random_mask():
    mask = np.random.default_rng(0).integers(0, 3, (120, 131)).astype(np.uint8)
    assert object_boxes(mask, 1).tolist() == expected_boxes(mask, 1)
