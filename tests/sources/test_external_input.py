"""External sources as batches: conversion, declarations per output, and errors that name source and output."""

import os

import numpy as np
import pytest

from dalify.base.errors import BatchSizeError, DTypeError, LayoutError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.sources.external import ExternalSource
from dalify.sources.external_input import ExternalInput, per_output
from dalify.sources.parallel import ParallelSource
from dalify.sources.worker_pool import WorkerPool


def in_process(source, num_outputs=None, *, batch=True, **keywords):
    return ExternalInput(ExternalSource(source, num_outputs, batch=batch, batch_size=3), **keywords)


def test_values_per_output():
    assert per_output("HWC", 2) == ["HWC", "HWC"]
    assert per_output(["HWC"], 3, "") == ["HWC", "", ""]
    assert per_output(None, 2, "") == ["", ""]
    assert per_output(("a", "b", "c"), 2) == ["a", "b"]


def test_batches_of_all_outputs():
    def load(info):
        return np.full((4, 5, 3), info.idx_in_epoch, np.uint8), info.idx_in_epoch

    source = in_process(load, 2, batch=False, layout=["HWC"], dtype=[DALIDataType.UINT8], ndim=[3, 0])
    for start in (0, 3):
        images, labels = source.next_batch()
        assert (images.layout, labels.layout) == ("HWC", "")
        assert images.dense.shape == (3, 4, 5, 3)
        assert labels.dense.tolist() == [start, start + 1, start + 2]


def test_the_users_buffer_may_be_used_again():
    buffer = np.zeros((3, 2))
    assert not np.shares_memory(in_process(lambda: buffer).next_batch()[0].dense, buffer)
    assert np.shares_memory(in_process(lambda: buffer, no_copy=True).next_batch()[0].dense, buffer)


def test_errors_name_source_output_and_sample():
    def load(info):
        return np.zeros(2), (np.zeros((2, 2)) if info.idx_in_batch == 1 else np.zeros(2))

    with pytest.raises(ShapeError) as caught:
        in_process(load, 2, batch=False).next_batch()
    text = str(caught.value)
    assert "fn.external_source: Sample 1 has 2 dimensions" in text
    assert "sample 1 of the batch, from output 1 of " in text
    assert "test_external_input.py:" in text
    assert "def load(info):" in text


def test_mistakes_leave_the_source_usable():
    results = iter([np.zeros((4, 1)), np.zeros((3, 1)), np.zeros((3, 1), np.uint8), np.ones((2, 1))])
    source = in_process(lambda: next(results))
    with pytest.raises(BatchSizeError, match="batch of 4 samples"):
        source.next_batch()
    assert len(source.next_batch()[0]) == 3
    with pytest.raises(DTypeError, match="UINT8, the batches before had FLOAT64"):
        source.next_batch()
    assert source.next_batch()[0].dense.tolist() == [[1], [1]]
    with pytest.raises(StopIteration):
        source.next_batch()


def test_outputs_of_different_size():
    with pytest.raises(BatchSizeError, match="different numbers of samples: 3, 2"):
        in_process(lambda: (np.zeros(3), np.zeros(2)), 2).next_batch()


def test_contradicting_declarations():
    with pytest.raises(LayoutError, match="ndim is 2"):
        in_process(lambda: 0, 2, layout=["HWC", "HWC"], ndim=[3, 2])


def test_resuming_and_epochs():
    source = in_process(lambda i: np.full((3, 1), i))
    source.next_batch()
    state = source.state()
    other = in_process(lambda i: np.full((3, 1), i))
    other.restore(state)
    assert other.next_batch()[0].dense[0, 0] == 1
    other.reset()
    assert other.next_batch()[0].dense[0, 0] == 0
    other.close()
    with pytest.raises(StopIteration):
        other.next_batch()


@pytest.mark.skipif(os.name != "posix", reason="worker processes need Linux or macOS")
def test_data_of_workers_are_not_copied():
    pool = WorkerPool(2)
    try:
        parallel = ParallelSource(pool, lambda i: np.full((3, 4), i, np.float32), batch_size=3)
        source = ExternalInput(parallel, layout="X")
        source.next_batch()
        (batch,) = source.next_batch()
        assert (batch.dense == 1).all()
        assert any(np.shares_memory(batch.dense, slot.memory) for slot in parallel._slots)
        with pytest.raises(LayoutError):
            ExternalInput(parallel, layout="XYZ").next_batch()
    finally:
        pool.close()
