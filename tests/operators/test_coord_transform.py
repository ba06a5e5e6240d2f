"""fn.coord_transform compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

POINTS = np.random.default_rng(0).random((5, 2)).astype(np.float32)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"M": [1, 2, 3, 4]},
        {"M": [1, 2, 3, 4, 5, 6]},
        {"M": [1, 2]},
        {"M": 2.0, "T": 1.0},
        {"T": [1, 2]},
        {"MT": [1, 2, 3, 4, 5, 6]},
        {"MT": 3.0},
        {"M": [1, 2, 3, 4, 5, 6], "T": [1, 2, 3]},
    ],
)
def test_constants(device, arguments):
    assert_equals_dali("coord_transform", [POINTS, POINTS[:1]], device=device, tolerance=1e-5, **arguments)


def test_per_sample(device):
    matrices = Each(np.float32([[[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 4], [9, 6]]]))
    assert_equals_dali(
        "coord_transform", [POINTS, POINTS[:1]], device=device, tolerance=1e-5, M=matrices,
        T=Each(np.float32([[1, 2, 3], [4, 5, 6]])),
    )  # fmt: skip


def test_per_frame(device):
    frames = np.random.default_rng(1).random((3, 5, 2)).astype(np.float32)
    matrices = Each([np.float32([[[1, 2, 3], [4, 5, 6]], [[0, 1, 0], [1, 0, 0]], [[2, 0, 0], [0, 2, 1]]])], "Fab")
    assert_equals_dali("coord_transform", [frames], layouts="F**", device=device, tolerance=1e-5, MT=matrices)


FRAMES = np.float32([[[1, 2], [3, 4]], [[0, 1], [1, 0]], [[2, 0], [0, 3]]])
SHIFTS = np.float32([[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("layout", [None, "AB"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"M": Each([FRAMES, FRAMES[:2]], "FHW")},
        {"MT": Each([np.concatenate([FRAMES, SHIFTS[..., None]], 2), np.zeros((1, 2, 3), np.float32)], "F**")},
        {"MT": Each([np.ones((3, 4, 3), np.float32), np.ones((2, 4, 3), np.float32)], "F**")},
        {"T": Each([SHIFTS, SHIFTS[:2]], "F*")},
        {"M": Each([FRAMES, FRAMES], "F**"), "T": Each([SHIFTS, SHIFTS], "F*")},
        {"M": [2.0, 0.0, 0.0, 2.0], "T": Each([SHIFTS, SHIFTS[:1]], "F*")},
        {"M": Each([FRAMES[0], FRAMES[1]]), "T": Each([SHIFTS, SHIFTS], "F*")},
    ],
    ids=str,
)
def test_frames_of_arguments_repeat_an_input_without_frames(device, layout, arguments):
    inputs = [POINTS, POINTS[:1]]
    assert_equals_dali("coord_transform", inputs, layouts=layout or "", device=device, tolerance=1e-5, **arguments)


@pytest.mark.parametrize(("layout", "expected"), [("", ""), ("NX", "FNX")])
def test_repeated_inputs_have_a_layout_of_frames(layout, expected):
    @pipeline_def(batch_size=1, num_threads=1)
    def moved():
        points = fn.external_source(source=lambda: POINTS[None], layout=layout or None)
        shifts = fn.external_source(source=lambda: SHIFTS[None], layout="F*")
        return fn.coord_transform(points, MT=fn.transforms.translation(offset=shifts))

    (found,) = moved().run()
    assert found.layout() == expected
    np.testing.assert_allclose(found.as_array()[0], POINTS + SHIFTS[:, None], rtol=1e-6)


def test_other_numbers_of_frames():
    with pytest.raises(ShapeError, match="M, MT and T must have the same number of frames; got 2 and 3"):
        run_dalify("coord_transform", [POINTS], M=Each([FRAMES], "F**"), T=Each([SHIFTS[:2]], "F*"))
    with pytest.raises(ShapeError, match="M has 3 frames; the input has 2"):
        run_dalify("coord_transform", [np.zeros((2, 5, 2), np.float32)], layouts="F**", M=Each([FRAMES], "F**"))
    with pytest.raises(ShapeError, match="a frame of the input must have at least two axes"):
        run_dalify("coord_transform", [POINTS], layouts="FX", M=2.0)


def test_colors(device):
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3), dtype=np.uint8)
    matrix = [0.5, 0.25, 0, 2, 1, 0.1, 0, 0, 1]
    assert_equals_dali("coord_transform", [image], layouts="HWC", device=device, tolerance=1e-4, M=matrix)
    assert_equals_dali("coord_transform", [image], layouts="HWC", device=device, M=matrix, dtype="UINT8")


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="specify either MT"):
        run_dalify("coord_transform", [POINTS], MT=[1, 2, 3, 4, 5, 6], T=1.0)
    with pytest.raises(ShapeError, match="3 numbers do not form a matrix with 2 columns"):
        run_dalify("coord_transform", [POINTS], M=[1, 2, 3])
    with pytest.raises(ShapeError, match="T must have 2 numbers or one; got 3"):
        run_dalify("coord_transform", [POINTS], T=[1, 2, 3])
    with pytest.raises(ShapeError, match="at least two axes"):
        run_dalify("coord_transform", [POINTS[0]])
