"""Resized, normalized planes are the same as in two steps, and need memory for a single resized image."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dalify.base import scratch
from dalify.data import Batch
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.images.normalize_axes import normalize_axes
from dalify.kernels.images.resample_axes import resample_axes
from dalify.kernels.images.resample_planes import has_resampled_planes

HEIGHT, WIDTH = 40, 37
FILTERS: dict[str, Any] = {"interp_type": np.int32([1]), "min_filter": None, "mag_filter": None, "antialias": True}


def images(count: int) -> Samples:
    chooser = np.random.default_rng(count)
    shapes = chooser.integers(30, 90, (count, 2))
    samples = [chooser.integers(0, 256, (*shape, 3), np.uint8) for shape in shapes]
    return Samples.of_batch(Batch(None, samples, "HWC", "cpu", None, DALIDataType.UINT8))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_planes(count: int) -> None:
    x = images(count)
    start = np.float32([[3.0, 5.0]] * count)
    end = np.float32(x.shapes[:, :2]) - np.float32(2)
    normalization: dict[str, Any] = {
        "mirror": np.arange(count) % 2,
        "mean": np.float32([[120, 110, 100]]),
        "std": np.float32([[60, 50, 40]]),
        "scale": 1.5,
        "shift": 0.25,
    }
    planes = np.full((count, 3, HEIGHT, WIDTH), np.nan, np.float32)
    borrowed: list[int] = []

    def borrow(name: str, shape: tuple[int, ...]) -> np.ndarray:
        borrowed.append(int(np.prod(shape)))
        return original(name, shape)

    original = scratch.borrow
    with patch.object(scratch, "borrow", borrow):
        assert has_resampled_planes(Samples.of_dense(planes), x, start, end, FILTERS, normalization)
    assert borrowed == [HEIGHT * WIDTH * 3]

    resized = np.empty((count, HEIGHT, WIDTH, 3), np.uint8)
    resample_axes(Samples.of_dense(resized), x, "HWC", start, end, **FILTERS)
    expected = np.empty_like(planes)
    anchors = np.zeros((count, 3), np.int64)
    normalize_axes(
        Samples.of_dense(expected), Samples.of_dense(resized), "HWC", "CHW", anchors, fill_values=[0.0], **normalization
    )
    np.testing.assert_array_equal(planes, expected)
