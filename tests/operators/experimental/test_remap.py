"""fn.experimental.remap against OpenCV; DALI has it on the GPU only."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import run_dalify

RANDOM = np.random.default_rng(0)
IMAGE = cv2.resize(RANDOM.integers(0, 256, (8, 9, 3), dtype=np.uint8), (50, 40))
MAP_X = (np.mgrid[0:30, 0:45][1] * 1.2 + RANDOM.random((30, 45)) - 2).astype(np.float32)
MAP_Y = (np.mgrid[0:30, 0:45][0] * 1.3 - RANDOM.random((30, 45))).astype(np.float32)


def test_equals_opencv(device):
    floats = IMAGE.astype(np.float32)  # OpenCV rounds the coordinates of bytes to 1 / 32 pixel
    expected = cv2.remap(floats, MAP_X, MAP_Y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    layouts = ["HWC", "HW", "HW"]
    result = run_dalify(
        "experimental.remap", [floats], [MAP_X], [MAP_Y], layouts=layouts, device=device, pixel_origin="center"
    )
    assert np.median(np.abs(result[0] - expected)) < 0.1
    corner = run_dalify("experimental.remap", [floats], [MAP_X + 0.5], [MAP_Y + 0.5], layouts=layouts, device=device)
    np.testing.assert_allclose(corner[0], result[0], atol=1e-3)
    rounded = run_dalify(
        "experimental.remap", [IMAGE], [MAP_X], [MAP_Y], layouts=layouts, device=device, pixel_origin="center"
    )
    assert np.abs(rounded[0] - result[0]).max() <= 0.6  # half a level for rounding, the rest for weights of 13 bits


def test_identity(device):
    rows, columns = np.mgrid[0:40, 0:50].astype(np.float32)
    for interp in ("INTERP_NN", "INTERP_LINEAR"):
        result = run_dalify(
            "experimental.remap", [IMAGE], [columns], [rows], layouts=["HWC", "", ""], device=device, interp=interp,
            pixel_origin="center",
        )  # fmt: skip
        np.testing.assert_array_equal(result[0], IMAGE)


def test_frames(device):
    video = np.stack([IMAGE, IMAGE[::-1]])
    maps = [np.stack([values, values[::-1]]) for values in (MAP_X, MAP_Y)]
    result = run_dalify(
        "experimental.remap", [video], [maps[0]], [maps[1]], layouts=["FHWC", "FHW", "FHW"], device=device
    )
    for frame in range(2):
        alone = run_dalify(
            "experimental.remap", [video[frame]], [maps[0][frame]], [maps[1][frame]], layouts=["HWC", "HW", "HW"],
            device=device,
        )  # fmt: skip
        np.testing.assert_array_equal(result[0][frame], alone[0])


def test_mistakes():
    with pytest.raises(ShapeError, match="must have the same shape"):
        run_dalify("experimental.remap", [IMAGE], [MAP_X], [MAP_Y[1:]], layouts=["HWC", "", ""])
    with pytest.raises(ArgumentValueError, match="pixel_origin must be one of"):
        run_dalify("experimental.remap", [IMAGE], [MAP_X], [MAP_Y], layouts=["HWC", "", ""], pixel_origin="middle")
