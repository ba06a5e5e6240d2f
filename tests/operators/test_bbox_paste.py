"""fn.bbox_paste compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


BOXES = np.random.default_rng(0).random((5, 4)).astype(np.float32)


@pytest.mark.parametrize("ltrb", [False, True])
def test_boxes(ltrb):
    assert_equals_dali("bbox_paste", [BOXES], tolerance=1e-6, ltrb=ltrb, ratio=1.7)
    assert_equals_dali(
        "bbox_paste", [BOXES, BOXES[:2]], tolerance=1e-6, ltrb=ltrb, ratio=Each(np.float32([2, 1.5])), paste_x=0.25,
        paste_y=Each(np.float32([0, 1])),
    )  # fmt: skip


def test_mistakes():
    with pytest.raises(DTypeError, match="boxes must be float32"):
        run_dalify("bbox_paste", [BOXES.astype(np.float64)], ratio=2.0)
    with pytest.raises(ShapeError, match="four numbers"):
        run_dalify("bbox_paste", [BOXES[:, :3]], ratio=2.0)
