"""fn.segmentation.select_masks compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

NAME = "segmentation.select_masks"
POLYGONS = np.array([[0, 0, 3], [1, 3, 7], [2, 7, 10]], np.int32)
VERTICES = np.arange(20, dtype=np.float32).reshape(10, 2)


@pytest.mark.parametrize("chosen", [[1], [2, 0], [0, 1, 2], []], ids=str)
@pytest.mark.parametrize("reindex", [False, True])
def test_choices(chosen, reindex):
    assert_equals_dali(NAME, [np.int32(chosen)], [POLYGONS], [VERTICES], reindex_masks=reindex)


@pytest.mark.parametrize("dtype", [np.int16, np.float64, np.uint8])
@pytest.mark.parametrize("coordinates", [1, 3])
def test_vertices(dtype, coordinates):
    vertices = np.arange(10 * coordinates).reshape(10, coordinates).astype(dtype)
    assert_equals_dali(NAME, [np.int32([2, 0])], [POLYGONS], [vertices])


def test_batches():
    """Samples with other numbers of masks, polygons and vertices; ranges that overlap."""
    masks = [np.int32([2, 0]), np.int32([1]), np.int32([0, 1])]
    polygons = [POLYGONS, POLYGONS[::-1], np.int32([[1, 0, 4], [0, 2, 6]])]
    vertices = [VERTICES, VERTICES + 100, VERTICES[:7] * 2]
    assert_equals_dali(NAME, masks, polygons, vertices, reindex_masks=True)
    assert_equals_dali(NAME, masks[:2], polygons[:2], vertices[:2])


def test_masks_of_several_polygons_contain_all():
    polygons = np.int32([[1, 0, 3], [0, 3, 6], [1, 6, 9]])
    found, vertices = run_dalify(NAME, [np.int32([1, 0])], [polygons], [VERTICES])
    np.testing.assert_array_equal(found[0], [[1, 0, 3], [1, 3, 6], [0, 6, 9]])
    np.testing.assert_array_equal(vertices[0], np.concatenate([VERTICES[:3], VERTICES[6:9], VERTICES[3:6]]))


def test_mistakes():
    def run(masks=(1,), polygons=POLYGONS, vertices=VERTICES):
        run_dalify(NAME, [np.asarray(masks, np.int32)], [polygons], [vertices])

    with pytest.raises(ArgumentValueError, match=r"mask 5 of mask_ids has no polygon; known masks: 0, 1, 2\."):
        run([5])
    with pytest.raises(ArgumentValueError, match=r"known masks: none\."):
        run([5], POLYGONS[:0])
    with pytest.raises(ArgumentValueError, match="mask_ids contains the mask 1 twice"):
        run([1, 0, 1])
    with pytest.raises(IndexingError, match=r"polygon 0, of the mask 1, has the vertices \[5, 20\); there are 10"):
        run([1], np.int32([[1, 5, 20]]))
    with pytest.raises(IndexingError, match=r"\[-1, 3\); there are 10"):
        run([1], np.int32([[1, -1, 3]]))
    with pytest.raises(IndexingError, match="end before they start"):
        run([1], np.int32([[1, 5, 3]]))
    with pytest.raises(ShapeError, match="3 columns"):
        run([1], POLYGONS[:, :2])
    with pytest.raises(ShapeError, match="mask_ids must have 1 dimension; got 0"):
        run(1)
    with pytest.raises(DTypeError, match="polygons must be integers"):
        run([1], POLYGONS.astype(np.float32))
