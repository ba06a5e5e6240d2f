"""The MXNet plugin with a substitute for ``DataBatch``: the package is retired, and does not run with NumPy 2."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.data import TensorCPU
from tests.helpers.frameworks import standing_in_for_mxnet


@pytest.fixture(scope="module")
def plugin() -> Iterator[ModuleType]:
    with standing_in_for_mxnet():
        yield importlib.import_module("dalify.plugin.mxnet")


@pipeline_def(batch_size=4, num_threads=1)
def images_and_labels() -> Any:
    def source(info: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.full((3, 2, 2), info.idx_in_epoch, np.float32), np.array([info.idx_in_epoch], np.int32)

    return tuple(fn.external_source(source=source, batch=False, num_outputs=2))


def test_data_batches(plugin: ModuleType) -> None:
    kind = plugin.DALIGenericIterator
    loader = kind(images_and_labels(), [("x", kind.DATA_TAG), ("y", kind.LABEL_TAG)], size=10, data_layout="NCHW")
    batches = [batch for (batch,) in loader]
    assert [batch.label[0].asnumpy().tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert batches[0].data[0].shape == (4, 3, 2, 2)
    assert batches[0].pad == 0
    assert [(each.name, each.shape, each.layout) for each in loader.provide_data] == [("x", (4, 3, 2, 2), "NCHW")]
    assert [(each.name, each.shape) for each in loader.provide_label] == [("y", (4,))]


def test_labels_as_they_are(plugin: ModuleType) -> None:
    loader = plugin.DALIClassificationIterator(images_and_labels(), 8, label_name="target", squeeze_labels=False)
    assert loader.provide_data == []
    (batch,) = next(loader)
    assert batch.label[0].shape == (4, 1)
    assert [each.name for each in loader.provide_data + loader.provide_label] == ["data", "target"]


def test_the_last_batch_is_cut(plugin: ModuleType) -> None:
    loader = plugin.DALIClassificationIterator(images_and_labels(), 6, last_batch_policy=plugin.LastBatchPolicy.PARTIAL)
    assert [batch.label[0].asnumpy().tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5]]


def test_gluon(plugin: ModuleType) -> None:
    kind = plugin.DALIGluonIterator
    ((images, labels),) = next(kind(images_and_labels(), output_types=[kind.DENSE_TAG, kind.SPARSE_TAG]))
    assert images.shape == (4, 3, 2, 2)
    assert [label.asnumpy().tolist() for label in labels] == [[0], [1], [2], [3]]
    ((images, labels),) = next(kind([images_and_labels()]))
    assert labels.shape == (4, 1)


def test_mistakes(plugin: ModuleType) -> None:
    with pytest.raises(ArgumentValueError, match="must be a name and a tag; got 'x'"):
        plugin.DALIGenericIterator(images_and_labels(), ["x", "y"])
    with pytest.raises(ArgumentValueError, match="must be one of data, label; got 'labels'"):
        plugin.DALIGenericIterator(images_and_labels(), [("x", "data"), ("y", "labels")])
    with pytest.raises(ArgumentValueError, match="output_types must be one of dense, sparse"):
        plugin.DALIGluonIterator(images_and_labels(), output_types=["dense", "list"])


def test_feed_ndarray(plugin: ModuleType) -> None:
    target = plugin.tensors.mxnet.nd.from_numpy(np.zeros((2, 3), np.float32))
    assert plugin.feed_ndarray(TensorCPU(np.ones((2, 3), np.float32)), target) is target
    assert target.asnumpy().sum() == 6
    with pytest.raises(ShapeError, match="cannot be copied"):
        plugin.feed_ndarray(TensorCPU(np.ones((3, 3), np.float32)), target)
