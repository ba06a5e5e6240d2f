"""fn.random_crop_generator: its windows are distributed as DALI's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import run_dali

NAME = "random_crop_generator"
COUNT = 2000


@pytest.mark.parametrize("shape", [(200, 300), (40, 300, 3), (7, 5)])
@pytest.mark.parametrize("arguments", [{}, {"random_area": [0.4, 0.9], "random_aspect_ratio": [0.3, 3.0]}], ids=str)
def test_windows_are_distributed_as_in_dali(shape, arguments):
    shapes = [np.int64(shape)] * COUNT
    ours = np.concatenate(run_dalify(NAME, shapes, **arguments), axis=1)
    theirs = np.concatenate(run_dali(NAME, shapes, **arguments), axis=1)
    assert ours.dtype == theirs.dtype
    (y, x, height, width), (other_y, other_x, other_height, other_width) = ours.T, theirs.T
    pairs = [(y, other_y), (x, other_x), (height, other_height), (width, other_width)]
    pairs += [(height * width, other_height * other_width), (width / height, other_width / other_height)]
    for one, other in pairs:
        assert stats.ks_2samp(one, other, method="asymp").pvalue > 1e-4


def test_windows_are_within_the_image(device):
    anchors, extents = run_dalify(NAME, [np.int32([31, 44, 3])] * 100, device=device)
    for anchor, extent in zip(anchors, extents, strict=True):
        assert (anchor >= 0).all()
        assert (extent >= 1).all()
        assert (anchor + extent <= [31, 44]).all()


def test_one_pixel(device):
    anchors, extents = run_dalify(NAME, [np.uint8([1, 1])] * 3, device=device)
    np.testing.assert_array_equal(anchors, np.zeros((3, 2)))
    np.testing.assert_array_equal(extents, np.ones((3, 2)))


def test_seeds(device):
    shapes = [np.int64([200, 300])] * 10
    first, same, other = (run_dalify(NAME, shapes, device=device, seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_mistakes():
    with pytest.raises(ShapeError, match="0 x 5 pixels cannot be cropped"):
        run_dalify(NAME, [np.int64([0, 5])])
    with pytest.raises(ShapeError, match=r"2 or 3 numbers, height and width first; got 1-D data of shape \(4,\)"):
        run_dalify(NAME, [np.int64([4, 5, 6, 7])])
    with pytest.raises(DTypeError, match="integers"):
        run_dalify(NAME, [np.float32([4, 5])])
    with pytest.raises(ArgumentValueError, match="random_area"):
        run_dalify(NAME, [np.int64([4, 5])], random_area=[0.5, 0.1])
