"""fn.segmentation.random_mask_pixel: which pixels, and that all are equally likely."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each, run_dali

NAME = "segmentation.random_mask_pixel"
MASK = np.int32([[0, 1, 0, 5], [0, 2, 1, -3], [7, 0, 0, 1]])
COUNT = 3000


def places(found):
    values, counts = np.unique(np.array(found), axis=0, return_counts=True)
    return {tuple(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("arguments", "is_chosen"),
    [
        ({}, MASK == MASK),
        ({"foreground": 1}, MASK > 0),
        ({"foreground": 1, "threshold": 1.5}, MASK > 1.5),
        ({"foreground": 1, "threshold": -3}, MASK > -3),
        ({"foreground": 1, "value": 1}, MASK == 1),
        ({"foreground": 1, "value": 0}, MASK == 0),
        ({"foreground": 1, "value": 4}, MASK == MASK),
        ({"foreground": 1, "threshold": 9}, MASK == MASK),
        ({"foreground": 0, "value": 1}, MASK == MASK),
    ],
    ids=str,
)
def test_pixels_are_equally_likely(device, arguments, is_chosen):
    found = run_dalify(NAME, [MASK] * COUNT, device=device, **arguments)
    assert found[0].dtype == np.int64
    counts = places(found)
    assert set(counts) == set(map(tuple, np.argwhere(is_chosen).tolist()))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4
    assert set(places(run_dali(NAME, [MASK] * COUNT, **arguments))) == set(counts)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "uint32", "int64", "uint64", "float32", "bool"])
def test_types(device, dtype):
    mask = np.array([[0, 1, 0], [0, 0, 1]]).astype(dtype)
    for arguments in ({}, {"value": 1}, {"threshold": 0.5}):
        found = places(run_dalify(NAME, [mask] * 50, device=device, foreground=1, **arguments))
        assert set(found) == {(0, 1), (1, 2)}
    assert len(places(run_dalify(NAME, [mask] * 200, device=device, foreground=1, value=-1))) == 6
    assert len(places(run_dalify(NAME, [mask] * 200, device=device, foreground=1, threshold=1e30))) == 6
    if np.dtype(dtype).kind != "f":
        assert len(places(run_dalify(NAME, [mask] * 200, device=device, foreground=1, threshold=-1e30))) == 6


def test_thresholds_are_exact(device):
    """A value just above the threshold is foreground, also if both round to the same float32."""
    mask = np.float32([[0.1, np.nextafter(np.float32(0.1), np.float32(1))]])
    assert set(places(run_dalify(NAME, [mask] * 40, device=device, foreground=1, threshold=0.1))) == {(0, 1)}
    large = np.int32([[16777216, 16777217]])
    assert set(places(run_dalify(NAME, [large] * 40, device=device, foreground=1, threshold=16777216.0))) == {(0, 1)}


def test_dimensions_and_samples(device):
    masks = [np.zeros((4,), np.uint8), np.zeros((3, 2, 4, 2), np.uint8), np.zeros((3, 2, 4, 2), np.uint8)]
    masks[1][2, 1, 3, 0] = 9
    flags = Each(np.int32([1, 1, 0]))
    line, block, _ = run_dalify(NAME, masks[:1] * 3, device=device), *run_dalify(NAME, masks[1:], device=device)
    assert 0 <= line[0][0] < 4
    for arguments in ({"foreground": flags}, {"foreground": 1, "threshold": Each(np.float32([8, 8, 8]))}):
        found = run_dalify(NAME, [masks[1]] * 3, device=device, **arguments)
        assert found[0].tolist() == found[1].tolist() == [2, 1, 3, 0]
    large = np.zeros((70, 80), np.uint8)
    large[53, 7] = 1
    assert run_dalify(NAME, [large], device=device, foreground=1)[0].tolist() == [53, 7]
    one = run_dalify(NAME, [np.zeros((1, 1), np.uint8)], device=device, foreground=1)[0]
    assert one.tolist() == [0, 0]
    assert block.shape == (4,)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="either threshold or value"):
        run_dalify(NAME, [MASK], threshold=1.0, value=2)
    with pytest.raises(ShapeError, match=r"must have pixels; got the shape \(0, 3\)"):
        run_dalify(NAME, [np.zeros((0, 3), np.int32)])
    with pytest.raises(ShapeError, match="got a scalar"):
        run_dalify(NAME, [np.int32(3)])
