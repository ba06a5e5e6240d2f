"""fn.bb_flip compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import DTypeError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

BOXES = np.random.default_rng(0).random((5, 4)).astype(np.float32)


@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize(("horizontal", "vertical"), [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_all_boxes(device, ltrb, horizontal, vertical):
    assert_equals_dali(
        "bb_flip", [BOXES], device=device, tolerance=1e-6, ltrb=ltrb, horizontal=horizontal, vertical=vertical
    )


def test_horizontal_by_default(device):
    assert_equals_dali("bb_flip", [BOXES, BOXES[:0]], device=device, tolerance=1e-6)
    assert_equals_dali("bb_flip", [BOXES[0]], device=device, tolerance=1e-6)


def test_per_sample(device):
    assert_equals_dali(
        "bb_flip", [BOXES, BOXES[:2]], device=device, tolerance=1e-6, horizontal=Each(np.int32([0, 1])),
        vertical=Each(np.int32([1, 0])),
    )  # fmt: skip


def test_mistakes():
    with pytest.raises(DTypeError, match="boxes must be float32"):
        run_dalify("bb_flip", [BOXES.astype(np.float64)])
    with pytest.raises(ShapeError, match="four numbers"):
        run_dalify("bb_flip", [BOXES[:, :3]])
