"""fn.tensor_resize compared with the real DALI, and fn.experimental.resize compared with fn.resize."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, LayoutError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
MATRICES = [RANDOM.normal(size=shape).astype(np.float32) for shape in ((6, 7), (9, 5))]
PHOTOS = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((20, 31, 3), (17, 24, 3))]
BLOCKS = [RANDOM.normal(size=shape).astype(np.float32) for shape in ((2, 5, 6, 4, 3), (2, 7, 6, 3, 3))]


@pytest.mark.parametrize(
    "arguments",
    [
        {"sizes": [3, 4]},
        {"sizes": [3.5, 4.2], "size_rounding": "ceil"},
        {"sizes": [3.5, 4.2], "subpixel_scale": False},
        {"sizes": [5]},
        {"sizes": [0, 3]},
        {"sizes": [0, 3], "mode": "stretch"},
        {"sizes": [-2, 9]},
        {"sizes": [3, 10], "mode": "not_larger"},
        {"sizes": [3, 10], "mode": "not_smaller"},
        {"sizes": [3, 10], "max_size": [5]},
        {"scales": [0.5, 0.7]},
        {"scales": [0.5, 0.7], "size_rounding": "truncate", "alignment": [0.0, 1.0]},
        {"scales": [0.5, 0.7], "size_rounding": "ceil", "alignment": 0.25},
        {"scales": [-1.3, 0.2]},
        {"scales": [2, 1.3], "roi_start": [1, 1], "roi_end": [4, 5]},
        {"scales": [1.7, 0.6], "roi_start": [0.1, 0.9], "roi_end": [0.8, 0.2], "roi_relative": True},
        {"scales": [1.6, 0], "roi_start": [0.1, 0.2], "roi_end": [0.8, 0.9], "roi_relative": True},
        {"sizes": [4, 9], "interp_type": "INTERP_NN"},
        {"sizes": [4, 9], "interp_type": "INTERP_CUBIC", "antialias": False},
        {"sizes": [4, 9], "min_filter": "INTERP_LANCZOS3", "mag_filter": "INTERP_CUBIC"},
    ],
    ids=str,
)
def test_matrices(device, arguments):
    assert_equals_dali("tensor_resize", MATRICES, device=device, tolerance=1e-5, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sizes": [3, 4], "axes": [1, 3]},
        {"sizes": [3, 4], "axes": [3, 1]},
        {"scales": [2.1, 0.6], "axes": [-3, -1]},
        {"scales": [0.6], "axes": [0]},
        {"scales": [0.6], "axes": [4]},
        {"sizes": [4], "axes": [2], "interp_type": "INTERP_NN"},
        {"sizes": [4], "axes": [4], "interp_type": "INTERP_NN"},
        {"sizes": [4, 3, 6], "axis_names": "cab"},
        {"sizes": [4, 3, 9], "axis_names": "bcd", "interp_type": "INTERP_NN"},
    ],
    ids=str,
)
def test_axes(device, arguments):
    assert_equals_dali(
        "tensor_resize", BLOCKS, layouts="abcde"[: BLOCKS[0].ndim], device=device, tolerance=2e-5, **arguments
    )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
@pytest.mark.parametrize("output", [{}, {"dtype": "FLOAT"}])
def test_types(device, dtype, output):
    photos = [photo.astype(dtype) for photo in PHOTOS]
    exact = dtype != "float32" and not output
    assert_equals_dali(
        "tensor_resize", photos, layouts="HWC", device=device, tolerance=1 if exact else 1e-3, sizes=[9, 40],
        axes=[0, 1], **output,
    )  # fmt: skip


def test_per_sample(device):
    sizes, places = Each(np.float32([[3, 4], [12, 5]])), Each(np.float32([[0, 1], [0.5, 0.2]]))
    assert_equals_dali("tensor_resize", MATRICES, device=device, tolerance=1e-5, sizes=sizes)
    scales = Each(np.float32([[0.55, 1.2], [0.3, 0.8]]))
    same = [MATRICES[0], MATRICES[0]]
    assert_equals_dali("tensor_resize", same, device=device, tolerance=1e-5, scales=scales, alignment=places)
    assert_equals_dali("tensor_resize", same, device=device, tolerance=1e-5, scales=[0.55, 0.3], alignment=places)


def test_small(device):
    row = [np.float32([1, 5, 2]), np.float32([4])]
    assert_equals_dali("tensor_resize", row, device=device, tolerance=1e-5, sizes=[5])
    assert_equals_dali("tensor_resize", [np.zeros((0, 4), np.float32)], device=device, sizes=[3, 5])
    same = run_dalify("tensor_resize", PHOTOS, device=device, scales=[1.0], dtype="FLOAT")
    assert same[0].dtype == np.float32
    np.testing.assert_array_equal(same[0], PHOTOS[0])


def test_mistakes():
    for arguments in ({}, {"sizes": [2, 2], "scales": [1, 1]}):
        with pytest.raises(ArgumentValueError, match="either sizes or scales"):
            run_dalify("tensor_resize", MATRICES, **arguments)
    with pytest.raises(ArgumentValueError, match="size_rounding must be one of"):
        run_dalify("tensor_resize", MATRICES, sizes=[2, 2], size_rounding="floor")
    with pytest.raises(ArgumentValueError, match="requires sizes instead of scales"):
        run_dalify("tensor_resize", MATRICES, scales=[2, 2], mode="not_larger")
    with pytest.raises(ArgumentValueError, match="together"):
        run_dalify("tensor_resize", MATRICES, sizes=[2, 2], roi_end=[1, 1])
    for name in ("roi_start", "roi_end"):
        with pytest.raises(ArgumentValueError, match="roi_start and roi_end must be specified together"):
            run_dalify("tensor_resize", MATRICES, sizes=[2, 2], **{name: Each(np.float32([[1, 1], [1, 1]]))})
    with pytest.raises(ArgumentValueError, match="must not be repeated"):
        run_dalify("tensor_resize", MATRICES, sizes=[2, 2], axes=[0, -2])
    with pytest.raises(ArgumentValueError, match="alignment must be one number or 2"):
        run_dalify("tensor_resize", MATRICES, sizes=[2, 2], alignment=[0, 1, 2])
    with pytest.raises(IndexingError, match=r"axes \[0, 2\] are out of range"):
        run_dalify("tensor_resize", MATRICES, sizes=[2, 2], axes=[0, 2])
    with pytest.raises(LayoutError, match="'HZ' must all be in the layout"):
        run_dalify("tensor_resize", PHOTOS, layouts="HWC", sizes=[2, 2], axis_names="HZ")
    with pytest.raises(ShapeError, match="4 adjacent axes would change"):
        run_dalify("tensor_resize", BLOCKS, sizes=[2, 2], axes=[1, 4])
    with pytest.raises(ShapeError, match="at least one axis"):
        run_dalify("tensor_resize", [np.float32(1)], sizes=[2])
    with pytest.raises(DTypeError, match="dtype must be"):
        run_dalify("tensor_resize", MATRICES, sizes=[2, 2], dtype="INT32")


@pytest.mark.parametrize("arguments", [{"resize_shorter": 11}, {"size": [9, 40], "save_attrs": True}])
def test_experimental_resize(device, arguments):
    ours = run_dalify("experimental.resize", PHOTOS, layouts="HWC", device=device, **arguments)
    plain = run_dalify("resize", PHOTOS, layouts="HWC", device=device, **arguments)
    for one, other in zip(ours, plain, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)
    with pytest.raises(ArgumentValueError, match="exactly one way"):
        run_dalify("experimental.resize", PHOTOS, layouts="HWC", device=device)


def test_mirrored_region_stays_mirrored(device):
    """Also along an axis with a size that follows from the others; DALI does not mirror it there."""
    row = np.tile(np.arange(8, dtype=np.float32), (4, 1))
    arguments = {"roi_start": [0, 8], "roi_end": [4, 0]}
    for sizes in ([4, 0], [4, 8]):
        result = run_dalify("tensor_resize", [row], device=device, sizes=sizes, **arguments)[0]
        np.testing.assert_allclose(result, row[:, ::-1])
