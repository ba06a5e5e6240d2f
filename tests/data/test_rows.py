"""Samples one after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dalify.data import Batch, DALIDataType
from dalify.data.rows import Rows, starts_of


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.booleans())
def test_concatenated_and_separated(lengths, on_torch):
    samples = [np.full((length, 2), n, np.float32) for n, length in enumerate(lengths)]
    rows = Rows.of_samples([torch.from_numpy(sample) for sample in samples] if on_torch else samples)
    assert len(rows) == len(lengths)
    assert rows.lengths.tolist() == lengths
    assert rows.values.shape == (sum(lengths), 2)
    for one, other in zip(rows.split(), samples, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)
    np.testing.assert_array_equal(np.asarray(rows.values)[:, 0], rows.sample_of_row())
    dense = rows.dense()
    assert (dense is None) == (len(set(lengths)) > 1)
    if dense is not None:
        np.testing.assert_array_equal(np.asarray(dense), np.stack(samples))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_batch_of_rows(lengths):
    table = np.random.default_rng(0).random((sum(lengths), 2), np.float32)
    starts = starts_of(lengths)
    batch = Batch.of_rows(Rows(table, starts), "XY")
    assert batch.shapes() == [(length, 2) for length in lengths]
    assert (batch.dtype, batch.layout, batch.ndim, len(batch)) == (DALIDataType.FLOAT, "XY", 2, len(lengths))
    for number, sample in enumerate(batch.samples):
        np.testing.assert_array_equal(sample, table[starts[number] : starts[number + 1]])


@pytest.mark.parametrize("shape", [(3, 4, 2), (3, 0, 2), (1, 4), (2, 0)])
def test_dense_samples_are_not_copied(shape):
    dense = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    rows = Rows.of_dense(dense)
    assert rows.starts.tolist() == [n * shape[1] for n in range(shape[0] + 1)]
    assert dense.size == 0 or np.shares_memory(rows.values, dense)
    np.testing.assert_array_equal(rows.dense(), dense)


def test_starts():
    starts = starts_of([2, 0, 3])
    assert starts.tolist() == [0, 2, 2, 5]
    assert starts.dtype == np.int64
    assert repr(Rows(np.zeros((5, 4)), starts)) == "Rows(3 samples, (5, 4))"
