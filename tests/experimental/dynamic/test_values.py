"""Tensors and batches: memory, elements, arithmetic compared with numpy, and what differs from DALI on purpose."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dalify.experimental.dynamic as ndd
from dalify import tensors, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    DTypeError,
    IndexingError,
    IntegerRangeError,
    LayoutError,
    ShapeError,
    UnknownOperatorError,
)

_OPERATORS = (operator.add, operator.sub, operator.mul, operator.lt, operator.ge, operator.eq, operator.ne)
_BITS = (*_OPERATORS, operator.and_, operator.or_, operator.xor)


@given(data=st.data(), dtype=st.sampled_from(["i4", "i8", "f4", "f8"]))
def test_expressions_equal_numpy(data, dtype):
    """Operands of one type: types, values and broadcasting are numpy's, for tensors and for each sample of a batch."""
    shapes = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    values = st.integers(-100, 100) if dtype[0] == "i" else st.floats(-100, 100, width=32)
    left, right = (data.draw(arrays.arrays(dtype, shape, elements=values)) for shape in shapes.input_shapes)
    function = data.draw(st.sampled_from(_BITS if dtype[0] == "i" else _OPERATORS))
    expected = function(left, right)
    result = function(ndd.as_tensor(left), ndd.as_tensor(right))
    assert isinstance(result, ndd.Tensor)
    assert np.asarray(result).dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    mixed = function(ndd.as_batch([left, left]), ndd.as_tensor(right))
    assert isinstance(mixed, ndd.Batch)
    for sample in mixed:
        np.testing.assert_array_equal(sample, expected)


@given(data=st.data())
def test_indices_equal_numpy(data):
    array = np.arange(60).reshape(3, 4, 5)
    index = data.draw(arrays.basic_indices(array.shape, max_dims=6, allow_newaxis=True))
    np.testing.assert_array_equal(ndd.as_tensor(array)[index], array[index])


def test_memory():
    array = np.zeros((2, 3), np.float32)
    assert np.shares_memory(np.asarray(ndd.as_tensor(array)), array)
    assert not np.shares_memory(np.asarray(ndd.tensor(array)), array)
    assert np.shares_memory(np.asarray(ndd.as_batch(array).select(1)), array)
    assert not np.shares_memory(np.asarray(ndd.batch(array).select(1)), array)
    tensor = ndd.as_tensor(array)
    assert not np.shares_memory(np.asarray(tensor.to_device("cpu", force_copy=True)), array)
    tensor.torch()[0, 0] = 5
    assert array[0, 0] == 5
    tensor.torch(copy=True)[0, 0] = 6
    assert array[0, 0] == 5
    torch.from_dlpack(tensor)[0, 0] = 7
    assert array[0, 0] == 7
    assert np.asarray(tensor, dtype=np.int16)[0, 0] == 7
    results = ndd.flip(ndd.as_tensor(array, layout="HW"))
    assert not np.shares_memory(np.asarray(results), array)


def test_samples_of_one_shape_are_contiguous_in_memory():
    batch = ndd.batch([[1, 2], [3, 4]])
    assert batch.torch(copy=False).data_ptr() == batch.torch(copy=False).data_ptr()
    with pytest.raises(ArgumentValueError, match="not contiguous"):
        ndd.Batch.broadcast([1, 2], 3).torch(copy=False)
    with pytest.raises(ShapeError, match="pad=True"):
        ndd.batch([[1], [2, 3]]).torch()


def test_choosing_samples():
    """DALI returns all of them for a list or a slice."""
    batch = ndd.batch([10, 20, 30, 40])
    assert [sample.item() for sample in batch.select([2, 0, -1])] == [30, 10, 40]
    assert [sample.item() for sample in batch.select(slice(1, 3))] == [20, 30]
    assert [sample.item() for sample in batch.tensors[::2].as_batch()] == [10, 30]
    assert [sample.item() for sample in batch.tensors.tolist()] == [10, 20, 30, 40]
    assert batch.tensors.select(1).item() == 20
    with pytest.raises(IndexingError, match="index 4"):
        batch.select(4)
    with pytest.raises(ArgumentTypeError):
        batch.select("1")
    with pytest.raises(TypeError):
        batch[0]


def test_truth_of_several_numbers_is_refused():
    """In DALI they are always True."""
    assert ndd.tensor(1) == ndd.tensor(1)
    assert not ndd.tensor([0])
    with pytest.raises(ShapeError):
        bool(ndd.tensor([1, 2]))
    with pytest.raises(ArgumentTypeError, match="select"):
        bool(ndd.batch([1, 2]) == ndd.batch([1, 2]))


def test_layouts_follow_the_axes():
    tensor = ndd.tensor(np.zeros((4, 5, 3)), layout="HWC")
    assert [tensor[0].layout, tensor[..., 0].layout, tensor[0, 0, 0].layout] == ["WC", "HW", None]
    assert (tensor + 1).layout == "HWC"
    assert ndd.as_tensor(ndd.batch([tensor, tensor])).layout == "NHWC"
    assert ndd.batch(tensor).layout == "WC"


