"""Equalization by tiles compared with OpenCV's."""

from __future__ import annotations

import cv2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalify.data.samples import Samples
from dalify.kernels.images.clahe import equalize_planes

EXTENTS, TILES = st.integers(1, 80), st.integers(1, 12)


@given(EXTENTS, EXTENTS, TILES, TILES, st.floats(0.1, 300), st.integers(1, 128), st.integers(0, 9))
def test_planes(height, width, tiles_x, tiles_y, clip_limit, coarseness, seed):
    values = np.random.default_rng(seed).integers(0, 256, (height, width)) // coarseness
    plane = values.astype(np.uint8)
    out = np.empty_like(plane)
    samples = Samples.of_dense(out[None]), Samples.of_dense(plane[None])
    equalize_planes(*samples, tiles_x=tiles_x, tiles_y=tiles_y, clip_limit=clip_limit, bins=256)
    np.testing.assert_array_equal(out, cv2.createCLAHE(clip_limit, (tiles_x, tiles_y)).apply(plane))
