"""Tensors and tensor lists: every method compared with the real DALI's, exchange without copies, and lifetimes."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import dalify
from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentTypeError, DeviceError, DTypeError, IndexingError, LayoutError, ShapeError
from dalify.data import Batch, device_tensor, exchange
from dalify.data.pool import BufferPool
from dalify.sources.convert import to_array
from dalify.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from tests.helpers.cuda_devices import CudaTensor, Stream, devices

CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
RAGGED = [np.ones((2, 3), np.uint8), np.full((1, 3), 2, np.uint8)]

# T: the module of tensors, TL: a list of RAGGED made of tensors; evaluated here and in DALI.
EXPRESSIONS = [
    "T.TensorCPU(A, 'HWC').shape()",
    "T.TensorCPU(A, 'HWC').layout()",
    "T.TensorCPU(A).layout()",
    "T.TensorCPU(A).ndim()",
    "T.TensorCPU(A).dtype",
    "T.TensorCPU(A).source_info()",
    "T.TensorCPU(A, 'HWC').get_property('layout')",
    "T.TensorCPU(A).get_property('source_info')",
    "T.TensorCPU(A).get_property('nothing')",
    "T.TensorCPU(A).as_cpu().shape()",
    "T.TensorCPU(A).data_ptr() == A.ctypes.data",
    "np.array(T.TensorCPU(A)).tolist()",
    "np.from_dlpack(T.TensorCPU(A)).tolist()",
    "tuple(map(int, T.TensorCPU(A).__dlpack_device__()))",
    "T.TensorCPU(A).__array_interface__['data'][0] == A.ctypes.data",
    "after(T.TensorCPU(A, 'HWC'), 'set_layout', 'ABC').layout()",
    "after(T.TensorCPU(A), 'reinterpret', types.FLOAT).dtype",
    "T.TensorCPU(np.ones((1, 3, 1)), 'HWC').squeeze()",
    "T.TensorCPU(A, 'HWC').squeeze()",
    "after(T.TensorCPU(np.ones((1, 3, 1)), 'HWC'), 'squeeze').shape()",
    "after(T.TensorCPU(np.ones((1, 3, 1)), 'HWC'), 'squeeze').layout()",
    "after(T.TensorCPU(np.ones((1, 3, 1)), 'HWC'), 'squeeze', 0).shape()",
    "after(T.TensorCPU(np.ones((1, 3, 1)), 'HWC'), 'squeeze', 1).shape()",
    "after(T.TensorCPU(np.ones((1, 3, 1)), 'HWC'), 'squeeze', -1).layout()",
    "len(T.TensorListCPU(A))",
    "T.TensorListCPU(A, 'HW').shape()",
    "T.TensorListCPU(A, 'HW').layout()",
    "T.TensorListCPU(A).ndim()",
    "T.TensorListCPU(A).dtype",
    "T.TensorListCPU(A).as_array().tolist()",
    "np.array(T.TensorListCPU(A)).tolist()",
    "T.TensorListCPU(A, 'HW').as_tensor().shape()",
    "T.TensorListCPU(A, 'HW').as_tensor().layout()",
    "T.TensorListCPU(A).as_tensor().layout()",
    "T.TensorListCPU(A).as_reshaped_tensor([4, 6]).shape()",
    "T.TensorListCPU(A).as_reshaped_tensor([4, 6]).layout()",
    "T.TensorListCPU(A, 'HW').as_reshaped_tensor([24]).layout()",
    "T.TensorListCPU(A, 'HW').as_reshaped_tensor([2, 3, 4]).layout()",
    "T.TensorListCPU(A, 'HW').as_reshaped_tensor([1, 4, 6]).layout()",
    "T.TensorListCPU(A).as_reshaped_tensor([24]).layout()",
    "T.TensorCPU(A).get_property('layout')",
    "T.TensorListCPU(np.arange(3)).as_tensor().layout()",
    "T.TensorListCPU(A).as_cpu().shape()",
    "T.TensorListCPU(A).at(1).tolist()",
    "T.TensorListCPU(A)[-1].shape()",
    "np.array(T.TensorListCPU(A)[1]).tolist()",
    "[t.shape() for t in T.TensorListCPU(A)]",
    "T.TensorListCPU(A).is_dense_tensor()",
    "T.TensorListCPU(A).data_ptr() == A.ctypes.data",
    "after(T.TensorListCPU(A), 'set_layout', 'XY').layout()",
    "len(after(T.TensorListCPU(A), 'reset'))",
    "TL().is_dense_tensor()",
    "distances(TL())",
    "distances(T.TensorListCPU(TL()))",
    "distances(T.TensorListCPU([T.TensorCPU(x) for x in A]))",
    "distances(T.TensorListCPU([T.TensorCPU(x) for x in (A[:0], A, A[:1])]))",
    "TL().shape()",
    "TL('HW').layout()",
    "[x.tolist() for x in map(TL().at, range(2))]",
    "T.TensorListCPU([T.TensorCPU(x, 'HW') for x in R]).layout()",
    "T.TensorListCPU(np.arange(3)).shape()",
    "T.TensorListCPU(np.arange(3))[1].shape()",
    "T.TensorListCPU(np.arange(3)).at(1).shape",
    "T.TensorListCPU([]).shape()",
    "T.TensorListCPU([]).dtype",
    "T.TensorListCPU.broadcast(A, 3).shape()",
    "T.TensorListCPU.broadcast(T.TensorCPU(A, 'HWC'), 3).layout()",
    "T.TensorListCPU.from_dlpack_list([A, A]).shape()",
    "T.TensorListCPU.from_dlpack_list([A, A], 'HWC').layout()",
    "T.TensorListCPU(T.TensorListCPU(A, 'HW')).layout()",
    "T.TensorListCPU(T.TensorListCPU(A, 'HW'), 'AB').layout()",
    "T.TensorListCPU(TL('HW')).shape()",
    "changed_later(lambda a: T.TensorListCPU([T.TensorCPU(a)]))",
    "changed_later(lambda a: T.TensorListCPU([T.TensorCPU(a)], contiguous=False))",
    "changed_later(lambda a: T.TensorListCPU(a))",
    "bytes(T.TensorCPU(A)) == A.tobytes()",
]
FAILING = [
    "T.TensorCPU(A, 'HW')",
    "T.TensorCPU(A).set_layout('A')",
    "T.TensorCPU(A).reinterpret(types.UINT8)",
    "T.TensorCPU(A).squeeze(7)",
    "len(T.TensorCPU(A))",
    "T.TensorCPU(A)[0]",
    "T.TensorListCPU(A, 'HWC')",
    "T.TensorListCPU(A)[2]",
    "T.TensorListCPU(A)[-3]",
    "T.TensorListCPU(A).at(2)",
    "T.TensorListCPU(A).as_reshaped_tensor([5])",
    "T.TensorListCPU(np.float32(3))",
    "T.TensorListCPU([T.TensorCPU(A), T.TensorCPU(A.astype(np.uint8))])",
    "T.TensorListCPU.from_dlpack_list([A, A.astype(np.uint8)])",
    "TL().as_array()",
    "TL().as_tensor()",
]


def evaluated(expression: str, module: Any, type_module: Any) -> Any:
    def after(value: Any, method: str, *arguments: Any) -> Any:
        getattr(value, method)(*arguments)
        return value

    def ragged_list(layout: str = "") -> Any:
        return module.TensorListCPU([module.TensorCPU(sample) for sample in RAGGED], layout)

    def changed_later(make: Callable[[Any], Any]) -> Any:
        array = CUBE.copy()
        tensors = make(array)
        array.fill(7)
        return tensors.as_array().tolist()

    def distances(tensors: Any) -> Any:
        """Of the samples to the first one, and the elements from there on."""
        size = sum(int(np.prod(shape)) for shape in tensors.shape())
        start = tensors.data_ptr()
        memory = (np.ctypeslib.as_ctypes_type(tensors.at(0).dtype) * size).from_address(start)
        return [sample.data_ptr() - start for sample in tensors if all(sample.shape())], list(memory)

    names = {"T": module, "TL": ragged_list, "A": CUBE, "R": RAGGED, "np": np, "types": type_module, "after": after}
    return eval(expression, {**names, "changed_later": changed_later, "distances": distances})


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_methods_equal_those_of_dali(expression: str, oracle: Any) -> None:
    expected = evaluated(expression, oracle.tensors, oracle.types)
    result = evaluated(expression, dalify.tensors, types)
    if hasattr(expected, "name") and hasattr(result, "name"):  # an element type
        expected, result = expected.name, result.name
    assert result == expected


@pytest.mark.parametrize("expression", FAILING)
def test_mistakes_have_the_types_of_dali(expression: str, oracle: Any) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- that is what is to be found out
        evaluated(expression, oracle.tensors, oracle.types)
    with pytest.raises(theirs.type):
        evaluated(expression, dalify.tensors, types)


def test_messages() -> None:
    with pytest.raises(LayoutError, match="the layout 'A' has 1 letter for 3 dimensions"):
        TensorCPU(CUBE, "A")
    with pytest.raises(IndexingError, match="sample 2 is out of range for a batch of 2"):
        TensorListCPU(CUBE).at(2)
    for wrong in (slice(1), "a", 1.0):
        with pytest.raises(ArgumentTypeError, match=r"indexed by the number of a sample; got .*\n.*as_array"):
            TensorListCPU(CUBE)[wrong]  # type: ignore[index]
    with pytest.raises(IndexingError, match="dimension 0 is out of range"):
        TensorCPU(np.float32(1)).squeeze(0)
    with pytest.raises(ShapeError, match=r"(?s)sample 0 is \(2, 3\), sample 1 is \(1, 3\).*fn\.resize"):
        TensorListCPU(RAGGED).as_array()
    with pytest.raises(ShapeError, match=r"the list has 24 elements; the shape \(5,\) requires 5"):
        TensorListCPU(CUBE).as_reshaped_tensor([5])
    with pytest.raises(ShapeError, match="must have 3 dimensions like sample 0; sample 1 has 2"):
        TensorListCPU([CUBE, CUBE[0]])
    with pytest.raises(DTypeError, match="arrays with elements of type complex64"):
        TensorCPU(np.zeros(2, np.complex64))
    with pytest.raises(DTypeError, match="elements of 4 bytes"):
        TensorCPU(CUBE).reinterpret(types.FLOAT64)


def test_strings() -> None:
    assert repr(TensorCPU(CUBE, "HWC")) == (
        'TensorCPU(\n    dtype=DALIDataType.INT32,\n    layout="HWC",\n    device="cpu",\n    shape=(2, 3, 4))'
    )
    assert repr(TensorListCPU(CUBE)) == (
        "TensorListCPU(\n    dtype=DALIDataType.INT32,\n    "
        'device="cpu",\n    num_samples=2,\n    shape=[(3, 4), (3, 4)])'
    )
    assert "[0 1 2]" in str(TensorCPU(np.arange(3)))
    assert "[[1 1 1]" in str(TensorListCPU(RAGGED))
    assert "[0 1 2]" in str(TensorListGPU([torch.arange(3)]))


# -- exchange --------------------------------------------------------------------------------------------------------


def address(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


VIEWS: dict[str, Callable[[TensorListCPU], Any]] = {
    "as_array": lambda batch: batch.as_array(),
    "numpy.asarray": lambda batch: np.asarray(batch),
    "as_tensor": lambda batch: np.asarray(batch.as_tensor()),
    "as_reshaped_tensor": lambda batch: np.asarray(batch.as_reshaped_tensor([2, 6000])),
    "numpy.from_dlpack": lambda batch: np.from_dlpack(batch.as_tensor()),
    "torch.from_dlpack": lambda batch: torch.from_dlpack(batch.as_tensor()),
    "torch.as_tensor": lambda batch: torch.as_tensor(batch.as_array()),
    "at": lambda batch: batch.at(0),
    "item, numpy": lambda batch: np.asarray(batch[0]),
    "item, torch": lambda batch: torch.from_dlpack(batch[0]),
    "iteration": lambda batch: np.asarray(next(iter(batch))),
    "as_cpu": lambda batch: batch.as_cpu().as_array(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_the_memory_and_keep_it(name: str) -> None:
    def source(iteration: int) -> np.ndarray:
        return np.full((2, 100, 60), iteration, np.int32)

    pipe = pipeline_def(batch_size=2, num_threads=1, device_id=None)(lambda: fn.external_source(source) + 0)()
    (batch,) = pipe.run()
    start = batch.data_ptr()
    view = VIEWS[name](batch)
    assert address(view) == start
    del batch
    gc.collect()
    for _ in range(20):
        pipe.run()
    del pipe
    gc.collect()
    assert bool((view == 0).all())


def test_unreferenced_memory_is_reused() -> None:
    pipe = pipeline_def(batch_size=2, num_threads=1, device_id=None)(
        lambda: fn.external_source(lambda iteration: np.full((2, 100, 60), iteration)) + 1
    )()
    addresses = {pipe.run()[0].data_ptr() for _ in range(30)}
    assert len(addresses) < 10


def test_constants_can_be_given_away() -> None:
    pipe = pipeline_def(batch_size=3, num_threads=1, device_id=None)(
        lambda: (np.float32(2), types.Constant(np.int32([1, 2])), fn.constant(idata=[3, 4]))
    )()
    number, vector, made = pipe.run()
    assert torch.from_dlpack(number.as_tensor()).tolist() == [2, 2, 2]
    assert vector.as_array().tolist() == [[1, 2]] * 3
    assert torch.from_dlpack(made[1]).tolist() == [3, 4]
    vector.as_array()[0] = 9  # a user may write into what he got …
    assert pipe.run()[1].as_array().tolist() == [[1, 2]] * 3  # … without changing what comes


def test_copies_to_an_address() -> None:
    for given in (TensorCPU(CUBE), TensorListCPU(CUBE), TensorListCPU(list(CUBE)), TensorCPU(CUBE[:, ::2])):
        wanted = np.asarray(given)
        for pointer in (lambda out: ctypes.c_void_p(out.ctypes.data), lambda out: out.ctypes.data):
            target = np.zeros_like(wanted, order="C")
            given.copy_to_external(pointer(target))
            assert (target == wanted).all()
        with pytest.raises(TypeError, match=r"array\.ctypes\.data"):
            given.copy_to_external(target)


@pytest.mark.usefixtures("gpu")
def test_copies_to_an_address_on_the_device() -> None:
    """DALI copies data of a device to memory of this device; the host's is supported, too."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = torch.from_numpy(CUBE).to(device)
    for given in (TensorGPU(data), TensorListGPU(data), TensorListGPU([*data]), TensorGPU(data[:, ::2])):
        wanted = np.asarray(given.as_cpu())
        target = torch.zeros(wanted.shape, dtype=torch.int32, device=device)
        given.copy_to_external(ctypes.c_void_p(target.data_ptr()))
        assert target.tolist() == wanted.tolist()
        on_host = np.zeros_like(wanted, order="C")
        given.copy_to_external(on_host.ctypes.data)
        assert (on_host == wanted).all()


