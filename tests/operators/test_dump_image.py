"""fn.dump_image: its files are read back with OpenCV, and are the real DALI's byte for byte."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import run_dali


def images(channels: int) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [rng.integers(0, 256, (4 + n, 5, channels), dtype=np.uint8) for n in range(3)]


@pytest.mark.parametrize("channels", [1, 3])
def test_files(channels, device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = images(channels)
    for sample, image in zip(
        run_dalify("dump_image", given, layouts="HWC", suffix="x", device=device), given, strict=True
    ):
        np.testing.assert_array_equal(sample, image)
    for number, image in enumerate(given):
        read = cv2.imread(f"{number}-x-0.ppm", cv2.IMREAD_UNCHANGED)
        np.testing.assert_array_equal(read.reshape(image.shape)[..., ::-1], image)


def test_files_equal_dali(oracle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_dali("dump_image", images(3), layouts="HWC", suffix="s")
    theirs = {path.name: path.read_bytes() for path in Path().iterdir()}
    for name in theirs:
        Path(name).unlink()
    run_dalify("dump_image", images(3), layouts="HWC", suffix="s")
    assert {name: Path(name).read_bytes() for name in theirs} == theirs


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "arguments", "kind"),
    [
        ((4, 5, 3), "float32", "HWC", {}, DTypeError),
        ((4, 5, 2), "uint8", "HWC", {}, ShapeError),
        ((4, 5), "uint8", "", {}, ShapeError),
        ((3, 4, 5), "uint8", "CHW", {}, LayoutError),
        ((4, 5, 3), "uint8", "HWC", {"input_layout": "CHW"}, ArgumentValueError),
        ((4, 5, 3), "uint8", "HWC", {"suffix": "../a"}, ArgumentValueError),
    ],
)
def test_mistakes(shape, dtype, layout, arguments, kind):
    with pytest.raises(kind):
        run_dalify("dump_image", [np.zeros(shape, dtype)], layouts=layout, **arguments)
