"""The Paddle plugin with the real Paddle: memory, element types, sequences, ``feed_ndarray``, a training."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.data import TensorCPU
from tests.helpers.frameworks import addresses_of_outputs, bfloat16_ones, imported

paddle = imported("paddle")
from dalify.plugin import paddle as plugin  # noqa: E402


@pipeline_def(batch_size=2, num_threads=1)
def fed(values: Any) -> Any:
    return fn.copy(fn.external_source(source=lambda: values))


def test_tensors_have_the_memory_of_the_pipeline() -> None:
    pipe = fed(np.ones((2, 64, 64, 3), np.float32))
    addresses = addresses_of_outputs(pipe)
    (batch,) = next(plugin.DALIGenericIterator(pipe, ["x"]))
    assert isinstance(batch["x"], paddle.Tensor)
    assert batch["x"].data_ptr() == addresses[0]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_types_that_paddle_lacks(dtype: Any) -> None:
    loader = plugin.DALIGenericIterator(fed(np.ones((2, 3), dtype)), ["masks"])
    with pytest.raises(DTypeError, match=r"Paddle does not support tensors of uint") as caught:
        next(loader)
    assert caught.value.__notes__ == ["This was the output 'masks' of the pipeline."]


def test_bfloat16() -> None:
    batch = next(plugin.DALIGenericIterator(bfloat16_ones(), ["x"]))[0]["x"]
    assert batch.dtype == paddle.bfloat16
    assert float(batch.astype("float32").sum()) == 24


def test_sequences() -> None:
    samples = [np.arange(rows * 2, dtype=np.int64).reshape(rows, 2) for rows in (3, 0)]
    (batch,) = next(plugin.DALIGenericIterator(fed(samples), [("words", 1)]))
    assert np.array(batch["words"]).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert batch["words"].lod() == [[0, 3, 3]]
    nested = [np.arange(size * 2, dtype=np.float32).reshape(size, 2) for size in (2, 1)]
    (batch,) = next(plugin.DALIGenericIterator(fed(nested), [("words", 2)]))
    assert np.array(batch["words"]).tolist() == [0, 1, 2, 3, 0, 1]
    assert batch["words"].lod() == [[0, 2, 3], [0, 2, 4, 6]]


def test_sequences_that_differ_elsewhere() -> None:
    samples = [np.zeros((2, 2), np.float32), np.zeros((2, 3), np.float32)]
    with pytest.raises(ShapeError, match="'words' are not sequences with 1 levels"):
        next(plugin.DALIGenericIterator(fed(samples), [("words", 1)]))


@pytest.mark.parametrize("entry", [("x", -1), ("x", 1, 2), ("x", "y")])
def test_entries_of_output_map(entry: Any) -> None:
    with pytest.raises(ArgumentValueError, match="a name, or a name and a level of detail"):
        plugin.DALIGenericIterator(fed(np.zeros((2, 1), np.float32)), [entry])


def test_helpers_of_sequences() -> None:
    nested = [[[1, 2], [3]], [[4, 5, 6]]]
    assert plugin.recursive_length(nested, 1) == [[2, 1]]
    assert plugin.recursive_length(nested, 2) == [[2, 1], [2, 1, 3]]
    tensor = paddle.base.core.DenseTensor()
    tensor.set(np.arange(6, dtype=np.int64), paddle.CPUPlace())
    tensor.set_recursive_sequence_lengths(plugin.recursive_length(nested, 2))
    clipped = plugin.lod_tensor_clip(tensor, 1)
    assert np.array(clipped).tolist() == [0, 1, 2]
    assert clipped.lod() == [[0, 2], [0, 2, 3]]


def test_feed_ndarray() -> None:
    source = TensorCPU(np.arange(6, dtype=np.float32).reshape(2, 3))
    target = paddle.zeros([2, 3], "float32")
    assert plugin.feed_ndarray(source, target) is target
    np.testing.assert_array_equal(target.numpy(), np.asarray(source))
    memory = np.zeros((2, 3), np.float32)
    plugin.feed_ndarray(source, ctypes.c_void_p(memory.ctypes.data))
    np.testing.assert_array_equal(memory, np.asarray(source))
    plugin.feed_ndarray(fed(np.ones((2, 3), np.float32)).run()[0], memory.ctypes.data)
    assert memory.sum() == 6
    with pytest.raises(ShapeError, match=r"\(2, 3\) cannot be copied into \(3, 2\)"):
        plugin.feed_ndarray(source, paddle.zeros([3, 2], "float32"))
    with pytest.raises(DTypeError, match="float32 cannot be copied"):
        plugin.feed_ndarray(source, paddle.zeros([2, 3], "int32"))
    assert plugin.to_paddle_type(source) == paddle.float32


def test_batches_train_a_model() -> None:
    @pipeline_def(batch_size=16, num_threads=2, seed=2)
    def sums() -> Any:
        x = fn.random.uniform(range=(-1, 1), shape=(3,))
        return x, fn.reductions.sum(x, keep_dims=True)

    paddle.seed(1)
    layer = paddle.nn.Linear(3, 1)
    optimizer = paddle.optimizer.SGD(0.3, parameters=layer.parameters())
    losses = []
    for (batch,) in plugin.DALIClassificationIterator(sums(), size=16 * 100):
        loss = ((layer(batch["data"]) - batch["label"]) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert len(losses) == 100
    assert losses[-1] < 1e-3 < losses[0]
