"""Conversion of fed data to batches: every accepted form, every error, and no aliasing of user memory."""

import functools

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dalify.base.errors import BatchSizeError, DalifyError, DTypeError, LayoutError, ShapeError, SourceError
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType
from dalify.data.tensors import TensorListCPU
from dalify.sources.convert import BatchConverter, to_array, to_batch
from dalify.sources.declaration import declarations

IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


class ArrayInterface:
    def __init__(self, array):
        self.kept = array
        self.__array_interface__ = array.__array_interface__


class DLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


FORMS = {
    "numpy": lambda x: x,
    "torch": torch.from_numpy,
    "torch with gradient": lambda x: torch.from_numpy(x.astype(np.float32)).requires_grad_(),
    "array interface": ArrayInterface,
    "dlpack": DLPack,
    "dlpack capsule": lambda x: torch.from_numpy(x).__dlpack__(),
    "nested list": lambda x: x.tolist(),
    "big endian": lambda x: x.astype(">i4"),
    "transposed": lambda x: np.asfortranarray(x),
    "torch transposed": lambda x: torch.from_numpy(x.T.copy()).permute(*range(x.ndim - 1, -1, -1)),
    "memoryview": lambda x: memoryview(x),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("copy", [True, False])
def test_forms_of_samples(form, copy):
    batch = to_batch([form(IMAGE), form(IMAGE + 1)], copy=copy)
    assert len(batch) == 2
    for sample, expected in zip(batch.samples, (IMAGE, IMAGE + 1), strict=True):
        assert isinstance(sample, np.ndarray)
        assert sample.flags.c_contiguous
        assert sample.dtype.isnative
        np.testing.assert_array_equal(sample, expected)


@pytest.mark.parametrize("form", [FORMS[name] for name in FORMS if name != "nested list"])
@pytest.mark.parametrize("copy", [True, False])
def test_forms_of_dense_batches(form, copy):
    batch = to_batch(form(IMAGE), copy=copy)
    assert batch.shapes() == [(4, 3)] * 2
    assert batch.dense.flags.c_contiguous
    np.testing.assert_array_equal(batch.dense, IMAGE)


@pytest.mark.parametrize(
    ("numbers", "dtype"),
    [([1, 2], np.int64), ([1.5, 2.0], np.float64), ([True, False], np.bool_), ([np.uint8(3)], np.uint8)],
)
def test_numbers_are_samples_without_dimensions(numbers, dtype):
    batch = to_batch(numbers)
    assert batch.dense.dtype == dtype
    assert batch.ndim == 0
    np.testing.assert_array_equal(batch.dense, numbers)


@given(st.data())
def test_uniform_samples_become_one_dense_array(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    dtype = data.draw(st.sampled_from([np.uint8, np.int16, np.float32, np.bool_]))
    samples = data.draw(st.lists(hnp.arrays(dtype, shape), min_size=1, max_size=5))
    batch = to_batch(samples)
    np.testing.assert_array_equal(batch.dense, np.stack(samples))
    for sample in samples:
        assert not np.shares_memory(batch.dense, sample)


def test_ragged_samples_stay_a_list_of_copies():
    samples = [np.ones((2, 3)), np.ones((4, 3)).T.copy().T]
    batch = to_batch(samples)
    assert batch.dense is None
    for sample, original in zip(batch.samples, samples, strict=True):
        assert sample.flags.c_contiguous
        assert not np.shares_memory(sample, original)
        np.testing.assert_array_equal(sample, original)


def test_no_copy_takes_the_users_memory():
    dense = np.zeros((3, 4))
    assert to_batch(dense, copy=False).dense is dense
    samples = [np.zeros(3), np.zeros(3)]
    assert to_batch(samples, copy=False).samples[1] is samples[1]
    tensor = torch.zeros(2, 3)
    assert np.shares_memory(to_batch(tensor, copy=False).dense, tensor.numpy())


def test_copies_by_default():
    for data in (np.zeros((3, 4)), torch.zeros(3, 4), Batch(np.zeros((3, 4))), TensorListCPU(Batch(np.zeros((3, 4))))):
        batch = to_batch(data)
        batch.dense[:] = 1
        np.testing.assert_array_equal(to_batch(data).dense, np.zeros((3, 4)))


def test_tensor_lists_keep_layout_and_origins():
    ragged = Batch(None, [np.zeros((2, 2)), np.zeros((3, 2))], "HW", origins=["a", "b"])
    for copy in (True, False):
        batch = to_batch(TensorListCPU(ragged), copy=copy)
        assert batch.layout == "HW"
        assert batch.origins == ["a", "b"]
        assert to_batch(ragged, copy=copy, layout="WH").layout == "WH"


def test_dali_tensor_lists():
    tensors = pytest.importorskip("nvidia.dali.tensors")
    batch = to_batch(tensors.TensorListCPU(IMAGE))
    np.testing.assert_array_equal(batch.dense, IMAGE)
    ragged = tensors.TensorListCPU([tensors.TensorCPU(np.ones(2)), tensors.TensorCPU(np.ones(3))])
    assert to_batch(ragged).shapes() == [(2,), (3,)]


def test_memory_comes_from_the_given_allocator():
    pool = np.full(1000, 7, np.uint8)

    def allocate(shape, dtype):
        return pool[: int(np.prod(shape)) * dtype.itemsize].view(dtype).reshape(shape)

    for data in (IMAGE, list(IMAGE), Batch(IMAGE)):
        assert np.shares_memory(to_batch(data, allocate=allocate).dense, pool)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (None, SourceError, "None cannot be used as data"),
        ([np.zeros(2), None], SourceError, r"(?s)None cannot be used as data.*sample 1 of the batch"),
        ([], SourceError, "without samples"),
        (np.zeros((0, 3)), SourceError, "without samples"),
        (3.5, ShapeError, "single number is not a batch"),
        (object(), SourceError, "type object cannot be used"),
        ({"a": 1}, SourceError, "type dict"),
        ("text", DTypeError, "text"),
        (b"bytes", DTypeError, "np.frombuffer"),
        ([["text"]], DTypeError, r"(?s)strings.*sample 0"),
        ([np.array([None, 1])], DTypeError, "Python objects"),
        (np.zeros((2, 2), complex), DTypeError, "complex128"),
        ([np.zeros(2, np.longdouble)], DTypeError, "are not supported"),
        ([2**70], DTypeError, "64 bits"),
        ([[1, 2], [[3], 4]], SourceError, r"(?s)different lengths.*sample 1"),
        (
            [np.zeros(2), np.zeros(2, np.uint8)],
            DTypeError,
            "sample 1 has dtype uint8, but sample 0 has .*float64",
        ),
        ([np.zeros(2), np.zeros((2, 1))], ShapeError, "sample 1 has 2 dimensions"),
        ([np.zeros(2), torch.zeros(2, device="meta")], SourceError, "sample 1 is in device memory"),
        ([torch.zeros(2, dtype=torch.bfloat16)], DTypeError, "bfloat16"),
        ([np.zeros(2, ml_dtypes.bfloat16)], DTypeError, "astype"),
        (torch.eye(2).to_sparse(), SourceError, "to_dense"),
    ],
)
def test_refusals(data, error, message):
    with pytest.raises(error, match=message) as caught:
        to_batch(data)
    assert isinstance(caught.value, DalifyError)


