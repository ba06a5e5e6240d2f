"""Direct correlation beside SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from dalify.kernels.correlate import correlate_image

SCIPY = {"reflect_101": "mirror", "reflect_1001": "reflect", "wrap": "wrap", "clamp": "nearest", "constant": "constant"}


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.data(),
)
def test_sums(shape, window, data):
    random = np.random.default_rng(data.draw(st.integers(0, 100)))
    anchor = tuple(data.draw(st.integers(0, extent - 1)) for extent in window)
    border = data.draw(st.sampled_from(sorted(SCIPY)))
    weights = random.normal(size=window).astype(np.float32)
    x = random.integers(0, 256, shape).astype(np.float32)
    out = np.full(shape, np.nan, np.float32)
    correlate_image(out, x, weights, anchor, border, 7.0)
    origin = [at - extent // 2 for at, extent in zip(anchor, window, strict=True)]
    expected = ndimage.correlate(
        x.astype(np.float64), weights[..., None].astype(np.float64), mode=SCIPY[border], cval=7.0, origin=[*origin, 0]
    )
    np.testing.assert_allclose(out, expected, atol=1e-2)


@pytest.mark.parametrize("size", [1, 3, 5, 7, 8, 15])
def test_bytes_are_rounded_and_saturated(size):
    random = np.random.default_rng(size)
    x = random.integers(0, 256, (20, 23, 3), dtype=np.uint8)
    weights = (random.random((size, size)) * 2.5 / size**2 - 0.2 / size**2).astype(np.float32)
    out = np.zeros_like(x)
    correlate_image(out, x, weights, (size // 2, size // 2), "reflect_101", 0.0)
    exact = ndimage.correlate(x.astype(np.float64), weights[..., None].astype(np.float64), mode="mirror")
    assert np.abs(out - exact.clip(0, 255)).max() < 0.5001
    halves = np.full((1, 4, 1), 5, np.uint8)
    rounded = np.zeros_like(halves)
    correlate_image(rounded, halves, np.float32([[0.5]]), (0, 0), "clamp", 0.0)
    assert (rounded == 2).all()  # 2.5: to even


def test_inside_only():
    x = np.arange(30, dtype=np.float32).reshape(5, 6, 1)
    out = np.zeros((4, 4, 1), np.float32)
    correlate_image(out, x, np.ones((2, 3), np.float32), None, "reflect_101", 0.0)
    np.testing.assert_array_equal(out[0, :, 0], [24, 30, 36, 42])
