"""Parameters for frames, and the supported layouts."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.data.spec import Spec
from dalify.kernels.images import frames


def test_one_value_per_sample_is_repeated():
    values = np.array([[1.0], [2.0]], np.float32)
    assert frames.per_frame(values, 1, "angle").tolist() == [1, 2]
    assert frames.per_frame(values, 3, "angle").tolist() == [1, 1, 1, 2, 2, 2]


def test_one_value_per_frame_is_taken_in_order():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert frames.per_frame(values, 3, "angle").tolist() == [0, 1, 2, 3, 4, 5]
    assert frames.per_frame(list(values), 3, "angle").tolist() == [0, 1, 2, 3, 4, 5]


def test_lists_keep_their_width():
    values = np.arange(12, dtype=np.float32).reshape(1, 12)
    assert frames.per_frame(values, 2, "matrix", 6).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert frames.per_frame(values[:, :6], 2, "matrix", 6).shape == (2, 6)


def test_wrong_number_of_values():
    with pytest.raises(ShapeError, match=r"angle takes one value per sample, or one for each of the 3 frames; got 2"):
        frames.per_frame(np.zeros((1, 2), np.float32), 3, "angle")
    with pytest.raises(ShapeError, match="matrix takes one list of 6 values per sample; got 5"):
        frames.per_frame(np.zeros((1, 5), np.float32), 1, "matrix", 6)


def test_samples_with_different_numbers_of_frames():
    shapes = np.array([[2, 4, 5, 3], [1, 4, 5, 3], [3, 4, 5, 3]])
    one_each = np.array([[1], [2], [3]], np.float32)
    assert frames.per_frame_of_shapes(one_each, shapes, "FHWC", "angle").tolist() == [1, 1, 2, 3, 3, 3]
    by_frame = [np.float32([[1], [2]]), np.float32([[3]]), np.float32([[4], [5], [6]])]
    assert frames.per_frame_of_shapes(by_frame, shapes, "FHWC", "angle").tolist() == [1, 2, 3, 4, 5, 6]
    pairs = [np.float32([7, 8]), np.float32([[1, 2]]), np.float32([[1, 2], [3, 4], [5, 6]])]
    assert frames.per_frame_of_shapes(pairs, shapes, "FHWC", "mask_size", 2).tolist() == [
        [7, 8], [7, 8], [1, 2], [1, 2], [3, 4], [5, 6],
    ]  # fmt: skip
    with pytest.raises(ShapeError, match="one for each of the 3 frames; got 2") as error:
        frames.per_frame_of_shapes([*by_frame[:2], by_frame[0]], shapes, "FHWC", "angle")
    assert error.value.sample == 2


def test_layouts():
    def spec(layout: str, ndim: int) -> Spec:
        return Spec(DALIDataType.UINT8, ndim, layout)

    allowed = ("HWC", "FHWC", "DHWC")
    assert frames.visual_layout(spec("DHWC", 4), allowed) == "DHWC"
    assert frames.visual_layout(spec("", 4), allowed) == "FHWC"
    with pytest.raises(LayoutError, match="'CHW'; this operator supports HWC, FHWC, DHWC"):
        frames.visual_layout(spec("CHW", 3), allowed)
    with pytest.raises(LayoutError, match=r"2 dimensions and no layout.*\n.*fn\.expand_dims\(x, axes=\[2\]\)"):
        frames.visual_layout(spec("", 2), allowed)
    with pytest.raises(LayoutError, match=r"1 dimension and no layout.*\n.*Decode images first"):
        frames.visual_layout(spec("", 1), allowed)
    with pytest.raises(LayoutError, match=r"5 dimensions and no layout.*\n.*Change the number of dimensions"):
        frames.visual_layout(spec("", 5), allowed)


def test_flat_frames():
    x = np.zeros((2, 3, 4, 5, 1))
    assert frames.flat_frames(x, "FHWC").shape == (6, 4, 5, 1)
    assert frames.flat_frames(x[0], "HWC") is not None
