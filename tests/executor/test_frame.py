"""A batch contains the results of its chunks, from any memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dalify.data import Batch, BufferPool
from dalify.executor.frame import Collector

SHAPES = {"uniform": [(3, 4)] * 6, "ragged": [(3, 4), (2, 4), (3, 4), (3, 4), (1, 1), (3, 4)]}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("bounds", [[0, 6], [0, 4, 6], [0, 1, 2, 6]])
def test_lists_of_chunks(shapes, bounds):
    expected = [np.random.default_rng(n).normal(size=shape).astype(np.float32) for n, shape in enumerate(shapes)]
    scratch = [sample.copy() for sample in expected]
    collector = Collector(6, BufferPool())
    for start, stop in reversed(list(pairwise(bounds))):
        collector.store(start, Batch(None, scratch[start:stop]))
    for sample in scratch:
        sample[:] = -1  # scratch memory is reused
    result = collector.result()
    assert result is not None
    assert (result.dense is not None) == (shapes == SHAPES["uniform"])
    for sample, wanted in zip(result.samples, expected, strict=True):
        np.testing.assert_array_equal(sample, wanted)


def test_results_in_memory_of_the_collector_are_not_copied():
    collector = Collector(2, BufferPool())
    rows = collector.memory(0, 2, (3,), np.dtype(np.float32))
    assert rows is not None
    rows[:] = [[0, 1, 2], [3, 4, 5]]
    collector.store(0, Batch(None, list(rows)))
    result = collector.result()
    assert result is not None
    assert result.dense is rows
    np.testing.assert_array_equal(rows, [[0, 1, 2], [3, 4, 5]])
