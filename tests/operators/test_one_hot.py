"""fn.one_hot compared with DALI where the samples of a batch are single numbers, like the labels of readers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.helpers.one_operator import assert_equals_dali, run_dalify

LABELS = [np.array([2], np.int32), np.array([0], np.int32), np.array([3], np.int32)]


def test_labels_of_readers_lose_their_dimension(device: str) -> None:
    result = run_dalify("one_hot", LABELS, num_classes=4, device=device)
    np.testing.assert_array_equal(np.stack(result), np.eye(4, dtype=np.float32)[[2, 0, 3]])


@pytest.mark.parametrize("shapes", [[(1,), (1,)], [(1,), (3,)], [(1, 1), (1, 2)], [(), ()], [(3,), (1,)]])
@pytest.mark.parametrize("axis", [{}, {"axis": -1}, {"axis": 0}])
def test_any_shapes(shapes: Sequence[tuple[int, ...]], axis: dict[str, int]) -> None:
    """One sample of several numbers keeps the dimensions of all; so does an axis that is named."""
    samples = [np.full(shape, 1, np.int32) for shape in shapes]
    assert_equals_dali("one_hot", samples, num_classes=4, **axis)
