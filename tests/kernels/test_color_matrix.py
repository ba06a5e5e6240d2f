"""Linear color operations against DALI's vectors, DALI itself and exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dalify.data.samples import Samples
from dalify.kernels.images import color_matrix
from tests.helpers.real_dali import run_dali

PIXEL = np.array([[[200, 100, 50]]], np.uint8)
NEUTRAL = {"hue": 0.0, "saturation": 1.0, "value": 1.0, "brightness": 1.0, "contrast": 1.0}


def twist(x: np.ndarray, half_range: float = 128, **changes: float) -> np.ndarray:
    matrix, offset = color_matrix.twist_matrix(
        *(np.array([value], np.float32) for value in (NEUTRAL | changes).values()), half_range=half_range
    )
    out = np.empty_like(x[None])
    color_matrix.apply_matrix(Samples.of_dense(out), Samples.of_dense(x[None]), matrix, offset)
    return out[0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"hue": 90}, [82, 172, 0]),
        ({"saturation": 0}, [124, 124, 125]),
        ({"contrast": 0.5}, [164, 114, 89]),
        ({"brightness": 1.5, "contrast": 0.5}, [246, 171, 133]),  # 133.5; the sum in float32, as in DALI, is less
        ({}, [200, 100, 50]),
    ],
)
def test_vectors(changes, expected):
    assert twist(PIXEL, **changes)[0, 0].tolist() == expected


def test_bytes_equal_dali():
    x = np.random.default_rng(1).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    changes = {"hue": 35.0, "saturation": 1.7, "brightness": 1.2, "contrast": 0.8}
    expected = run_dali("color_twist", [x], layouts="HWC", **changes)[0]
    difference = np.abs(twist(x, **changes).astype(int) - expected)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-3  # only where a sum is a half up to its last bit


def test_floats_equal_dali():
    x = np.random.default_rng(2).random((40, 50, 3), dtype=np.float32)
    expected = run_dali("color_twist", [x], layouts="HWC", hue=200.0, saturation=0.4, contrast=1.5)[0]
    np.testing.assert_allclose(twist(x, 0.5, hue=200, saturation=0.4, contrast=1.5), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("source", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize("target", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize("shape", [(3, 3), (1, 3), (2, 4)])
def test_all_implementations_equal_the_formula(source, target, shape):
    random = np.random.default_rng(3)
    x = random.integers(0, 200, (2, 5, 7, shape[1])).astype(source)
    matrix = random.normal(0, 0.7, (2, *shape)).astype(np.float32)
    offset = random.normal(20, 9, (2, shape[0])).astype(np.float32)
    exact = np.einsum("nkc,nhwc->nhwk", matrix.astype(np.float64), x) + offset[:, None, None, :]
    if target == np.uint8:
        exact = np.clip(exact, 0, 255)
    tolerance = 1e-3 if target == np.float32 else 0.501  # rounding moves by at most a half
    out = np.empty((2, 5, 7, shape[0]), target)
    color_matrix.apply_matrix(Samples.of_dense(out), Samples.of_dense(x), matrix, offset)
    np.testing.assert_allclose(out, exact, rtol=0, atol=tolerance)
    out_torch = torch.from_numpy(np.empty_like(out))
    color_matrix.apply_matrix_torch(out_torch, torch.from_numpy(x), matrix, offset)
    np.testing.assert_allclose(out_torch.numpy(), out, rtol=1e-5, atol=1 if target != np.float32 else 1e-4)


@pytest.mark.parametrize("pixels", [1, 15, 16, 17, 50, 64])
@pytest.mark.parametrize("is_in_place", [False, True])
def test_bytes_are_rounded_and_saturated_at_any_width(pixels, is_in_place):
    random = np.random.default_rng(pixels)
    x = random.integers(0, 256, (6, 1, pixels, 3), np.uint8)
    matrix = random.integers(-12, 13, (6, 3, 3)).astype(np.float32) / 8  # exact sums, with many halves
    offset = random.integers(-1000, 1000, (6, 3)).astype(np.float32) / 4
    matrix[3, 1], matrix[4, 0, 2], offset[5] = np.nan, np.inf, [np.inf, -np.inf, 1e30]
    with np.errstate(invalid="ignore"):
        exact = np.einsum("nkc,nhwc->nhwk", matrix.astype(np.float64), x) + offset[:, None, None]
    expected = np.floor(np.clip(np.nan_to_num(exact, nan=0.0), 0, 255) + 0.5).astype(np.uint8)
    out = x if is_in_place else np.empty_like(x)
    color_matrix.apply_matrix(Samples.of_dense(out), Samples.of_dense(x), matrix, offset)
    np.testing.assert_array_equal(out, expected)
