"""Direct correlation compared with sums in float64 over images that numpy pads and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from dalify.data.samples import Samples
from dalify.kernels.images.correlate import correlate_images

# SciPy's borders must not exceed the extents of the image; for larger windows its results vary.
PADDING = {"reflect_101": "reflect", "reflect_1001": "symmetric", "wrap": "wrap", "clamp": "edge"}


def correlate(out, x, weights, anchor, border, fill):
    samples = [Samples.of_dense(array[None]) for array in (out, x, weights)]
    correlate_images(*samples, np.array([anchor]), border, np.float32([fill]))


def padded_sums(x, weights, anchor, border, fill):
    """Return the sums in float64 over the padded image."""
    sides = [(at, extent - 1 - at) for at, extent in zip(anchor, weights.shape, strict=True)]
    how = {"mode": PADDING[border]} if border in PADDING else {"mode": "constant", "constant_values": fill}
    large = np.pad(x.astype(np.float64), [*sides, (0, 0)], **how)
    windows = np.lib.stride_tricks.sliding_window_view(large, weights.shape, axis=(0, 1))
    return np.einsum("hwcrs,rs->hwc", windows, weights.astype(np.float64))


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.data(),
)
def test_sums(shape, window, data):
    random = np.random.default_rng(data.draw(st.integers(0, 100)))
    anchor = tuple(data.draw(st.integers(0, extent - 1)) for extent in window)
    border = data.draw(st.sampled_from(sorted([*PADDING, "constant"])))
    weights = random.normal(size=window).astype(np.float32)
    x = random.integers(0, 256, shape).astype(np.float32)
    out = np.full(shape, np.nan, np.float32)
    correlate(out, x, weights, anchor, border, 7.0)
    np.testing.assert_allclose(out, padded_sums(x, weights, anchor, border, 7.0), atol=1e-2)


@pytest.mark.parametrize("size", [1, 3, 5, 7, 8, 15])
def test_bytes_are_rounded_and_saturated(size):
    random = np.random.default_rng(size)
    x = random.integers(0, 256, (20, 23, 3), dtype=np.uint8)
    weights = (random.random((size, size)) * 2.5 / size**2 - 0.2 / size**2).astype(np.float32)
    out = np.zeros_like(x)
    correlate(out, x, weights, (size // 2, size // 2), "reflect_101", 0.0)
    exact = ndimage.correlate(x.astype(np.float64), weights[..., None].astype(np.float64), mode="mirror")
    assert np.abs(out - exact.clip(0, 255)).max() < 0.5001
    halves = np.full((1, 4, 1), 5, np.uint8)
    rounded = np.zeros_like(halves)
    correlate(rounded, halves, np.float32([[0.5]]), (0, 0), "clamp", 0.0)
    assert (rounded == 2).all()  # 2.5: to even


def test_inside_only():
    x = np.arange(30, dtype=np.float32).reshape(5, 6, 1)
    out = np.zeros((4, 4, 1), np.float32)
    correlate(out, x, np.ones((2, 3), np.float32), (0, 0), "reflect_101", 0.0)
    np.testing.assert_array_equal(out[0, :, 0], [24, 30, 36, 42])