def test_iteration_and_indices():
    tensor = ndd.tensor([[1, 2], [3, 4]])
    assert [row.torch().tolist() for row in tensor] == [[1, 2], [3, 4]]
    picked = tensor[ndd.batch([1, 0])]
    assert [row.torch().tolist() for row in picked] == [[3, 4], [1, 2]]
    for wrong in (5, (0, 0, 0)):
        with pytest.raises(IndexingError):
            _ = tensor[wrong]
    with pytest.raises(ArgumentTypeError, match=r"1\.5"):
        _ = tensor[1.5]
    with pytest.raises(ShapeError):
        iter(ndd.tensor(1))


def test_bytes_and_strings_are_data():
    assert ndd.tensor(b"abc").torch().tolist() == [97, 98, 99]
    assert ndd.batch([b"ab", "c"]).shape == [(2,), (1,)]


def test_types_make_tensors():
    tensor = ndd.float16([1, 2], layout="X")
    assert (str(tensor.dtype), tensor.layout) == ("f16", "X")
    assert ndd.float32 == np.float32
    assert ndd.float32 != "u8"
    assert len({ndd.float32, ndd.dtype("float32"), ndd.int8}) == 2
    assert ndd.type_id(int).name == "INT32"
    assert ndd.dtype(torch.bfloat16) is ndd.bfloat16
    assert ndd.dtype(torch.int64) == ndd.int64
    assert ndd.float32 != "no type"
    assert ndd.dtype(ndd.DType.Kind.signed, 16).name == "i16"  # as in DALI


def test_integers_without_a_type():
    for value, name in ((1, "i32"), (2**32 - 1, "u32"), ([1, 2**32 - 1], "u32")):
        assert str(ndd.tensor(value).dtype) == name


def test_devices():
    cpu = ndd.Device("cpu")
    assert cpu == "cpu" == ndd.device(torch.device("cpu"))
    assert cpu not in ("no device", 3)
    assert {cpu: 1}[ndd.Device.from_dlpack(np.zeros(3))] == 1
    assert ndd.Device.default_device_id("cpu") is None


def test_lists_of_pipelines_and_samples_of_batches_make_tensors():
    found = tensors.TensorListCPU(np.arange(6).reshape(2, 3))
    assert ndd.tensor(found).torch().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [sample.torch().tolist() for sample in ndd.batch(found)] == [[0, 1, 2], [3, 4, 5]]
    assert ndd.Tensor(batch=ndd.batch([[1, 2], [3, 4]]), index_in_batch=1).torch().tolist() == [3, 4]
    fixed = np.arange(3)
    fixed.flags.writeable = False
    assert torch.from_dlpack(ndd.as_tensor(fixed)).tolist() == [0, 1, 2]
    assert repr(ndd.batch([np.zeros(count) for count in range(9)])).endswith("shape=[(0,), (1,), ..., (7,), (8,)])")


def test_arrays_and_batches_make_batches():
    assert isinstance(np.ones(2) + ndd.batch([[1, 2], [3, 4]]), ndd.Batch)
    assert isinstance(ndd.batch([[1, 2]]) - np.ones(2), ndd.Batch)


def test_what_is_refused():
    for wrong, error in (
        (lambda: ndd.tensor([300], dtype=ndd.uint8), IntegerRangeError),
        (lambda: ndd.tensor([[1], [1, 2]]), ShapeError),
        (lambda: ndd.tensor(np.zeros((2, 3)), layout="HWC"), LayoutError),
        (lambda: ndd.batch([np.zeros(2), np.zeros((2, 2))]), ShapeError),
        (lambda: ndd.batch([]), BatchSizeError),
        (lambda: ndd.batch(5), ArgumentTypeError),
        (lambda: ndd.batch(np.float32(5)), ShapeError),
        (lambda: ndd.batch([ndd.tensor([1], layout="X"), ndd.tensor([1], layout="Y")]), LayoutError),
        (lambda: ndd.tensor([1, 2]).item(), ShapeError),
        (lambda: ndd.tensor([1, 2]) + "a", ArgumentTypeError),
        (lambda: ndd.tensor([1, 2]) == None, ArgumentTypeError),  # noqa: E711
        (lambda: ndd.tensor([1, 2]) + ndd.tensor([1, 2, 3]), ShapeError),
        (lambda: hash(ndd.tensor(1)), TypeError),
        (lambda: ndd.flip([ndd.tensor([1, 2]), ndd.tensor([1, 2, 3])]), ShapeError),
        (lambda: ndd.Tensor(batch=ndd.batch([1, 2])), ArgumentTypeError),
        (lambda: ndd.tensor(2**40), IntegerRangeError),
        (lambda: ndd.flip(np.zeros((2, 2, 1)), device="mixed"), ArgumentValueError),
        (lambda: ndd.device(ndd.Device("cpu"), 0), ArgumentValueError),
        (lambda: ndd.Device.type_from_dlpack(7), ArgumentValueError),
        (lambda: ndd.dtype(types.FEATURE), DTypeError),
        (lambda: ndd.math.sqrt(1, 2), TypeError),
        (lambda: ndd.file_reader, UnknownOperatorError),
    ):
        with pytest.raises(error):
            wrong()
