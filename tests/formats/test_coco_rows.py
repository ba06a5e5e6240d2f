"""Boxes and labels of some images, compared with slices of NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalify.data import Batch
from dalify.formats.annotations.coco_rows import boxes_and_labels


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.booleans(), st.data())
def test_boxes_and_labels(counts: list[int], is_writable: bool, data: st.DataObject) -> None:
    random = np.random.default_rng(0)
    boxes = random.random((sum(counts), 4), np.float32)
    labels = random.integers(0, 90, sum(counts), np.int32)
    boxes.flags.writeable = labels.flags.writeable = is_writable
    firsts = np.array([0, *np.cumsum(counts)], np.int64)
    numbers = np.array(data.draw(st.lists(st.integers(0, len(counts) - 1), min_size=1, max_size=8)))
    for table, rows in zip((boxes, labels), boxes_and_labels(boxes, labels, firsts, numbers), strict=True):
        expected = [table[firsts[number] : firsts[number + 1]] for number in numbers]
        for found in (rows.split(), Batch.of_rows(rows).samples):
            assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
            assert [each.shape for each in found] == [each.shape for each in expected]
        assert rows.values.dtype == table.dtype
        assert rows.values.flags.writeable
        assert not np.shares_memory(rows.values, table)
