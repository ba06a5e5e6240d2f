"""Color, filters, warps and copies by one launch for images of several sizes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from dalify import fn, types
from tests.kernels.triton.running import DTYPES, compare, images, results

pytestmark = pytest.mark.gpu

Graph = Callable[[Any], Any]
ANGLED = [0.8, 0.3, -2.0, -0.2, 1.1, 3.0]


def color(x: Any) -> Any:
    return (
        fn.brightness_contrast(x, brightness=1.2, contrast=0.7, brightness_shift=0.05, contrast_center=100.0),
        fn.color_twist(x, hue=40.0, saturation=1.3, brightness=0.9, contrast=1.1),
        fn.hsv(x, hue=-25.0, saturation=0.4, value=1.1, dtype=types.FLOAT),
    )


def warps(x: Any) -> Any:
    return (
        fn.warp_affine(x, matrix=ANGLED, fill_value=17.0, size=(9, 14)),
        fn.warp_affine(x, matrix=ANGLED, inverse_map=False, fill_value=None),
        fn.experimental.warp_perspective(x, matrix=[*ANGLED, 0.001, 0.002, 1.0], fill_value=[17.0]),
        fn.rotate(x, angle=25.0, interp_type=types.INTERP_NN, fill_value=3.0),
        fn.rotate(x, angle=-70.0, keep_size=True, fill_value=3.0),
    )


def blurs(x: Any) -> Any:
    return (
        fn.gaussian_blur(x, sigma=1.3),
        fn.gaussian_blur(x, window_size=[9, 3], dtype=types.FLOAT),
        fn.laplacian(x, window_size=[5, 3], smoothing_size=[3, 7], dtype=types.FLOAT),
    )


def copies(x: Any) -> Any:
    return (
        fn.flip(x, horizontal=1, vertical=1),
        fn.crop(x, crop=(9, 11), out_of_bounds_policy="pad", fill_values=[5.0]),
        fn.slice(x, start=[-2, 1], shape=[12, 6], axis_names="WH", out_of_bounds_policy="pad", fill_values=[9.0]),
    )


def transposed(x: Any) -> Any:
    return tuple(fn.transpose(x, perm=order) for order in ([2, 0, 1], [1, 0, 2], [2, 1, 0]))


def joined(x: Any) -> Any:
    """Flip and crop are a launch each."""
    other, narrow = fn.flip(x), fn.crop(x, crop=(0, 3), out_of_bounds_policy="pad")
    return (
        fn.cat(x, narrow, other, axis_name="W"),
        *(fn.cat(x, other, axis=axis) for axis in (0, 2)),
        *(fn.stack(x, other, x, axis=axis) for axis in range(4)),
    )


def erased(x: Any) -> Any:
    return (
        fn.erase(x, anchor=[0.1, 0.2, 0.6, 0.5], shape=[0.3, 0.2, 0.9, 0.3], normalized=True, fill_value=[7.0]),
        fn.erase(x, anchor=[2.0, 3.0], shape=[4.0, 5.0], axis_names="HW", centered_anchor=True),
    )


def converted(x: Any) -> Any:
    return tuple(fn.cast(x, dtype=dtype) for dtype in (types.UINT8, types.INT16, types.FLOAT16, types.FLOAT))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "uint16", "int32"])  # each size, and types that numbers lack
@pytest.mark.parametrize(("graph", "launches"), [(transposed, 3), (joined, 9)])
def test_axes(graph: Graph, launches: int, dtype: str) -> None:
    compare(graph, images(dtype, 3), "HWC", tolerance=0, launches=launches)
    compare(graph, images(dtype, 3, sizes=[(4, 6)] * 3), "HWC", tolerance=0, launches=launches)


def test_parts_without_elements() -> None:
    """Two samples of the first part are empty, and all of the second."""

    def graph(x: Any, width: Any) -> Any:
        part = fn.slice(x, 0, width, axes=[1])
        return fn.cat(part, fn.slice(x, 0, 0, axes=[1]), x, part, axis=1)

    widths = [np.array([width], np.int32) for width in (0, 7, 0)]
    compare(graph, images("int16", 3), "HWC", tolerance=0, arguments=[widths], launches=2)  # and the slice


def test_transpose_of_other_numbers_of_axes() -> None:
    generator = np.random.default_rng(5)
    for shapes in ([(3,), (5,)], [(3, 7), (40, 2)], [(2, 3, 4, 5), (3, 1, 2, 6)]):
        data = [generator.integers(0, 99, shape).astype(np.uint8) for shape in shapes]
        compare(fn.transpose, data, "", tolerance=0)
    data = [generator.integers(0, 99, shape).astype(np.uint8) for shape in ((1, 2, 3, 4, 5), (2, 1, 3, 2, 2))]
    compare(fn.transpose, data, "", tolerance=0, launches=None)  # too many axes: left to torch


def tolerance(dtype: str) -> float:
    return {"uint8": 1, "int16": 1, "float16": 0.5}.get(dtype, 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("graph", "launches"), [(color, 3), (warps, 5), (blurs, 8), (copies, 3), (erased, 2)])
def test_types(graph: Graph, launches: int, dtype: str) -> None:
    compare(graph, images(dtype, 3), "HWC", tolerance=tolerance(dtype), launches=launches)


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize(("graph", "launches"), [(warps, 5), (blurs, 8), (copies, 3), (erased, 2)])
def test_channels(graph: Graph, launches: int, channels: int) -> None:
    compare(graph, images("uint8", channels), "HWC", tolerance=1, launches=launches)


@pytest.mark.parametrize(("graph", "launches"), [(blurs, 8), (copies, 3), (erased, 2)])
def test_planes(graph: Graph, launches: int) -> None:
    compare(graph, images("float32", 3, "CHW"), "CHW", tolerance=1e-2, launches=launches)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversion(dtype: str) -> None:
    compare(converted, [image * 1.25 - 40 if "float" in dtype else image for image in images(dtype, 3)], "HWC",
            tolerance=0, launches=4)  # fmt: skip


def test_paste() -> None:
    def graph(x: Any) -> Any:
        return fn.paste(x, ratio=1.5, paste_x=0.3, paste_y=0.8, fill_value=[10, 20, 30])

    compare(graph, images("uint8", 3), "HWC", tolerance=0)


def test_arguments_by_sample() -> None:
    def graph(x: Any, number: Any) -> Any:
        return (
            fn.rotate(x, angle=number * 30.0, keep_size=True, fill_value=0.0),
            fn.brightness(x, brightness=number),
            fn.gaussian_blur(x, sigma=number + 0.5),
            fn.flip(x, horizontal=fn.cast(number > 1.0, dtype=types.INT32)),
        )

    numbers = [np.array(number, np.float32) for number in (0.5, 1.0, 1.5)]
    compare(graph, images("uint8", 3), "HWC", tolerance=1, arguments=[numbers], launches=5)


def test_pipelines_at_once() -> None:
    """The interpreter supports one kernel at a time, so launches wait for each other there."""
    wanted = [np.clip(image.astype(np.float32) * 0.5 + 0.5, 0, 255).astype(np.uint8) for image in images("uint8", 3)]

    def run(_: int) -> list[np.ndarray]:
        return results(lambda x: fn.brightness(x, brightness=0.5), images("uint8", 3), "HWC", "gpu")[0]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(run, range(8)):
            for sample, right in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(sample, right)


def test_volumes_and_other_types_are_left_to_torch() -> None:
    volume = [np.arange(2 * 3 * 4 * 1, dtype=np.float32).reshape(2, 3, 4, 1)]
    compare(lambda x: fn.resize(x, size=(3, 4, 5)), volume, "DHWC", tolerance=1e-3, launches=None)
    wide = [np.arange(24, dtype=np.float64).reshape(2, 4, 3)]
    compare(lambda x: fn.brightness(x, brightness=2.0), wide, "HWC", tolerance=1e-3, launches=None)
