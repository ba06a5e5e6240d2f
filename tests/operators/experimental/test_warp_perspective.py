"""fn.experimental.warp_perspective compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


MATRIX = [0.9, 0.1, 3, -0.1, 0.95, 2, 0.001, -0.0005, 1]


@pytest.mark.parametrize("border_mode", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_borders(device, border_mode):
    shifted = [1.3, 0.1, -30, -0.1, 1.2, -20, 0.001, -0.0005, 1]
    assert_equals_dali(
        "experimental.warp_perspective", IMAGES, layouts="HWC", device=device, tolerance=1, matrix=shifted,
        border_mode=border_mode,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"pixel_origin": "center", "fill_value": [1.0, 2.0, 3.0], "inverse_map": False, "size": [30, 70]},
        {"fill_value": 50.0},
    ],
)
def test_options(device, arguments):
    assert_equals_dali(
        "experimental.warp_perspective", IMAGES, layouts="HWC", device=device, tolerance=1, matrix=MATRIX, **arguments
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
@pytest.mark.parametrize("interp_type", ["INTERP_LINEAR", "INTERP_CUBIC"])
def test_fill_values_of_integers(device, dtype, interp_type):
    """OpenCV rounds halves to even and converts through int32."""
    outside = [1, 0, 99, 0, 1, 99, 0, 0, 1]
    for fills in ([0.5, 2.5, 254.5], [-0.5, 1.5, 70000.0], [1e10, 300.0, -1.5], [float("nan"), float("inf"), -40000.0]):
        assert_equals_dali(
            "experimental.warp_perspective", [IMAGES[0].astype(dtype)], layouts="HWC", device=device, matrix=outside,
            fill_value=fills, interp_type=interp_type,
        )  # fmt: skip


def test_nearest(device):
    assert_equals_dali(
        "experimental.warp_perspective", IMAGES, layouts="HWC", device=device, tolerance=255, share=2e-3,
        matrix=MATRIX, interp_type="INTERP_NN",
    )  # fmt: skip


@pytest.mark.parametrize("border_mode", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_cubic(device, border_mode):
    shifted = [1.3, 0.1, -10, -0.1, 1.2, -8, 0.001, -0.0005, 1]
    assert_equals_dali(
        "experimental.warp_perspective", IMAGES, layouts="HWC", device=device, tolerance=1, matrix=shifted,
        border_mode=border_mode, fill_value=[9.0], interp_type="INTERP_CUBIC",
    )  # fmt: skip


@pytest.mark.parametrize("border_mode", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_cubic_kernel_far_from_zero(device, border_mode):
    far = [1e30, 0, 0, 0, 1e30, 0, 0, 0, 1]
    for image in (IMAGES[0], IMAGES[0][:1, :1], np.concatenate([IMAGES[0]] * 2, axis=2)):
        for matrix in (far, [0] * 9):
            (warped,) = run_dalify(
                "experimental.warp_perspective", [image], layouts="HWC", device=device, matrix=matrix,
                border_mode=border_mode, interp_type="INTERP_CUBIC",
            )  # fmt: skip
            assert warped.shape == image.shape


def test_layouts(device):
    planar = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in IMAGES]
    gray = [image[..., 0] for image in IMAGES]
    for data, layout in ((planar, "CHW"), (gray, "HW"), (SEQUENCES, "FHWC")):
        assert_equals_dali(
            "experimental.warp_perspective", data, layouts=layout, device=device, tolerance=1, matrix=MATRIX
        )


def test_matrices(device):
    matrix = np.float32(MATRIX).reshape(3, 3)
    assert_equals_dali(
        "experimental.warp_perspective", IMAGES, [matrix, matrix], layouts=["HWC", ""], device=device, tolerance=1
    )
    frames = Each([np.stack([matrix, np.eye(3, dtype=np.float32), matrix])], "Fab")
    assert_equals_dali(
        "experimental.warp_perspective", SEQUENCES, layouts="FHWC", device=device, tolerance=1, matrix=frames
    )


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="either as the second input"):
        run_dalify("experimental.warp_perspective", IMAGES, layouts="HWC")
    with pytest.raises(ArgumentValueError, match="border_mode must be one of"):
        run_dalify("experimental.warp_perspective", IMAGES, layouts="HWC", matrix=MATRIX, border_mode="mirror")
    with pytest.raises(ArgumentValueError, match="matrix is singular"):
        run_dalify("experimental.warp_perspective", IMAGES, layouts="HWC", matrix=[0] * 9, inverse_map=False)
    with pytest.raises(ShapeError, match="list of 9 values per sample; got 6"):
        run_dalify("experimental.warp_perspective", IMAGES, layouts="HWC", matrix=[0] * 6)
