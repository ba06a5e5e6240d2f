"""Rotation matrices and canvases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalify.base.errors import ArgumentValueError
from dalify.kernels.images import rotation

ANGLES = st.floats(-720, 720)
EXTENTS = st.integers(1, 300)


def matrix_of(angle, axis=None):
    axes = None if axis is None else np.array([axis], np.float32)
    return rotation.rotations(np.array([angle], np.float32), axes)[0]


def canvas_of(size, angles):
    matrices = rotation.rotations(np.array(angles, np.float32))
    (canvas,) = rotation.canvas_shapes(np.array([size]), 0, matrices, np.array([len(angles)]))
    return tuple(canvas.tolist())


@given(ANGLES, st.one_of(st.none(), st.lists(st.floats(0.1, 9), min_size=3, max_size=3)))
def test_matrices_are_rotations(angle, axis):
    matrix = matrix_of(angle, axis)
    precision = 1e-9 if axis is None else 1e-6  # with an axis in float32
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=precision)
    assert np.linalg.det(matrix) == pytest.approx(1, abs=precision)
    if axis is not None:
        np.testing.assert_allclose(matrix @ axis, axis, atol=precision * float(np.linalg.norm(axis)))


def test_positive_angles_turn_x_towards_y():
    np.testing.assert_allclose(matrix_of(90) @ [1, 0], [0, 1], atol=1e-6)
    np.testing.assert_allclose(matrix_of(90, [0, 0, 5]) @ [1, 0, 0], [0, 1, 0], atol=1e-6)


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
    assert canvas_of(size, [angle]) == expected


@given(EXTENTS, EXTENTS, ANGLES)
def test_canvas_holds_the_corners(height, width, angle):
    matrix = matrix_of(angle)
    canvas = canvas_of((height, width), [angle])
    corners = np.array([[-width, -height], [-width, height], [width, -height], [width, height]]) / 2 @ matrix
    assert (np.abs(corners) <= np.array(canvas[::-1]) / 2 + 0.02).all()


def test_canvas_of_frames_holds_each():
    assert canvas_of((10, 20), (0, 30, 80)) == (22, 24)


def test_canvases_of_samples_with_different_numbers_of_frames():
    sizes, counts = np.array([[10, 20], [5, 8], [10, 20], [7, 9]]), np.array([3, 0, 1, 1])
    matrices = rotation.rotations(np.array([0, 30, 80, 45, 90], np.float32))
    assert rotation.canvas_shapes(sizes, 0, matrices, counts).tolist() == [[22, 24], [5, 8], [22, 22], [9, 7]]


@pytest.mark.parametrize("axis", [[0, 0, 1], [1, 2, 3]])
def test_canvas_of_volumes_has_the_parity_of_the_dominant_axis(axis):
    sizes = np.array([[9, 20, 31], [8, 21, 30]])
    for angle in (0, 20, 45, 90):
        matrices = np.stack([matrix_of(angle, axis)] * 2)
        share = np.abs(matrices[0])
        extents = np.ceil((share * sizes[:, None, ::-1]).sum(2) - 0.01).astype(int)
        dominant = [row if share[row, row] == share[row].max() else share[row].argmax() for row in range(3)]
        expected = extents + (extents + sizes[:, ::-1][:, dominant]) % 2
        assert rotation.canvas_shapes(sizes, 0, matrices, np.ones(2, int))[:, ::-1].tolist() == expected.tolist()


def test_matrices_that_are_not_rotations_are_named():
    angles, axes = np.array([0, 1, np.inf], np.float32), np.array([[1, 0, 0]] * 3, np.float32)
    with pytest.raises(ArgumentValueError, match="finite number of degrees; got inf") as error:
        rotation.rotations(angles)
    assert error.value.sample == 2
    axes[1] = 0
    with pytest.raises(ArgumentValueError, match="axis must not be zero") as error:
        rotation.rotations(angles, axes)
    assert error.value.sample == 1


def test_centers_are_mapped_to_each_other():
    matrix = matrix_of(33)
    (affine,) = rotation.about_centers(matrix[None], np.array([[10, 20]]), np.array([[22, 24]]))
    np.testing.assert_allclose(affine @ [12, 11, 1], [10, 5])
