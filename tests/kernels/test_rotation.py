"""Rotation matrices and canvases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify.kernels.images import rotation

ANGLES = st.floats(-720, 720)
EXTENTS = st.integers(1, 300)


@given(ANGLES, st.one_of(st.none(), st.lists(st.floats(0.1, 9), min_size=3, max_size=3)))
def test_matrices_are_rotations(angle, axis):
    matrix = rotation.rotation_matrix(angle, axis)
    precision = 1e-9 if axis is None else 1e-6  # with an axis as near as float32 is
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=precision)
    assert np.linalg.det(matrix) == pytest.approx(1, abs=precision)
    if axis is not None:
        np.testing.assert_allclose(matrix @ axis, axis, atol=precision * float(np.linalg.norm(axis)))


def test_positive_angles_turn_x_towards_y():
    np.testing.assert_allclose(rotation.rotation_matrix(90) @ [1, 0], [0, 1], atol=1e-6)
    np.testing.assert_allclose(rotation.rotation_matrix(90, [0, 0, 5]) @ [1, 0, 0], [0, 1, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("size", "angle", "expected"),
    [
        ((10, 20), 45, (22, 22)),
        ((11, 20), 45, (22, 23)),
        ((10, 20), 30, (20, 24)),
        ((7, 9), 90, (9, 7)),
        ((5, 8), 0, (5, 8)),
    ],
)
def test_canvas_vectors(size, angle, expected):
    assert rotation.canvas_size(size, [rotation.rotation_matrix(angle)]) == expected


@given(EXTENTS, EXTENTS, ANGLES)
def test_canvas_holds_the_corners(height, width, angle):
    matrix = rotation.rotation_matrix(angle)
    canvas = rotation.canvas_size((height, width), [matrix])
    corners = np.array([[-width, -height], [-width, height], [width, -height], [width, height]]) / 2 @ matrix
    assert (np.abs(corners) <= np.array(canvas[::-1]) / 2 + 0.02).all()


def test_canvas_of_frames_holds_each():
    matrices = [rotation.rotation_matrix(angle) for angle in (0, 30, 80)]
    assert rotation.canvas_size((10, 20), matrices) == (22, 24)


def test_centers_meet():
    matrix = rotation.rotation_matrix(33)
    (affine,) = rotation.about_centers(matrix[None], np.array([[10, 20]]), np.array([[22, 24]]))
    np.testing.assert_allclose(affine @ [12, 11, 1], [10, 5])
