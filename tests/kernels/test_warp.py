"""Warps compared with stored results of DALI, DALI, and mirrored or shifted arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.data import Batch
from dalify.data.samples import Samples
from dalify.kernels.images import warp
from dalify.kernels.images.warp_torch import warp_torch
from tests.helpers.real_dali import run_dali

ROW = np.array([[[0], [10], [20]]], np.uint8)
NOISE = np.random.default_rng(0).integers(0, 256, (37, 41, 3), dtype=np.uint8)
MATRICES = [
    [[0.9, 0.2, 3.3], [-0.2, 0.9, 10.7]],
    [[0, 1, 0], [-1, 0, 37]],
    [[1, 0, 5.5], [0, 1, -3.25]],
    [[30, 3, -300], [2, -15, 700]],
    [[0.1, 0, 30], [0, 0.1, 20]],
]


def warped(x, matrix, nearest=False, fill=None, size=None, kernel=None):
    axes = x.ndim - 1
    out = np.empty((1, *(size or x.shape[:axes]), x.shape[-1]), x.dtype)
    matrix = np.array([matrix], np.float64)
    if kernel is None:
        samples = Samples.of_dense(out), Samples.of_dense(np.ascontiguousarray(x[None]))
        (warp.warp_2d if axes == 2 else warp.warp_3d)(*samples, matrix, nearest=nearest, fill_value=fill)
        return out[0]
    result = torch.from_numpy(out)
    kernel(result, torch.from_numpy(x[None]), matrix, nearest=nearest, fill_value=fill)
    return result.numpy()[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize("nearest", [True, False])
@pytest.mark.parametrize("fill", [None, 7.0])
def test_samples_of_different_shapes_are_computed_as_each_alone(dtype, nearest, fill):
    generator = np.random.default_rng(3)
    channels = [3, 3, 1, 4, 3]
    xs = [generator.integers(0, 200, (9 + n, 12 - n, c)).astype(dtype) for n, c in enumerate(channels)]
    xs.append(np.zeros((0, 5, 3), dtype))
    sizes = [(6 + n, 7, x.shape[-1]) for n, x in enumerate(xs)]
    outs = [np.empty(size, dtype) for size in sizes]
    matrices = np.array([*MATRICES, MATRICES[0]])
    samples = [Samples.of_batch(Batch(None, arrays)) for arrays in (outs, xs)]
    warp.warp_2d(*samples, matrices, nearest=nearest, fill_value=fill)
    for n, (out, x) in enumerate(zip(outs, xs, strict=True)):
        np.testing.assert_array_equal(out, warped(x, matrices[n], nearest, fill, out.shape[:2]))


@pytest.mark.parametrize("kernel", [None, warp_torch])
def test_vectors(kernel):
    shift, double = [[1, 0, 0.5], [0, 1, 0]], [[2, 0, 0], [0, 1, 0]]
    assert warped(ROW, shift, kernel=kernel).ravel().tolist() == [5, 15, 20]
    assert warped(ROW.astype(np.float32), shift, fill=-10, kernel=kernel).ravel().tolist() == [5, 15, 5]
    assert warped(ROW, shift, nearest=True, kernel=kernel).ravel().tolist() == [10, 20, 20]
    assert warped(ROW, double, size=(1, 2), kernel=kernel).ravel().tolist() == [5, 20]


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("fill", [None, 17.0, 300.0])
def test_bytes_equal_dali(matrix, fill):
    options = {} if fill is None else {"fill_value": fill}
    gray = np.ascontiguousarray(NOISE[..., :1])
    for x in (NOISE, gray):
        expected = run_dali("warp_affine", [x], layouts="HWC", matrix=np.ravel(matrix).tolist(), **options)[0]
        assert np.abs(warped(x, matrix, fill=fill).astype(int) - expected).max() <= 1
    nearest = run_dali("warp_affine", [NOISE], layouts="HWC", matrix=np.ravel(matrix).tolist(),
                       interp_type="INTERP_NN", **options)[0]  # fmt: skip
    assert (warped(NOISE, matrix, nearest=True, fill=fill) != nearest).mean() < 2e-3  # ties between two pixels


@pytest.mark.parametrize("matrix", MATRICES)
def test_floats_equal_dali(matrix):
    x = NOISE.astype(np.float32) / 255
    expected = run_dali("warp_affine", [x], layouts="HWC", matrix=np.ravel(matrix).tolist())[0]
    np.testing.assert_allclose(warped(x, matrix), expected, atol=3e-5)


@pytest.mark.parametrize("nearest", [True, False])
def test_long_rows_equal_dali(nearest):
    """Coordinates are accumulated in float32, which must not be done along a whole row."""
    x = np.random.default_rng(1).integers(0, 256, (60, 2000, 1), np.uint8)
    matrix = [[0.9, 0.2, 3], [-0.01, 1.1, 2]]
    kind = {"interp_type": "INTERP_NN"} if nearest else {}
    expected = run_dali("warp_affine", [x], layouts="HWC", matrix=np.ravel(matrix).tolist(), **kind)[0]
    assert (warped(x, matrix, nearest=nearest) != expected).mean() < 1e-4


def test_volume_equals_dali():
    x = np.random.default_rng(1).integers(0, 256, (7, 9, 11, 2), dtype=np.uint8)
    matrix = [[0.9, 0.1, -0.1, 0.7], [0.05, 1.1, 0.2, -0.4], [-0.2, 0.1, 0.8, 0.9]]
    for options in ({}, {"fill_value": 40.0}):
        expected = run_dali("warp_affine", [x], layouts="DHWC", matrix=np.ravel(matrix).tolist(), **options)[0]
        result = warped(x, matrix, fill=options.get("fill_value"))
        assert np.abs(result.astype(int) - expected).max() <= 1


def test_projective_of_an_affine_matrix_is_affine():
    matrix = MATRICES[0]
    projective = warped(NOISE, [*matrix, [0, 0, 1]], fill=3.0)
    assert np.abs(projective.astype(int) - warped(NOISE, matrix, fill=3.0)).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize("nearest", [False, True])
def test_whole_pixel_moves_are_exact(dtype, nearest):
    x = NOISE.astype(dtype)
    np.testing.assert_array_equal(warped(x, [[-1, 0, 41], [0, 1, 0]], nearest), x[:, ::-1])
    np.testing.assert_array_equal(warped(x, [[0, 1, 0], [1, 0, 0]], nearest, size=(41, 37)), x.transpose(1, 0, 2))
    moved = warped(x, [[1, 0, -2], [0, 1, 3]], nearest, fill=9)
    np.testing.assert_array_equal(moved[:-3, 2:], x[3:, :-2])
    assert (moved[:, :2] == 9).all()
    assert (moved[-3:] == 9).all()


@settings(max_examples=30)
@given(
    st.lists(st.floats(-3, 3), min_size=6, max_size=6),
    st.booleans(),
    st.sampled_from([None, 0.0, 99.0]),
    st.sampled_from([np.uint8, np.float32]),
)
def test_torch_equals_numba(numbers, nearest, fill, dtype):
    x, matrix = NOISE.astype(dtype), np.reshape(numbers, (2, 3)).astype(np.float32)
    ours, theirs = warped(x, matrix, nearest, fill), warped(x, matrix, nearest, fill, kernel=warp_torch)
    difference = np.abs(ours.astype(float) - theirs)
    if nearest:
        assert (difference > 0).mean() < 0.05  # points on the border between two pixels
    else:
        assert (difference > 1).mean() < 0.05
        assert np.median(difference) <= 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_extreme_matrices_never_read_outside_of_the_image(bad, dtype, shape):
    for fill in (None, 7.0):
        for nearest in (False, True):
            result = warped(np.full((5, 6, 3), 7, dtype), np.full(shape, bad), nearest, fill)
            assert (result == 7).all()


def test_one_pixel_image():
    x = np.array([[[5, 6, 7]]], np.uint8)
    assert (warped(x, [[0.3, 0, 0], [0, 0.3, 0]], size=(3, 4)) == x).all()
