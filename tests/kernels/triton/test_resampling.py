"""Resizing by one launch for images of several sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalify import fn, types
from tests.kernels.triton.running import DTYPES, compare, images

pytestmark = pytest.mark.gpu

FILTERS = [
    types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC, types.INTERP_LANCZOS3, types.INTERP_TRIANGULAR,
    types.INTERP_GAUSSIAN,
]  # fmt: skip


def bound(dtype: str) -> float:
    return {"uint8": 1, "int16": 1, "float16": 0.5}.get(dtype, 0.01)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_and_layouts(dtype: str, layout: str) -> None:
    def graph(x: Any) -> Any:
        return fn.resize(x, size=(9, 24)), fn.resize(x, resize_shorter=11.0, dtype=types.FLOAT)

    compare(graph, images(dtype, 3, layout), layout, tolerance=bound(dtype), launches=2)


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("interpolation", FILTERS)
def test_filters(interpolation: types.DALIInterpType, channels: int) -> None:
    def graph(x: Any) -> Any:
        options = {"size": (7, 30), "interp_type": interpolation}
        return (
            fn.resize(x, **options),
            fn.resize(x, **options, antialias=False, dtype=types.FLOAT),
            fn.resize(x, **options, roi_start=(0.1, 0.9), roi_end=(0.8, 0.2), roi_relative=True),
        )

    compare(graph, images("uint8", channels), "HWC", tolerance=1, launches=3)


@pytest.mark.parametrize("interpolation", FILTERS)
def test_results_in_float32_have_the_precision_of_the_cpu(interpolation: types.DALIInterpType) -> None:
    def graph(x: Any) -> Any:
        return fn.resize(x, size=(7, 30), interp_type=interpolation, dtype=types.FLOAT)

    compare(graph, images("float32", 3), "HWC", tolerance=2e-3)


def test_filters_by_sample() -> None:
    def graph(x: Any, kind: Any) -> Any:
        return fn.resize(x, size=(8, 8), min_filter=kind, mag_filter=types.INTERP_NN)

    kinds = [np.array(int(FILTERS[n]), np.int32) for n in (0, 3, 2)]
    compare(graph, images("uint8", 3), "HWC", tolerance=1, arguments=[kinds])


def test_random_resized_crop_and_validation() -> None:
    def graph(x: Any, mirror: Any) -> Any:
        random = fn.random_resized_crop(x, size=(12, 10), seed=5)
        cut = fn.crop_mirror_normalize(fn.resize(x, size=(20, 20)), crop=(16, 16), mirror=mirror, std=[64.0])
        return fn.crop_mirror_normalize(random, mirror=mirror, std=[64.0]), cut

    mirror = [np.array(n % 2, np.int32) for n in range(3)]
    compare(graph, images("uint8", 3), "HWC", tolerance=1 / 64 + 1e-6, arguments=[mirror], launches=2)


@pytest.mark.parametrize("dtype", [types.FLOAT, types.FLOAT16, types.UINT8])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_resize_and_normalization_are_one_launch(channels: int, layout: str, dtype: types.DALIDataType) -> None:
    """The resized pixels are rounded to bytes in between, as by two operators."""

    def graph(x: Any, mirror: Any) -> Any:
        options = {
            "mirror": mirror, "mean": [100.0], "std": [7.0 + c for c in range(channels)], "scale": 3.0, "shift": 9.0,
            "dtype": dtype, "output_layout": layout,
        }  # fmt: skip
        random = fn.random_resized_crop(x, size=(12, 10), seed=5)
        return (
            fn.crop_mirror_normalize(random, crop=(12, 10), **options),
            fn.crop_mirror_normalize(fn.resize(x, resize_shorter=20.0), **options),
            fn.crop_mirror_normalize(fn.resize(x, size=(20, 20)), crop=(16, 18), **options),
        )

    mirror = [np.array(n % 2, np.int32) for n in range(3)]
    # A pixel that is rounded to another byte differs by scale / std; results of bytes are rounded once more.
    bound = 3 / 7 + (1 if dtype is types.UINT8 else 0.1)
    compare(graph, images("uint8", channels), "HWC", tolerance=bound, arguments=[mirror], launches=3)


def test_an_empty_image_among_others() -> None:
    data = [np.ones((4, 4, 3), np.uint8), np.ones((0, 4, 3), np.uint8)]
    compare(lambda x: fn.resize(x, resize_x=3.0), data, "HWC", tolerance=0)
