"""fn.roi_random_crop: the possible positions, by definition and in DALI, and that all are equally likely."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalify.base.errors import ArgumentValueError, IndexingError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each, run_dali

NAME = "roi_random_crop"
COUNT = 3000
PLACES = [
    # crop, region's begin and end, extent of the data, first and last place
    (4, 2, 10, None, 2, 6),
    (8, 2, 5, None, -3, 2),
    (8, 2, 5, 9, 0, 1),
    (8, 2, 5, 8, 0, 0),
    (3, 2, 5, 8, 2, 2),
    (0, 2, 5, 8, 2, 5),
    (5, 7, 7, 9, 2, 4),
]


def many(crop, begin, end, extent):
    whole = {} if extent is None else {"in_shape": [extent]}
    return {"crop_shape": Each([np.int32([crop])] * COUNT), "roi_start": [begin], "roi_end": [end], **whole}


@pytest.mark.parametrize(("crop", "begin", "end", "extent", "first", "last"), PLACES)
def test_positions(crop, begin, end, extent, first, last):
    found = np.array(run_dalify(NAME, **many(crop, begin, end, extent)))
    assert found.shape == (COUNT, 1)
    assert found.dtype == np.int64
    values, counts = np.unique(found, return_counts=True)
    np.testing.assert_array_equal(values, np.arange(first, last + 1))
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(("crop", "begin", "end", "extent", "first", "last"), PLACES)
def test_positions_equal_dali(crop, begin, end, extent, first, last):
    values = np.unique(run_dali(NAME, **many(crop, begin, end, extent)))
    np.testing.assert_array_equal(values, np.arange(first, last + 1))


def test_data_determines_the_shape(device):
    images = [np.zeros(shape, np.uint8) for shape in ((28, 36, 3), (9, 8, 3))] * 30
    found = run_dalify(
        NAME, images, layouts="HWC", device=device, crop_shape=[8, 8], roi_start=[3, 3], roi_shape=[4, 5]
    )
    for start, image in zip(found, images, strict=True):
        assert (start >= 0).all()
        assert (start <= 3).all()
        assert (start + 8 <= image.shape[:2]).all()


def test_one_number_is_for_all_axes():
    found = run_dalify(NAME, crop_shape=[3, 4], roi_start=2, roi_end=[20, 30], in_shape=30, seed=4)
    assert found[0].shape == (2,)
    again = run_dalify(NAME, crop_shape=[3, 4], roi_start=[2, 2], roi_shape=[18, 28], in_shape=[30, 30], seed=4)
    np.testing.assert_array_equal(found, again)


def test_mistakes():
    good = {"crop_shape": [10, 12], "roi_start": [2, 3], "roi_end": [20, 30], "in_shape": [28, 36]}

    def run(*inputs, **changes):
        run_dalify(NAME, *inputs, **{key: value for key, value in {**good, **changes}.items() if value is not None})

    with pytest.raises(ArgumentValueError, match="either roi_end or roi_shape"):
        run(roi_end=None)
    with pytest.raises(ArgumentValueError, match="either roi_end or roi_shape"):
        run(roi_shape=[3, 3])
    with pytest.raises(ArgumentValueError, match="in_shape cannot be combined"):
        run([np.zeros((28, 36), np.uint8)])
    with pytest.raises(IndexingError, match=r"region \[3, 40\) extends outside the data, 36 elements, axis 1"):
        run(roi_end=[20, 40])
    with pytest.raises(IndexingError, match=r"region \[-2, 20\)"):
        run(roi_start=[-2, 3])
    with pytest.raises(IndexingError, match="window of 30 elements is larger than the data, 28 elements, axis 0"):
        run(crop_shape=[30, 12])
    with pytest.raises(ArgumentValueError, match=r"ends before it starts: \[2, 1\), axis 0"):
        run(roi_end=[1, 30])
    with pytest.raises(ArgumentValueError, match="crop_shape must not be negative; got -3"):
        run(crop_shape=[-3, 12])
    with pytest.raises(ShapeError, match="roi_end must have 2 numbers"):
        run(roi_end=[1, 2, 3])
    with pytest.raises(ShapeError, match="the data has 1 dimension"):
        run([np.zeros(28, np.uint8)], in_shape=None)