def test_copies_to_an_address_wait_for_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    target = np.zeros_like(CUBE)
    copied: list[tuple[int, int]] = []

    def memory_at(address: int, size_bytes: int, device: torch.device) -> CudaTensor:
        copied.append((address, size_bytes))
        assert device.index is not None
        return CudaTensor.of(torch.from_numpy(target.reshape(-1).view(np.uint8)), device.index)

    monkeypatch.setattr(exchange, "_memory_at", memory_at)
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda number, device: Stream(device, number), raising=False)
    with devices(2) as found:
        given = TensorGPU(CudaTensor.of(torch.from_numpy(CUBE), 1))
        given.copy_to_external(ctypes.c_void_p(target.ctypes.data), ctypes.c_void_p(7))
        ((_, number, stream),) = {call for call in found.calls if call[0] == "copy_"}
        assert (number, [other.cuda_stream for other in stream.waits]) == (1, [7])
    assert copied == [(target.ctypes.data, target.nbytes)]
    assert target.tolist() == CUBE.tolist()


def test_numpys_protocol() -> None:
    batch = TensorListCPU(CUBE)
    assert np.asarray(batch, np.float64).dtype == np.float64
    assert np.array(batch).ctypes.data != CUBE.ctypes.data
    assert np.asarray(batch).ctypes.data == CUBE.ctypes.data
    with pytest.raises(ValueError, match="without a copy"):
        batch.__array__(np.float64, copy=False)
    assert np.stack(list(batch)).tolist() == CUBE.tolist()
    fixed = CUBE.copy()
    fixed.flags.writeable = False
    for array in (CUBE, fixed, CUBE[:, ::2], CUBE[:0], CUBE.astype(bool), CUBE.astype(np.float16)):
        found = np.asarray(TensorCPU(array))  # keeps the memory: nothing else refers to the tensor
        assert found.__array_interface__ == array.__array_interface__
        assert found.tolist() == array.tolist()


