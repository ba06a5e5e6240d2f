"""crop_mirror_normalize by one launch for images of several sizes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch

from dalify import fn, types
from dalify.kernels.dispatch import UnsupportedError
from tests.helpers.cuda_devices import devices
from tests.kernels.triton.running import DTYPES, compare, images

pytestmark = pytest.mark.gpu

MEAN, STD = (120.0, 110.0, 100.0, 90.0), (60.0, 50.0, 40.0, 30.0)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_crop_mirror_normalize(dtype: str, layout: str, channels: int) -> None:
    def graph(x: Any, mirror: Any) -> Any:
        whole = fn.crop_mirror_normalize(x, mirror=mirror, mean=MEAN[:channels], std=STD[:channels])
        same = fn.crop_mirror_normalize(x, mirror=mirror, output_layout=layout, dtype=types.FLOAT16, mean=MEAN[:1])
        padded = fn.crop_mirror_normalize(
            x, mirror=mirror, crop=(20, 30), out_of_bounds_policy="pad", fill_values=[7.0], pad_output=True,
            output_layout="HWC", dtype=types.UINT8, mean=[3.0], std=[1.5], shift=1.0,
        )  # fmt: skip
        return whole, same, padded

    mirror = [np.array(n % 2, np.int32) for n in range(3)]
    # A float16 and a multiple of 0.5 may be rounded to another neighbor where a product is rounded otherwise.
    compare(graph, images(dtype, channels, layout), layout, tolerance=1e-5, arguments=[mirror], launches=3)


@pytest.mark.parametrize(("position", "size", "kernel"), [
    (0.0, (12, 20), "_planes"), (0.5, (13, 21), "_planes"), (1.0, (12, 20), "_planes"), (0.5, (14, 21), "_windows"),
])  # fmt: skip
def test_windows_inside_of_images_have_their_own_kernel(
    position: float, size: tuple[int, int], kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def graph(x: Any, mirror: Any) -> Any:
        return fn.crop_mirror_normalize(
            x, mirror=mirror, crop=size, crop_pos_x=position, crop_pos_y=position, mean=MEAN[:3], std=STD[:3],
            out_of_bounds_policy="pad", fill_values=[7.0],
        )  # fmt: skip

    module, launched = importlib.import_module("dalify.kernels.triton.windows"), list[str]()
    launch = module.launch

    def noted(function: Any, *others: Any, **constants: Any) -> None:
        launched.append(function.__name__)
        launch(function, *others, **constants)

    monkeypatch.setattr(module, "launch", noted)
    mirror = [np.array(n % 2, np.int32) for n in range(3)]
    data = images("uint8", 3, sizes=[(13, 37), (40, 21), (13, 21)])
    compare(graph, data, "HWC", tolerance=1e-5, arguments=[mirror])
    assert launched == [kernel]


@pytest.mark.parametrize("out", [types.INT8, types.INT16, types.UINT16, types.INT32])
def test_rounding_and_saturation(out: types.DALIDataType) -> None:
    data = [np.array([-70000.5, -129.5, -128.5, -1.5, -0.5, 0.49999997, 0.5, 2.5, 127.5, 65535.5, 3e9, np.nan])]
    data = [data[0].astype(np.float32).reshape(2, 6, 1)]
    compare(lambda x: fn.crop_mirror_normalize(x, dtype=out), data, "HWC", tolerance=0)


def test_sequences_take_a_launch_for_all_frames() -> None:
    generator = np.random.default_rng(3)
    data = [generator.integers(0, 256, (frames, 9, 11, 3), np.uint8) for frames in (2, 5)]
    compare(lambda x: fn.crop_mirror_normalize(x, output_layout="FCHW", crop=(5, 7)), data, "FHWC", tolerance=1e-5)


def test_samples_with_different_numbers_of_channels_are_left_to_torch() -> None:
    data = [np.ones((4, 5, channels), np.uint8) for channels in (1, 3)]
    compare(lambda x: fn.crop_mirror_normalize(x, mean=[0.5]), data, "HWC", tolerance=1e-5, launches=None)


def test_launches_are_on_the_device_of_their_samples() -> None:
    """Triton launches on the current device of the thread, whatever the device of the tensors."""
    module = importlib.import_module("dalify.kernels.triton.launching")
    launched: list[int] = []

    class Kernel:
        def __getitem__(self, _grid: tuple[int]) -> Any:
            return lambda **_: launched.append(torch.cuda.current_device())

    with devices(2):
        module.launch(Kernel(), torch.device("cuda", 1), 1)
        module.launch(Kernel(), torch.device("cuda", 0), 1)
    assert launched == [1, 0]


@pytest.mark.parametrize(("platform", "largest"), [(None, 2**31 - 1), ("6.2", 2**24 - 1)])
def test_grids_that_a_device_does_not_support_are_left_to_torch(
    platform: str | None, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("dalify.kernels.triton.launching")
    launched: list[int] = []

    class Kernel:
        def __getitem__(self, grid: tuple[int]) -> Any:
            return lambda **_: launched.append(grid[0])

    monkeypatch.setattr(torch.version, "hip", platform)
    module.launch(Kernel(), torch.device("cpu"), largest)
    with pytest.raises(UnsupportedError):
        module.launch(Kernel(), torch.device("cpu"), largest + 1)
    assert launched == [largest]
