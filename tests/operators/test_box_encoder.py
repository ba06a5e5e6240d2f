"""fn.box_encoder beside the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


ANCHORS = np.sort(RANDOM.random((200, 2, 2)), axis=1).reshape(-1, 4).astype(np.float32)
BOXES = [np.sort(RANDOM.random((n, 2, 2)), axis=1).reshape(-1, 4).astype(np.float32) for n in (1, 7, 30, 0)]
LABELS = [np.arange(1, len(boxes) + 1, dtype=np.int32) for boxes in BOXES]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"criteria": 0.3},
        {"offset": True},
        {"offset": True, "scale": 300.0, "means": [0.1, 0.2, 0.3, 0.4], "stds": [0.1, 0.1, 0.2, 0.2]},
    ],
)
def test_boxes(arguments):
    anchors = ANCHORS.ravel().tolist()
    assert_equals_dali("box_encoder", BOXES, LABELS, tolerance=1e-5, anchors=anchors, **arguments)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="boxes of 4 numbers; got 3"):
        run_dalify("box_encoder", BOXES, LABELS, anchors=[0, 0, 1])
    with pytest.raises(ArgumentValueError, match="criteria must lie between 0 and 1"):
        run_dalify("box_encoder", BOXES, LABELS, anchors=[0, 0, 1, 1], criteria=2.0)
    with pytest.raises(ShapeError, match="1 boxes need as many labels"):
        run_dalify("box_encoder", BOXES[:1], [np.zeros(2, np.int32)], anchors=[0, 0, 1, 1])
