"""Limits, means and lines of channels compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.data import Batch
from dalify.data.samples import Samples
from dalify.kernels.images.channels import channel_limits, channel_lines, channel_means

RANDOM = np.random.default_rng(0)


# Numbers of pixels on both sides of the 256 that are taken together.
@pytest.mark.parametrize("pixels", [(1, 1), (3, 5), (16, 16), (1, 257), (31, 33)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_compared_with_numpy(pixels, channels):
    x = RANDOM.integers(0, 256, (3, *pixels, channels), dtype=np.uint8)
    samples = Samples.of_dense(x)
    lows, highs = channel_limits(samples)
    np.testing.assert_array_equal(lows, x.min((1, 2)))
    np.testing.assert_array_equal(highs, x.max((1, 2)))
    np.testing.assert_allclose(channel_means(samples), x.mean((1, 2)), rtol=1e-12)
    factor, summand = RANDOM.uniform(-3, 3, (2, 3, channels)).astype(np.float32)
    out = np.empty_like(x)
    channel_lines(Samples.of_dense(out), samples, factor, summand * 100)
    wide = x * factor[:, None, None].astype(np.float64) + summand[:, None, None].astype(np.float64) * 100
    assert np.abs(out - np.clip(wide, 0, 255)).max() <= 0.5 + 1e-4


def test_samples_of_several_shapes():
    images = [RANDOM.integers(0, 256, form, dtype=np.uint8) for form in ((3, 5, 3), (20, 31, 1), (16, 16, 3))]
    batch = Batch(None, images)
    samples, out = Samples.of_batch(batch), Samples.empty(batch.shape_array(), np.dtype(np.uint8))
    lows, highs = channel_limits(samples)
    means = channel_means(samples)
    factor = np.full((3, 3), 2, np.float32)
    channel_lines(out, samples, factor, -lows.astype(np.float32))
    for n, (image, result) in enumerate(zip(images, out.arrays(), strict=True)):
        channels = image.shape[2]
        np.testing.assert_array_equal(lows[n, :channels], image.min((0, 1)))
        np.testing.assert_array_equal(highs[n, :channels], image.max((0, 1)))
        np.testing.assert_allclose(means[n, :channels], image.mean((0, 1)), rtol=1e-12)
        np.testing.assert_array_equal(result, np.clip(2 * image.astype(int) - image.min((0, 1)), 0, 255))