def test_device_tensors_stay_on_their_device():
    # The meta device simulates a device that NumPy does not support.
    tensors = [torch.zeros(2, 3, device="meta"), torch.zeros(2, 3, device="meta")]
    assert to_batch(tensors).device == "gpu"
    assert to_batch(tensors).dense.shape == (2, 2, 3)
    assert to_batch(tensors[0]).device == "gpu"
    ragged = to_batch([tensors[0], torch.zeros(4, 3, device="meta")])
    assert ragged.shapes() == [(2, 3), (4, 3)]
    assert to_batch(tensors, copy=False).samples[0] is not None
    assert to_array(tensors[0]).device.type == "meta"


def converter(dtype=None, ndim=None, layout=None):
    return BatchConverter(*declarations(None, dtype=dtype, ndim=ndim, layout=layout), batch_size=4)


def test_type_and_dimensions_equal_those_of_the_first_batch():
    convert = converter()
    assert convert(np.zeros((4, 2))).ndim == 1
    convert(np.zeros((2, 5)))
    with pytest.raises(DTypeError, match="dtype float32, but earlier batches had float64"):
        convert(np.zeros((4, 2), np.float32))
    with pytest.raises(ShapeError, match=r"2 dimensions \(2, 1\), but earlier batches had 1"):
        convert(np.zeros((4, 2, 1)))
    convert(np.zeros((4, 2)))  # usable after errors


def test_declarations_are_checked():
    with pytest.raises(DTypeError, match="dtype float64, but the declared one is uint8"):
        converter(dtype=DALIDataType.UINT8)(np.zeros((4, 2)))
    with pytest.raises(ShapeError, match=r"1 dimension \(2,\), but the declared one is 3"):
        converter(ndim=3)(np.zeros((4, 2)))
    with pytest.raises(LayoutError, match="'HWC' does not match samples with 1 dimension"):
        converter(layout="HWC")(np.zeros((4, 2)))
    with pytest.raises(BatchSizeError, match="batch has 5 samples, but the pipeline's batch_size is 4"):
        converter()(np.zeros((5, 2)))
    assert converter(dtype=DALIDataType.NO_TYPE)(np.zeros((4, 2))).dtype == DALIDataType.FLOAT64
    assert converter(layout="HWC")(np.zeros((4, 2, 2, 3))).layout == "HWC"


def test_an_error_in_the_first_batch_does_not_fix_the_type():
    convert = converter(layout="HW")
    with pytest.raises(LayoutError):
        convert(np.zeros((4, 2), np.uint8))
    assert convert(np.zeros((4, 2, 2), np.float32)).dtype == DALIDataType.FLOAT


def test_partial_objects_and_other_callables_are_not_data():
    with pytest.raises(SourceError, match="type partial"):
        to_batch(functools.partial(print))
