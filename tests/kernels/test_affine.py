"""Affine maps compared with homogeneous matrices."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.kernels.images import affine, affine_rules

RANDOM = np.random.default_rng(0)


def homogeneous(maps: np.ndarray) -> np.ndarray:
    last = np.zeros((*maps.shape[:-2], 1, maps.shape[-1]))
    last[..., -1] = 1
    return np.concatenate([maps, last], axis=-2)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.random(shape).astype(np.float32)


@pytest.mark.parametrize("axes", [2, 3])
def test_composition_equals_the_product(axes):
    outer, inner = RANDOM.random((2, 4, axes, axes + 1))
    expected = homogeneous(outer) @ homogeneous(inner)
    np.testing.assert_allclose(homogeneous(affine.compose(outer, inner)), expected)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_joining_equals_the_product(axes, count):
    maps = [floats(4, axes, axes + 1) for _ in range(count)]
    expected = homogeneous(maps[0].astype(np.float64))
    for following in maps[1:]:
        expected = homogeneous(following) @ expected
    out = np.empty_like(maps[0])
    affine.fill_joined(out, tuple(maps))
    np.testing.assert_allclose(out, expected[:, :-1], rtol=1e-6)


def test_joining_repeats_what_has_no_frames():
    sequence, single = floats(2, 5, 2, 3), floats(2, 2, 3)
    out = np.empty_like(sequence)
    affine.fill_joined(out, (single, sequence))
    expected = homogeneous(sequence) @ homogeneous(single)[:, None]
    np.testing.assert_allclose(out, expected[:, :, :-1], rtol=1e-6)


def test_order():
    out = np.empty((1, 2, 3), np.float32)
    given = np.array([[[2, 0, 1], [0, 3, 1]]], np.float32)
    move = np.array([[1, 2]], np.float32)
    affine.fill_transforms(out, given, False, affine.fill_translations, move)
    assert out.tolist() == [[[2, 0, 2], [0, 3, 3]]]
    affine.fill_transforms(out, given, True, affine.fill_translations, move)
    assert out.tolist() == [[[2, 0, 3], [0, 3, 7]]]


@pytest.mark.parametrize("kind", ["scale", "shear", "rotation"])
@pytest.mark.parametrize("axes", [2, 3])
def test_the_center_is_a_fixed_point(kind, axes):
    out, center = np.empty((3, axes, axes + 1), np.float32), floats(3, axes)
    if kind == "scale":
        affine.fill_transforms(out, None, False, affine.fill_scales, floats(3, axes), center)
    elif kind == "shear":
        affine.fill_transforms(out, None, False, affine.fill_shears, floats(3, axes * (axes - 1)), False, center)
    else:
        affine.fill_transforms(
            out, None, False, affine.fill_rotations, floats(3) * 90, floats(3, 3) if axes == 3 else None, center
        )
    moved = np.einsum("nij,nj->ni", out[..., :axes], center) + out[..., axes]
    np.testing.assert_allclose(moved, center, atol=1e-6)


@pytest.mark.parametrize("axes", [2, 3])
def test_rotations_keep_lengths_and_axis(axes):
    out, axis = np.empty((5, axes, axes + 1), np.float32), floats(5, 3)
    affine.fill_transforms(out, None, False, affine.fill_rotations, floats(5) * 360, axis if axes == 3 else None, None)
    linear = out[..., :axes].astype(np.float64)
    np.testing.assert_allclose(
        linear @ linear.transpose(0, 2, 1), np.broadcast_to(np.eye(axes), linear.shape), atol=1e-6
    )
    np.testing.assert_allclose(np.linalg.det(linear), 1, atol=1e-6)
    if axes == 3:
        np.testing.assert_allclose(np.einsum("nij,nj->ni", linear, axis), axis, atol=1e-6)


def test_crops_map_source_boxes_to_target_boxes():
    corners = tuple(floats(5, 3) for _ in range(4))
    out = np.empty((5, 3, 4), np.float32)
    affine.fill_transforms(out, None, False, affine.fill_crops, corners, False)
    for source, target in ((corners[0], corners[2]), (corners[1], corners[3])):
        moved = np.einsum("nij,nj->ni", out[..., :3].astype(np.float64), source) + out[..., 3]
        np.testing.assert_allclose(moved, target, atol=1e-4)


def test_entries_by_frame():
    offset = floats(2, 4, 3)
    out = np.empty((2, 4, 3, 4), np.float32)
    affine.fill_transforms(out, None, False, affine.fill_translations, offset)
    np.testing.assert_array_equal(out[..., 3], offset)
    np.testing.assert_array_equal(out[..., :3], np.broadcast_to(np.eye(3), (2, 4, 3, 3)))


def test_dimensions_of_arguments():
    assert affine_rules.dimensions((1, 2), (3,), None) == 2
    assert affine_rules.dimensions((1,), np.zeros((5, 1))) == 1
    assert affine_rules.dimensions(object()) is None
    with pytest.raises(ShapeError, match="different lengths: 2, 3"):
        affine_rules.dimensions((1, 2), np.zeros((4, 3)))


def test_shears():
    out = np.empty((1, 2, 3), np.float32)
    affine.fill_transforms(out, None, False, affine.fill_shears, np.float32([[0.5, 0.25]]), False, None)
    assert out.tolist() == [[[1, 0.5, 0], [0.25, 1, 0]]]
    affine.fill_transforms(out, None, False, affine.fill_shears, np.float32([[45, 0]]), True, None)
    np.testing.assert_allclose(out, [[[1, 1, 0], [0, 1, 0]]], atol=1e-6)
    assert [affine_rules.shear_size(given) for given in (2, 6)] == [2, 3]


def test_mistakes():
    out = np.empty((2, 3, 4), np.float32)
    with pytest.raises(ShapeError, match="2 factors in 2-D or 6 in 3-D; got 3"):
        affine.fill_transforms(out, None, False, affine.fill_shears, floats(2, 3), False, None)
    with pytest.raises(ShapeError, match="must have 1 or 3 values; got 2"):
        affine.fill_transforms(out, None, False, affine.fill_translations, floats(2, 2))
    with pytest.raises(ArgumentValueError, match="finite"):
        affine.fill_transforms(out, None, False, affine.fill_rotations, np.float32([1, np.inf]), floats(2, 3), None)
    with pytest.raises(ArgumentValueError, match="axis must not have length 0"):
        affine.fill_transforms(
            out, None, False, affine.fill_rotations, np.float32([1, 2]), np.zeros((2, 3), np.float32), None
        )
