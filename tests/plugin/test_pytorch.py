"""The PyTorch iterators as users see them: tensors, epochs, resets, mistakes."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dalify import fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    NotAPipelineError,
    OutputMapError,
    PipelineStateError,
    ShapeError,
    TargetShapeError,
    TargetTypeError,
)
from dalify.pipeline import Pipeline
from dalify.plugin import base_iterator
from dalify.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    feed_ndarray,
    to_torch_type,
)
from dalify.tensors import TensorListCPU


@pytest.fixture(scope="module")
def files(numbered_files: list[str]) -> list[str]:
    return numbered_files[:10]


def numbers(files: list[str], batch_size: int = 3, **reader: Any) -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=2, seed=3)
    def read() -> Any:
        return tuple(fn.readers.file(files=files, name="Reader", **reader))

    return read()


def from_source(source: Any, outputs: int = 1, **options: Any) -> Pipeline:
    @pipeline_def(**{"batch_size": 2, "num_threads": 2, **options})
    def given() -> Any:
        return tuple(fn.external_source(source, num_outputs=outputs, cycle="raise" if not callable(source) else None))

    return given()


def labels(batch: Any) -> list[int]:
    return batch[0]["label"].flatten().tolist()


# -- tensors -----------------------------------------------------------------------------------------------------------


def test_batches_are_lists_of_dictionaries(files: list[str]) -> None:
    loader = DALIClassificationIterator(numbers(files), reader_name="Reader")
    batch = next(loader)
    assert isinstance(batch, list)
    assert list(batch[0]) == ["data", "label"]
    assert batch[0]["data"].dtype == torch.uint8
    assert batch[0]["label"].dtype == torch.int32
    assert tuple(batch[0]["label"].shape) == (3, 1)
    assert labels(loader.next()) == [3, 4, 5]


@pytest.mark.parametrize("dtype", [dtype for dtype in to_torch_type if "FLOAT16" not in dtype.name], ids=str)
def test_all_element_types(dtype: types.DALIDataType) -> None:
    data = np.arange(6).reshape(2, 3).astype(types.to_numpy_type(dtype))
    loader = DALIGenericIterator(from_source(lambda: (data,)), ["x"])
    assert next(loader)[0]["x"].dtype == to_torch_type[dtype]
    np.testing.assert_array_equal(next(loader)[0]["x"].numpy(), data)


def test_tensors_view_the_outputs_and_may_be_kept(files: list[str]) -> None:
    source: Callable[[int], Any] = lambda i: (np.full((2, 1000), i, np.int32),)  # noqa: E731
    loader = DALIGenericIterator(from_source(source), ["x"])
    kept = [next(loader)[0]["x"] for _ in range(20)]
    del loader
    gc.collect()
    assert [(int(tensor.min()), int(tensor.max())) for tensor in kept] == [(i, i) for i in range(20)]
    assert len({tensor.data_ptr() for tensor in kept}) == 20


def test_tensors_may_be_changed_in_place() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def constant() -> Any:
        data = fn.external_source(lambda: np.ones((2, 2), np.float32))
        return data, types.Constant(np.ones(2, np.float32))

    loader = DALIGenericIterator(constant(), ["x", "constant"])
    for _ in range(4):
        (batch,) = next(loader)
        assert batch["x"].sum() == batch["constant"].sum() == 4
        batch["x"].add_(5)
        batch["constant"].add_(5)


@pytest.mark.usefixtures("gpu")
def test_changes_in_place_reach_no_other_output_and_no_repeated_batch() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def repeating() -> Any:
        data = fn.external_source(name="data", repeat_last=True)
        on_device = data.gpu()
        return data, data + 1, data + 1, data, on_device, on_device

    pipe = repeating()
    pipe.build()
    pipe.feed_input("data", np.ones((2, 2), np.float32))
    loader = DALIGenericIterator(pipe, list("abcdef"))
    for _ in range(4):
        (batch,) = next(loader)
        for name, value in zip("abcdef", (1, 2, 2, 1, 1, 1), strict=True):
            assert (batch[name] == value).all(), name
            batch[name].add_(5)


@pytest.mark.usefixtures("files", "gpu")
def test_gpu_outputs() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def on_device() -> Any:
        data = fn.external_source(lambda i: np.full((2, 3), i, np.float32))
        return data.gpu(), data > 1

    loader = DALIGenericIterator(on_device(), ["x", "mask"])
    for number in range(4):
        (batch,) = next(loader)
        assert batch["x"].cpu().tolist() == [[number] * 3] * 2
        assert batch["mask"].dtype == torch.bool


def test_feed_ndarray() -> None:
    outputs = from_source(lambda: (np.arange(6, dtype=np.float32).reshape(2, 3),)).run()[0]
    target = torch.empty(2, 3)
    assert feed_ndarray(outputs.as_tensor(), target) is target
    assert target.flatten().tolist() == list(range(6))
    feed_ndarray(outputs[1], target[0])
    assert target[0].tolist() == [3, 4, 5]
    with pytest.raises(TargetShapeError, match=r"\(2, 3\)"):
        feed_ndarray(outputs, torch.empty(3, 2))
    with pytest.raises(TargetTypeError, match=r"torch\.float32"):
        feed_ndarray(outputs, torch.empty(2, 3, dtype=torch.int32))
    ragged = TensorListCPU([np.zeros(2, np.float32), np.zeros(3, np.float32)])
    with pytest.raises(AssertionError, match=r"different shapes, \(2,\), \(3,\)"):  # the class is that of DALI
        feed_ndarray(ragged, torch.empty(2, 3))


# -- samples of different shapes ---------------------------------------------------------------------------------------


def ragged_source(iteration: int) -> Any:
    return (
        [np.arange(1 + sample + iteration, dtype=np.float32) for sample in range(2)],
        [np.full((2,), sample, np.uint8) for sample in range(2)],
    )


def test_different_shapes_are_refused_with_names_and_alternatives() -> None:
    loader = DALIGenericIterator(from_source(ragged_source, 2), ["boxes", "flag"])
    with pytest.raises(ShapeError, match=r"(?s)'boxes'.*sample 0 is \(1,\), sample 1 is \(2,\).*'list'.*Pad"):
        next(loader)


def test_ragged_outputs() -> None:
    kinds = DALIRaggedIterator
    loader = kinds(
        from_source(ragged_source, 2), ["list", "dense"], output_types=[kinds.SPARSE_LIST_TAG, kinds.DENSE_TAG]
    )
    for number in range(3):
        (batch,) = next(loader)
        assert [tensor.tolist() for tensor in batch["list"]] == [list(range(1 + s + number)) for s in range(2)]
        assert batch["dense"].tolist() == [[0, 0], [1, 1]]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # the real DALI does not say whether it wants them
def test_sparse_outputs_equal_those_of_dali(oracle: Any) -> None:
    rival = pytest.importorskip("nvidia.dali.plugin.pytorch")

    @oracle.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def theirs() -> Any:
        return tuple(oracle.fn.external_source(ragged_source, num_outputs=2))

    ours = DALIRaggedIterator(from_source(ragged_source, 2), ["a", "b"], output_types=["sparse_coo", "dense"])
    other = rival.DALIRaggedIterator(theirs(), ["a", "b"], output_types=["sparse_coo", "dense"])
    for _ in range(3):
        mine, yours = next(ours)[0], next(other)[0]
        assert mine["a"].shape == yours["a"].shape
        assert torch.equal(mine["a"].to_dense(), yours["a"].to_dense())
        assert torch.equal(mine["b"], yours["b"])


def test_sparse_outputs_with_empty_samples() -> None:
    source = lambda: ([np.ones(2, np.float32), np.ones(0, np.float32)],)  # noqa: E731
    loader = DALIRaggedIterator(from_source(source), ["x"], output_types=["sparse_coo"])
    assert next(loader)[0]["x"].to_dense().tolist() == [[1, 1], [0, 0]]


def test_partial_cuts_lists_too(files: list[str]) -> None:
    loader = DALIRaggedIterator(
        numbers(files),
        ["data", "label"],
        reader_name="Reader",
        output_types=["sparse_list", "dense"],
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    assert [len(batch[0]["data"]) for batch in loader] == [3, 3, 3, 1]


# -- epochs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auto_reset", [False, True])
@pytest.mark.parametrize("policy", list(LastBatchPolicy))
def test_a_loop_after_a_break_is_a_whole_epoch(files: list[str], policy: LastBatchPolicy, auto_reset: bool) -> None:
    loader = DALIGenericIterator(
        numbers(files), ["data", "label"], reader_name="Reader", last_batch_policy=policy, auto_reset=auto_reset
    )
    whole = [labels(batch) for batch in DALIGenericIterator(numbers(files), ["data", "label"], reader_name="Reader",
             last_batch_policy=policy)]  # fmt: skip
    for stop in (1, 2):
        for number, _ in enumerate(loader, 1):
            if number == stop:
                break
        assert [labels(batch) for batch in loader] == whole
        loader.set_epoch(0)


def test_reset_anywhere(files: list[str]) -> None:
    loader = DALIGenericIterator(numbers(files, 5), ["data", "label"], reader_name="Reader")
    loader.reset()
    assert labels(next(loader)) == [0, 1, 2, 3, 4]
    loader.reset()
    loader.reset()
    assert labels(next(loader)) == [0, 1, 2, 3, 4]
    assert labels(next(loader)) == [5, 6, 7, 8, 9]
    loader.reset()
    assert [labels(batch) for batch in loader] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.raises(StopIteration):
        next(loader)
    loader.reset()
    assert len(list(loader)) == 2


def test_a_new_epoch_after_a_break_has_a_new_order(files: list[str]) -> None:
    loader = DALIGenericIterator(numbers(files, 10, random_shuffle=True), ["data", "label"], reader_name="Reader")
    orders = []
    for _ in range(3):
        for batch in loader:
            orders.append(labels(batch))
            break
    assert all(sorted(order) == list(range(10)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3


def test_set_epoch_repeats_an_order(files: list[str]) -> None:
    loader = DALIGenericIterator(numbers(files, random_shuffle=True), ["data", "label"], reader_name="Reader")
    first = [labels(batch) for batch in loader]
    list(loader)
    loader.set_epoch(0)
    assert [labels(batch) for batch in loader] == first


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("auto_reset", ["yes", "no"])
def test_epochs_of_a_source(depth: int, auto_reset: str) -> None:
    def source(iteration: int) -> Any:
        if iteration == 3:
            raise StopIteration
        return (np.full((2, 1), iteration, np.int32),)

    for size in (-1, 6):
        pipe = from_source(source, prefetch_queue_depth=depth)
        loader = DALIGenericIterator(pipe, ["label"], size=size, auto_reset=auto_reset)
        for _ in range(3):
            assert [labels(batch) for batch in loader] == [[0, 0], [1, 1], [2, 2]]
        for _ in loader:
            break
        assert [labels(batch) for batch in loader] == [[0, 0], [1, 1], [2, 2]]


def test_epochs_of_a_list_after_a_break() -> None:
    data = [(np.full((2, 1), number, np.int32),) for number in range(3)]
    loader = DALIGenericIterator(from_source(data), ["label"])
    for _ in range(2):
        next(iter(loader))
        assert [labels(batch) for batch in loader] == [[0, 0], [1, 1], [2, 2]]


def test_partial_batches_of_a_source_come_as_they_are() -> None:
    sizes = [2, 2, 1]

    def source(iteration: int) -> Any:
        if iteration == 3:
            raise StopIteration
        return (np.zeros((sizes[iteration], 1), np.int32),)

    loader = DALIGenericIterator(from_source(source), ["label"])
    assert [len(batch[0]["label"]) for batch in loader] == sizes
    with pytest.raises(BatchSizeError, match="1 sample instead of 2"):
        list(DALIGenericIterator(from_source(source), ["label"], size=5))


def test_a_pipeline_that_was_run_before(files: list[str]) -> None:
    pipe = numbers(files)
    pipe.run()
    loader = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader")
    assert labels(next(iter(loader))) == [0, 1, 2]
    pipe.run()


def test_an_error_fails_one_batch_of_the_epoch(files: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=2)
    def fragile() -> Any:
        def check(label: Any) -> Any:
            if label[0] == 4:
                raise ValueError("four")
            return label

        return fn.python_function(fn.readers.file(files=files, name="Reader")[1], function=check)

    loader = DALIGenericIterator(fragile(), ["label"], reader_name="Reader")
    for _ in range(2):
        found: list[Any] = []
        iterator = iter(loader)
        while True:
            try:
                found.append(labels(next(iterator)))
            except ValueError as error:
                found.append(str(error))
            except StopIteration:
                break
        assert found == [[0, 1], [2, 3], "four", [6, 7], [8, 9]]


def test_several_pipelines_keep_in_step(files: list[str]) -> None:
    pipes = [numbers(files, 2, shard_id=shard, num_shards=2, stick_to_shard=True) for shard in range(2)]
    loader = DALIGenericIterator(
        pipes, ["data", "label"], reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL
    )
    assert len(loader) == 3
    found = [[part["label"].flatten().tolist() for part in batch] for batch in loader]
    assert found == [[[0, 1], [5, 6]], [[2, 3], [7, 8]], [[4], [9]]]


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_names_must_fit(files: list[str]) -> None:
    pipe = numbers(files)
    with pytest.raises(ArgumentValueError, match="2 outputs, but output_map has 1 name: data"):
        DALIGenericIterator(pipe, ["data"])
    with pytest.raises(ArgumentValueError, match="duplicate names: 'a'"):
        DALIGenericIterator(pipe, ["a", "a"])
    with pytest.raises(OutputMapError, match="list of names"):
        DALIGenericIterator(pipe, "ab")
    for names in (3, [["a"], "b"]):
        with pytest.raises(ArgumentTypeError, match="list of names"):
            DALIGenericIterator(pipe, names)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="reader_name must be a name or None; got 3"):
        DALIGenericIterator(pipe, ["a", "b"], reader_name=3)  # type: ignore[arg-type]


def test_kinds_of_ragged_outputs_must_fit() -> None:
    with pytest.raises(ValueError, match="one of dense, sparse_list, sparse_coo; got 'list'"):
        DALIRaggedIterator(from_source(ragged_source, 2), ["a", "b"], output_types=["list", "dense"])
    with pytest.raises(OutputMapError, match="1 entry for 2 outputs"):
        DALIRaggedIterator(from_source(ragged_source, 2), ["a", "b"], output_types=["dense"])
    numbers_only = from_source(lambda: ([np.float32(1)] * 2,))
    with pytest.raises(ShapeError, match="'x' are single values"):
        next(DALIRaggedIterator(numbers_only, ["x"], output_types=["sparse_coo"]))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"reader_name": "Reder"}, PipelineStateError, "Did you mean 'Reader'"),
        ({"reader_name": "Reader", "size": 5}, ArgumentValueError, "size"),
        ({"reader_name": "Reader", "last_batch_padded": True}, ArgumentValueError, "last_batch_padded"),
        ({"size": 0}, ArgumentValueError, "size must be positive, or -1 if it is not known; got 0"),
        ({"size": -5}, ArgumentValueError, "size must be positive, or -1 if it is not known; got -5"),
        ({"auto_reset": "maybe"}, ArgumentValueError, "auto_reset must be one of"),
        ({"last_batch_policy": "fill"}, ArgumentValueError, "last_batch_policy must be one of"),
    ],
)
def test_options_are_checked(files: list[str], options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DALIGenericIterator(numbers(files), ["data", "label"], **options)


def test_pipelines_are_checked(files: list[str]) -> None:
    with pytest.raises(ArgumentTypeError, match="Call the function"):
        DALIGenericIterator(pipeline_def(lambda: 1), ["x"])
    with pytest.raises(NotAPipelineError, match="at least one"):
        DALIGenericIterator([], [])
    with pytest.raises(ArgumentValueError, match="the same batch size; got 2, 3"):
        DALIGenericIterator([numbers(files, 2), numbers(files, 3)], ["a", "b"])


def test_length_needs_a_size(files: list[str]) -> None:
    loader = DALIGenericIterator(numbers(files), ["data", "label"])
    with pytest.raises(TypeError, match="reader_name='Reader'"):
        len(loader)
    assert loader.size == -1


def test_an_endless_iterator_with_a_policy_is_a_warning(files: list[str]) -> None:
    with pytest.warns(UserWarning, match="never ends") as caught:
        DALIGenericIterator(numbers(files), ["data", "label"], last_batch_policy=LastBatchPolicy.PARTIAL)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("padded", [False, True])
def test_a_size_instead_of_a_reader_is_a_warning(files: list[str], padded: bool) -> None:
    # DALI's category is Warning itself; its text has the same request.
    with pytest.warns(UserWarning, match="Please set `reader_name`") as caught:
        DALIGenericIterator(numbers(files), ["data", "label"], size=10, last_batch_padded=padded)
    assert caught[0].filename == __file__


def test_a_size_without_a_reader_is_no_warning() -> None:
    loader = DALIGenericIterator(from_source(lambda number: (np.full(2, number, np.int32),)), ["label"], size=4)
    assert [batch[0]["label"].tolist() for batch in loader] == [[0, 0], [1, 1]]


def test_fill_last_batch_is_an_old_name(files: list[str]) -> None:
    with pytest.warns(DeprecationWarning, match="last_batch_policy"):
        loader = DALIGenericIterator(numbers(files), ["data", "label"], reader_name="Reader", fill_last_batch=False)
    assert [len(batch[0]["label"]) for batch in loader] == [3, 3, 3, 1]


def test_sizes_of_old_scripts(files: list[str]) -> None:
    loader = DALIClassificationIterator(numbers(files, 4, pad_last_batch=True), reader_name="Reader")
    assert loader._size == loader.size == 10
    assert loader.batch_size == 4
    assert base_iterator.LastBatchPolicy is LastBatchPolicy


def test_first_batches_begin_at_once() -> None:
    asked: list[int] = []

    def source(iteration: int) -> Any:
        asked.append(iteration)
        return (np.zeros((2, 1), np.int32),)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DALIGenericIterator(from_source(source), ["x"], prepare_first_batch=False)
        assert asked == []
        DALIGenericIterator(from_source(source), ["x"])
    assert asked == [0, 1]
