"""fn.equalize compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import DTypeError, LayoutError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


def test_layouts(device):
    planar = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in IMAGES]
    gray = [image[..., 0] // 3 + 20 for image in IMAGES]
    for data, layout in ((IMAGES, "HWC"), (SEQUENCES, "FHWC"), (planar, "CHW"), (gray, "HW")):
        assert_equals_dali("equalize", data, layouts=layout, device=device, tolerance=int(device == "gpu"))


def test_one_level(device):
    data = [np.full((5, 5, 1), 7, np.uint8)]
    assert_equals_dali("equalize", data, layouts="HWC", device=device)


def test_mistakes():
    with pytest.raises(DTypeError, match="must have uint8 elements"):
        run_dalify("equalize", [np.zeros((2, 2, 1), np.float32)], layouts="HWC")
    with pytest.raises(LayoutError, match="'DHWC'"):
        run_dalify("equalize", [np.zeros((2, 2, 2, 1), np.uint8)], layouts="DHWC")
