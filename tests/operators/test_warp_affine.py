"""fn.warp_affine compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]
VOLUMES = [RANDOM.integers(0, 256, (9, 20, 31, 2), dtype=np.uint8)]


MATRIX = [0.9, 0.1, 3, -0.1, 0.9, 2]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"inverse_map": False, "size": [10, 70], "fill_value": 9.0},
        {"size": Each(np.float32([[10, 20], [30, 40]]))},
    ],
)
def test_images(device, arguments):
    assert_equals_dali("warp_affine", IMAGES, layouts="HWC", device=device, tolerance=1, matrix=MATRIX, **arguments)


def test_matrix_as_input(device):
    matrix = np.array(MATRIX, np.float32).reshape(2, 3)
    assert_equals_dali("warp_affine", IMAGES, [matrix, -matrix], layouts=["HWC", ""], device=device, tolerance=1)


def test_matrix_per_frame(device):
    matrix = Each([np.float32([[[1, 0, i], [0, 1, -i]] for i in range(3)])], "Fab")
    assert_equals_dali("warp_affine", SEQUENCES, layouts="FHWC", device=device, matrix=matrix)


def test_volumes(device):
    matrix = [0.9, 0.1, -0.1, 0.7, 0.05, 1.1, 0.2, -0.4, -0.2, 0.1, 0.8, 0.9]
    assert_equals_dali("warp_affine", VOLUMES, layouts="DHWC", device=device, tolerance=1, matrix=matrix)


@pytest.mark.parametrize("dtype", ["FLOAT", "INT16", "UINT8"])
def test_types(device, dtype):
    for source in (np.float32, np.int16)[: 1 if dtype == "UINT8" else 2]:  # DALI does not take INT16 to UINT8
        images = [image.astype(source) for image in IMAGES]
        tolerance = 0.02 if dtype == "FLOAT" else 1
        assert_equals_dali(
            "warp_affine", images, layouts="HWC", device=device, tolerance=tolerance, matrix=MATRIX, dtype=dtype
        )


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="either as the second input"):
        run_dalify("warp_affine", IMAGES, layouts="HWC")
    with pytest.raises(ArgumentValueError, match="matrix is singular"):
        run_dalify("warp_affine", IMAGES, layouts="HWC", matrix=[0] * 6, inverse_map=False)
    with pytest.raises(ShapeError, match="matrix takes one list of 6 values per sample; got 5"):
        run_dalify("warp_affine", IMAGES, layouts="HWC", matrix=[0] * 5)