def test_tensors_of_objects_of_other_packages() -> None:
    given = torch.arange(6).reshape(2, 3)
    for tensor in (TensorCPU(given), TensorCPU(TensorCPU(given)), TensorListCPU(given).as_tensor()):
        assert tensor.data_ptr() == given.data_ptr()
    assert TensorCPU(memoryview(b"abc")).shape() == [3]
    assert TensorCPU(TensorCPU(CUBE, "HWC")).layout() == "HWC"
    assert TensorListCPU.from_dlpack_list([given, given + 1])[1].shape() == [2, 3]
    assert TensorListCPU([TensorCPU(given, origin="a"), TensorCPU(given)])[0].source_info() == "a"


def test_a_broadcast_list() -> None:
    batch = TensorListCPU.broadcast(TensorCPU(CUBE, "HWC"), 3)
    assert len(batch) == 3
    assert batch.at(1).ctypes.data == batch.at(2).ctypes.data == CUBE.ctypes.data
    assert batch.as_array().tolist() == [CUBE.tolist()] * 3
    assert batch.as_array().flags.c_contiguous


def test_pickles_and_copies() -> None:
    batch = TensorListCPU(CUBE, "HW")
    for again in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert again.layout() == "HW"
        assert again.as_array().tolist() == CUBE.tolist()
        assert not np.shares_memory(again.as_array(), CUBE)
    ragged = pickle.loads(pickle.dumps(TensorListCPU(RAGGED)))
    assert ragged.shape() == [(2, 3), (1, 3)]
    tensor = pickle.loads(pickle.dumps(TensorCPU(CUBE, "HWC", origin="file")))
    assert (tensor.layout(), tensor.source_info()) == ("HWC", "file")


