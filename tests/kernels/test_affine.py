"""Affine maps against homogeneous matrices."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ShapeError
from dalify.kernels import affine

RANDOM = np.random.default_rng(0)


def homogeneous(maps: np.ndarray) -> np.ndarray:
    last = np.zeros((*maps.shape[:-2], 1, maps.shape[-1]))
    last[..., -1] = 1
    return np.concatenate([maps, last], axis=-2)


@pytest.mark.parametrize("axes", [2, 3])
def test_composition_is_the_product(axes):
    outer, inner = RANDOM.random((2, 4, axes, axes + 1))
    expected = homogeneous(outer) @ homogeneous(inner)
    np.testing.assert_allclose(homogeneous(affine.compose(outer, inner)), expected)


def test_order():
    out = np.empty((1, 2, 3), np.float32)
    given = np.array([[[2, 0, 1], [0, 3, 1]]], np.float32)
    move = np.array([[[1, 0, 1], [0, 1, 2]]])
    affine.write_joined(out, given, move, False)
    assert out.tolist() == [[[2, 0, 2], [0, 3, 3]]]
    affine.write_joined(out, given, move, True)
    assert out.tolist() == [[[2, 0, 3], [0, 3, 7]]]


def test_center_stays():
    linear, center = RANDOM.random((3, 2, 2)), RANDOM.random((3, 2))
    maps = affine.about(linear, center)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", maps[..., :2], center) + maps[..., 2], center)


def test_boxes_are_taken_to_boxes():
    corners = RANDOM.random((4, 5, 3))
    maps = affine.crop_map(*corners)
    for source, target in ((corners[0], corners[2]), (corners[1], corners[3])):
        np.testing.assert_allclose(np.einsum("nij,nj->ni", maps[..., :3], source) + maps[..., 3], target)


def test_dimensions_of_arguments():
    assert affine.dimensions((1, 2), (3,), None) == 2
    assert affine.dimensions((1,), np.zeros((5, 1))) == 1
    assert affine.dimensions(object()) is None
    with pytest.raises(ShapeError, match="different lengths: 2, 3"):
        affine.dimensions((1, 2), np.zeros((4, 3)))


def test_shears():
    assert affine.shear_maps(np.array([[0.5, 0.25]])).tolist() == [[[1, 0.5], [0.25, 1]]]
    assert [affine.shear_size(given) for given in (2, 6)] == [2, 3]
    with pytest.raises(ShapeError, match="2 factors in 2-D and 6 in 3-D; got 3"):
        affine.shear_maps(np.zeros((1, 3)))
