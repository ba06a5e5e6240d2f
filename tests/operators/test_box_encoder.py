"""fn.box_encoder compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import run_dali

RANDOM = np.random.default_rng(0)
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
def test_boxes(arguments, device):
    anchors = ANCHORS.ravel().tolist()
    assert_equals_dali("box_encoder", BOXES, LABELS, device=device, tolerance=1e-5, anchors=anchors, **arguments)


HALF = [0, 0, 0.5, 0.5]
REST = [0.6, 0.6, 1, 1]


@pytest.mark.parametrize("criteria", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize(
    ("boxes", "anchors"),
    [
        ([HALF, HALF, HALF], [HALF, REST]),  # equal boxes
        ([HALF], [REST, HALF, HALF, HALF]),  # equal anchors
        ([[0, 0.25, 0.5, 0.75], [0.5, 0.25, 1, 0.75]], [[0.25, 0.25, 0.75, 0.75]]),  # equal overlaps
        ([[0.55, 0.55, 0.58, 0.58], [0.51, 0.51, 0.52, 0.52]], [REST, HALF, HALF]),  # no overlap at all
        ([[0.2, 0.2, 0.2, 0.2]], [REST, HALF, [0, 0, 0.3, 0.3]]),  # no area
        ([[0.5, 0.5, 0.4, 0.4]], [REST, HALF]),  # corners in the wrong order
        ([[0.2, 0.2, 0.2, 0.2]], [REST, [0.2, 0.2, 0.2, 0.2]]),  # no area on either side
        ([], [REST, HALF]),
    ],
)
def test_ties_and_degenerate_boxes(boxes, anchors, criteria, device):
    given = np.float32(boxes).reshape(-1, 4)
    labels = np.arange(1, len(given) + 1, dtype=np.int32)
    assert_equals_dali(
        "box_encoder", [given], [labels], device=device, tolerance=1e-6, anchors=np.ravel(anchors).tolist(),
        criteria=criteria,
    )  # fmt: skip


def test_labels_as_a_column():
    columns = [labels[:, None] for labels in LABELS]
    assert_equals_dali("box_encoder", BOXES, columns, tolerance=1e-5, anchors=ANCHORS.ravel().tolist())


def test_offsets_of_boxes_without_extent(device):
    boxes = [np.float32([[0.2, 0.2, 0.2, 0.4]])]
    arguments = {"anchors": [*HALF, *REST], "offset": True}
    result, _ = run_dalify("box_encoder", boxes, [np.int32([1])], device=device, **arguments)
    expected, _ = run_dali("box_encoder", boxes, [np.int32([1])], **arguments)
    np.testing.assert_allclose(result[0], expected[0], rtol=1e-5)
    assert np.isneginf(result[0]).sum() == 1


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="boxes of 4 numbers; got 3"):
        run_dalify("box_encoder", BOXES, LABELS, anchors=[0, 0, 1])
    with pytest.raises(ArgumentValueError, match="criteria must be between 0 and 1"):
        run_dalify("box_encoder", BOXES, LABELS, anchors=[0, 0, 1, 1], criteria=2.0)
    with pytest.raises(ShapeError, match="got 1 box and labels of shape"):
        run_dalify("box_encoder", BOXES[:1], [np.zeros(2, np.int32)], anchors=[0, 0, 1, 1])