def test_origins_of_a_reader(photo_folder: Any) -> None:
    def graph() -> Any:
        data, _ = fn.readers.file(file_root=str(photo_folder))
        return data, fn.decoders.image(data)

    encoded, decoded = pipeline_def(batch_size=2, num_threads=1, device_id=None)(graph)().run()
    for batch in (encoded, decoded):
        name = str(Path("cat", "001.jpg"))
        assert pickle.loads(pickle.dumps(batch[1])).source_info() == name
        assert b"000.jpg" not in pickle.dumps(batch[1])  # the other sample
        assert copy.deepcopy(batch[1]).source_info() == TensorCPU(batch[1]).source_info() == name
        assert batch[1].source_info() == name
        assert batch[1].get_property("source_info") == batch[1].source_info()


# -- on the device, emulated -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("emulated_gpu")
def test_lists_on_the_device() -> None:
    batch = TensorListCPU(CUBE, "HW")._as_gpu()
    assert isinstance(batch, TensorListGPU)
    assert (len(batch), batch.layout(), batch.ndim(), batch.dtype) == (2, "HW", 2, types.INT32)
    assert batch.shape() == [(3, 4), (3, 4)]
    assert batch.as_tensor().layout() == "NHW"
    assert batch.as_tensor().device_id() == batch.device_id() == 0
    assert batch.as_reshaped_tensor([24]).shape() == [24]
    assert isinstance(batch[0], TensorGPU)
    assert isinstance(batch.at(1), TensorGPU)
    assert [tensor.shape() for tensor in batch] == [[3, 4], [3, 4]]
    assert batch.as_cpu().as_array().tolist() == CUBE.tolist()
    assert batch.as_cpu().data_ptr() != CUBE.ctypes.data
    assert batch.stream is None
    assert batch[0].stream is None
    shared = torch.from_dlpack(batch.as_tensor())
    assert shared.data_ptr() == batch.data_ptr()
    target = np.zeros_like(CUBE)
    batch.copy_to_external(ctypes.c_void_p(target.ctypes.data))
    assert target.tolist() == CUBE.tolist()
    ragged = TensorListGPU([torch.ones(2), torch.ones(3)], "X")
    assert not ragged.is_dense_tensor()
    assert ragged.as_cpu().shape() == [(2,), (3,)]
    assert TensorListGPU.broadcast(batch[0], 3).as_tensor().shape() == [3, 3, 4]
    assert TensorListGPU.from_dlpack_list(list(batch)).shape() == [(3, 4), (3, 4)]
    tensor = TensorCPU(CUBE, "HWC")._as_gpu()
    assert (tensor.layout(), tensor.shape(), tensor.as_cpu().layout()) == ("HWC", [2, 3, 4], "HWC")
    tensor.reinterpret(types.FLOAT)
    assert tensor.dtype == types.FLOAT
    with pytest.raises(DeviceError, match=r"this tensor is on the GPU(?s:.*)as_cpu"):
        TensorCPU(tensor)
    with pytest.raises(DTypeError, match="must have the same element type"):
        TensorListGPU([torch.ones(2), torch.ones(2, dtype=torch.int32)])


