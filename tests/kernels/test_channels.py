"""Limits, means and lines of channels compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.kernels.images.channels import channel_limits, channel_lines, channel_means

RANDOM = np.random.default_rng(0)


# Numbers of pixels on both sides of the 256 that are taken together.
@pytest.mark.parametrize("pixels", [(1, 1), (3, 5), (16, 16), (1, 257), (31, 33)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_beside_numpy(pixels, channels):
    x = RANDOM.integers(0, 256, (3, *pixels, channels), dtype=np.uint8)
    lows, highs = channel_limits(x)
    np.testing.assert_array_equal(lows, x.min((1, 2)))
    np.testing.assert_array_equal(highs, x.max((1, 2)))
    np.testing.assert_allclose(channel_means(x), x.mean((1, 2)), rtol=1e-12)
    factor, summand = RANDOM.uniform(-3, 3, (2, 3, channels)).astype(np.float32)
    out = np.empty_like(x)
    channel_lines(out, x, factor, summand * 100)
    wide = x * factor[:, None, None].astype(np.float64) + summand[:, None, None].astype(np.float64) * 100
    assert np.abs(out - np.clip(wide, 0, 255)).max() <= 0.5 + 1e-4
