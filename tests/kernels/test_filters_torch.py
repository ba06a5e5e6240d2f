"""Filters of a chunk on the device: each sample with its own filter or mask, as on the CPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types

SHAPES = [(9, 14, 3), (5, 4, 3), (12, 7, 3), (1, 6, 3)]
BORDERS = ["reflect_101", "reflect_1001", "wrap", "clamp", "fill"]


def both(operation: Any, layout: str, *inputs: list[np.ndarray[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the results of each sample on the device and on the CPU."""
    found: dict[str, list[Any]] = {}
    for device in ("gpu", "cpu"):

        @pipeline_def(batch_size=len(inputs[0]), num_threads=1, device_id=0)
        def pipeline(device: str = device) -> Any:
            data, *others = (fn.external_source([each]) for each in inputs)
            data = fn.reshape(data, layout=layout)
            return operation(data.gpu() if device == "gpu" else data, *others)

        (output,) = pipeline().run()
        found[device] = [np.asarray(sample.as_cpu() if device == "gpu" else sample) for sample in output]
    return list(zip(found["gpu"], found["cpu"], strict=True))


def samples(dtype: str, frames: bool = False) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(6)
    shapes = [(n + 1, *shape) if frames else shape for n, shape in enumerate(SHAPES)]
    return [random.integers(0, 2 if dtype == "bool" else 120, shape).astype(dtype) for shape in shapes]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
def test_filters_of_several_extents(border: str, dtype: str) -> None:
    random = np.random.default_rng(7)
    filters = [random.uniform(0, 0.3, shape).astype(np.float32) for shape in ((3, 3), (1, 5), (4, 2), (2, 1))]
    anchors = [np.array(anchor, np.int32) for anchor in ([-1, -1], [0, 4], [3, 0], [1, 0])]
    fills = [np.array(n, np.float32) for n in range(4)]
    given = samples(dtype)
    if dtype == "float32":
        given[1][2, 1] = np.inf  # must not reach results of smaller filters

    def operation(data: Any, filters: Any, anchors: Any, fills: Any) -> Any:
        return fn.filter(data, filters, fills, anchor=anchors, border=border)

    for found, expected in both(operation, "HWC", given, filters, anchors, fills):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3 if dtype == "float32" else 1)


@pytest.mark.usefixtures("gpu")
def test_valid_filters_of_several_extents() -> None:
    filters = [np.full(shape, 0.1, np.float32) for shape in ((3, 3), (1, 4), (4, 2), (1, 1))]

    def operation(data: Any, filters: Any) -> Any:
        return fn.filter(data, filters, mode="valid", dtype=types.FLOAT)

    for found, expected in both(operation, "HWC", samples("uint8"), filters):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.usefixtures("gpu")
def test_filters_and_fill_values_of_frames() -> None:
    random = np.random.default_rng(8)
    filters = [random.uniform(0, 0.3, (1 if n == 2 else n + 1, 2, 3)).astype(np.float32) for n in range(4)]
    fills = [np.arange(n + 1, dtype=np.float32) * 20 for n in range(4)]

    def operation(data: Any, filters: Any, fills: Any) -> Any:
        return fn.filter(data, filters, fills, border="constant", dtype=types.FLOAT)

    for found, expected in both(operation, "FHWC", samples("uint8", frames=True), filters, fills):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "uint16", "uint32", "float16", "float32"])
@pytest.mark.parametrize("frames", [False, True])
def test_masks_of_several_sizes(border: str, dtype: str, frames: bool) -> None:
    given = samples(dtype, frames)
    if np.dtype(dtype).kind == "f" and border != "constant":  # OpenCV's border is finite
        given[0][..., :3, :, :], given[2][..., -1, :, :] = -np.inf, np.inf
    sizes = [np.array(size, np.int32) for size in ([3, 5], [1, 9], [6, 1], [40, 2])]
    anchors = [np.array(anchor, np.int32) for anchor in ([0, 4], [-1, -1], [5, 0], [30, 1])]
    for morph in (fn.experimental.dilate, fn.experimental.erode):

        def operation(data: Any, sizes: Any, anchors: Any, morph: Any = morph) -> Any:
            return morph(data, mask_size=sizes, anchor=anchors, border_mode=border)

        for found, expected in both(operation, "FHWC" if frames else "HWC", given, sizes, anchors):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("frames", [False, True])
def test_laplacians_with_windows_of_several_sizes(frames: bool) -> None:
    sizes = [np.array(size, np.int32) for size in ([3, 5], [7, 3], [5, 5], [3, 9])]

    def operation(data: Any, sizes: Any) -> Any:
        return fn.laplacian(data, window_size=sizes, normalized_kernel=True, dtype=types.FLOAT)

    for found, expected in both(operation, "FHWC" if frames else "HWC", samples("uint8", frames), sizes):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-3)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int16", "float32"])
@pytest.mark.parametrize("frames", [False, True])
def test_medians_of_windows_of_several_sizes(dtype: str, frames: bool) -> None:
    sizes = [np.array(size, np.int32) for size in ([3, 5], [7, 1], [3, 5], [1, 3])]

    def operation(data: Any, sizes: Any) -> Any:
        return fn.experimental.median_blur(data, window_size=sizes)

    for found, expected in both(operation, "FHWC" if frames else "HWC", samples(dtype, frames), sizes):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [
        *itertools.product(["bilinear_ocv", "edgeaware_ocv", "gray_ocv", "default_npp"], ["uint8", "uint16"]),
        ("vng_ocv", "uint8"),
    ],
)
@pytest.mark.parametrize("frames", [False, True])
def test_mosaics_of_several_positions_and_sizes(algorithm: str, dtype: str, frames: bool) -> None:
    random = np.random.default_rng(9)
    shapes = [(8, 14), (2, 2), (60, 44), (2, 16), (4, 4)]
    given = [
        random.integers(0, np.iinfo(dtype).max, (n + 1, *shape) if frames else shape).astype(dtype)
        for n, shape in enumerate(shapes)
    ]
    positions = [np.array(position, np.int32) for position in ([0, 0], [0, 1], [1, 0], [1, 1], [0, 1])]

    def operation(data: Any, positions: Any) -> Any:
        return fn.debayer(data, blue_position=positions, algorithm=algorithm)

    for found, expected in both(operation, "FHW" if frames else "HW", given, positions):
        assert found.dtype == expected.dtype
        if algorithm == "vng_ocv":  # OpenCV rounds the last columns of each row in another way
            assert (found != expected).mean() <= 0.01
        np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=algorithm == "vng_ocv")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("luma_only", [False, True])
@pytest.mark.parametrize("tiles", [(1, 1), (3, 4), (8, 7)])
@pytest.mark.parametrize("bins", [16, 256])
def test_tiles_of_gray_and_color_images(luma_only: bool, tiles: tuple[int, int], bins: int) -> None:
    random = np.random.default_rng(10)
    shapes = [(24, 36, 3), (7, 5, 1), (120, 90, 3), (23, 36, 1), (1, 1, 3), (8, 7, 1)]
    given = [random.integers(0, 256, shape, np.uint8) for shape in shapes]

    def operation(data: Any) -> Any:
        return fn.clahe(data, tiles_x=tiles[0], tiles_y=tiles[1], clip_limit=1.5, bins=bins, luma_only=luma_only)

    for found, expected in both(operation, "HWC", given):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