def test_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_DEVICE", raising=False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(DeviceError, match=r"torch finds no accelerator(?s:.*)DALIFY_DEVICE=cpu"):
        TensorListCPU(CUBE)._as_gpu()


def test_a_batch_of_the_executor_is_taken_as_it_is() -> None:
    dense = BufferPool().empty((2, 3), np.dtype(np.float32))
    batch = Batch(dense, None, "X")
    assert TensorListCPU(batch).as_array() is dense


def test_a_released_list_is_an_empty_tensor_of_its_type() -> None:
    tensors = TensorListCPU(np.zeros((2, 3, 4), np.float32), "HW")
    tensors.reset()
    assert tensors.as_array().dtype == np.float32
    assert tensors.as_tensor().shape() == [0]


def test_nested_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="nested lists"):
        TensorCPU([[1, 2], [3]])


def test_data_of_other_packages_on_a_device_are_refused_in_main_memory() -> None:
    class Elsewhere:
        __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

    with pytest.raises(DeviceError, match="Elsewhere is on the GPU"):
        TensorCPU(Elsewhere())


class OnDevice:
    """An array of another package on a device, with both protocols."""

    __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

    def __init__(self, tensor: torch.Tensor, *, has_type: bool) -> None:
        self._tensor, self._has_type = tensor, has_type

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        if not self._has_type:
            raise BufferError("DLPack has no such type")
        return self._tensor.__dlpack__(**options)


@pytest.mark.parametrize("has_type", [True, False])
def test_arrays_on_devices_are_read_by_dlpack_which_waits_for_their_stream(
    has_type: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = torch.arange(6).reshape(2, 3)
    value = OnDevice(data, has_type=has_type)
    monkeypatch.setattr(exchange.torch, "as_tensor", lambda given, device: (given, device))
    for found in (exchange.cuda_tensor(value), device_tensor(value), to_array(value)):
        if has_type:
            assert found.data_ptr() == data.data_ptr()
        else:
            assert found == (value, "cuda")
