"""The JAX plugin with the real JAX: memory, shardings over four devices, looking ahead, functions in pipelines."""

from __future__ import annotations

import importlib
import json
import operator
import os
import socket
import subprocess
import sys
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, pipeline_def
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    PipelineStateError,
    ShapeError,
    SourceError,
    UnknownArgumentError,
)
from tests.helpers.frameworks import addresses_of_outputs, bfloat16_ones, imported

jax = imported("jax")
imported("clu.data.dataset_iterator")
from dalify.plugin import jax as plugin  # noqa: E402
from dalify.plugin.jax import clu  # noqa: E402

P = jax.sharding.PartitionSpec
MANY_DEVICES = Path(__file__).parent / "jax_devices.py"


@pipeline_def(batch_size=4, num_threads=2)
def counted(shape: tuple[int, ...] = (1,), dtype: Any = np.int32, first: int = 0) -> Any:
    source = fn.external_source(
        source=lambda info: np.full(shape, first + info.idx_in_epoch, dtype), batch=False, layout="HWC"[-len(shape) :]
    )
    return fn.copy(source)


def test_arrays_have_the_memory_of_the_pipeline() -> None:
    pipe = counted((32, 32, 3), np.float32)
    addresses = addresses_of_outputs(pipe)
    loader = plugin.DALIGenericIterator(pipe, ["x"])
    for _ in range(3):
        batch = next(loader)["x"]
        assert isinstance(batch, jax.Array)
        assert batch.unsafe_buffer_pointer() == addresses[-1]


def test_64_bits_where_jax_is_configured() -> None:
    with jax.enable_x64(True):
        assert next(plugin.DALIGenericIterator(counted(dtype=np.int64), ["x"]))["x"].dtype == np.int64
    assert next(plugin.DALIGenericIterator(counted(dtype=np.int64), ["x"]))["x"].dtype == np.int32


def test_bfloat16() -> None:
    batch = next(plugin.DALIGenericIterator(bfloat16_ones(), ["x"]))["x"]
    assert batch.dtype == jax.numpy.bfloat16
    assert batch.sum() == 24


def test_batches_train_a_model() -> None:
    @plugin.data_iterator(output_map=["x", "y"])
    def samples() -> Any:
        x = fn.random.uniform(range=(-1, 1), shape=(3,))
        return x, fn.reductions.sum(x * np.float32([1, 2, 3]))

    @jax.jit
    def step(weights: Any, batch: Any) -> Any:
        def loss(weights: Any) -> Any:
            return ((batch["x"] @ weights - batch["y"]) ** 2).mean()

        return weights - 0.3 * jax.grad(loss)(weights)

    weights = jax.numpy.zeros(3)
    loader = samples(batch_size=32, num_threads=2, seed=3)
    for _ in range(200):
        weights = step(weights, next(loader))
    np.testing.assert_allclose(weights, [1, 2, 3], atol=1e-3)


def test_one_device_axis_for_pmap() -> None:
    batch = next(plugin.DALIGenericIterator(counted(), ["x"], pmap_compatible=True))["x"]
    assert batch.shape == (1, 4, 1)
    assert isinstance(batch.sharding, jax.sharding.NamedSharding)


def test_classification() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def two() -> Any:
        return fn.external_source(source=lambda: (np.zeros((2, 3), np.uint8), np.ones((2, 1), np.int32)), num_outputs=2)

    batch = next(plugin.DALIClassificationIterator(two()))
    assert {name: value.shape for name, value in batch.items()} == {"data": (2, 3), "label": (2, 1)}


@pytest.mark.parametrize(
    ("pipelines", "options", "text"),
    [
        (2, {"last_batch_policy": plugin.LastBatchPolicy.PARTIAL}, "cannot join"),
        (2, {"collate": "list"}, "does not return an array that several"),
        (2, {"collate": {"x": "packed"}}, "does not return an array that several"),
        (2, {"sharding": jax.sharding.SingleDeviceSharding(jax.devices()[0])}, "into 1 parts, but there are 2"),
    ],
)
def test_what_cannot_be_joined(pipelines: int, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentValueError, match=text):
        plugin.DALIGenericIterator([counted() for _ in range(pipelines)], ["x"], **options)


def test_pipelines_of_different_shapes() -> None:
    loader = plugin.DALIGenericIterator([counted((1,)), counted((2,))], ["x"])
    with pytest.raises(ShapeError, match=r"the output 'x' has different shapes in the pipelines: \(4, 1\), \(4, 2\)"):
        next(loader)


def test_no_sharding_and_not_both() -> None:
    with pytest.raises(AssertionError, match="must be a sharding of JAX"):
        plugin.DALIGenericIterator(counted(), ["x"], sharding="b")
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with pytest.raises(ArgumentValueError, match="cannot be used together"):
        plugin.data_iterator(output_map=["x"], sharding=sharding, devices=jax.devices())


@pytest.mark.parametrize("is_sharded", [False, True])
def test_an_error_of_jax_keeps_its_type_and_names_the_output(monkeypatch: pytest.MonkeyPatch, is_sharded: bool) -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no memory")

    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0]) if is_sharded else None
    loader = plugin.DALIGenericIterator(counted(), ["images"], sharding=sharding)
    for module in ("iterator", "arrays"):
        monkeypatch.setattr(f"dalify.plugin.jax.{module}.as_jax", refuses)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        next(loader)
    assert caught.value.__notes__ == ["This was the output 'images' of the pipeline."]


@pytest.mark.parametrize("policy", ["FILL", "DROP"])
@pytest.mark.parametrize("pipelines", [1, 2])
@pytest.mark.parametrize("options", [{"reader_name": "Reader"}, {"size": 10}], ids=str)
@pytest.mark.filterwarnings("ignore::Warning")
def test_epochs_equal_dali(oracle: Any, tmp_path: Path, policy: str, pipelines: int, options: dict[str, Any]) -> None:
    files = [str(tmp_path / f"{number}.bin") for number in range(10)]
    for number, name in enumerate(files):
        Path(name).write_bytes(bytes([number]))

    def epochs(dali: Any) -> list[Any]:
        def labels(shard: int) -> Any:
            shards = {"shard_id": shard, "num_shards": pipelines, "name": "Reader"}
            return lambda: dali.fn.readers.file(files=files, labels=list(range(10)), **shards)[1]

        made = [
            dali.pipeline_def(labels(shard))(batch_size=2, num_threads=1, device_id=None) for shard in range(pipelines)
        ]
        policies = importlib.import_module(f"{dali.__name__}.plugin.base_iterator").LastBatchPolicy
        kind = importlib.import_module(f"{dali.__name__}.plugin.jax").DALIGenericIterator
        loader = kind(made, ["x"], auto_reset=True, last_batch_policy=policies[policy], **options)
        return [[np.asarray(batch["x"]).tolist() for batch in loader] for _ in range(2)]

    assert epochs(dalify) == epochs(oracle)


@pytest.mark.filterwarnings("ignore::Warning")
def test_no_pipelines_as_in_dali(oracle: Any) -> None:
    for name in (oracle.__name__, "dalify"):
        with pytest.raises(IndexError):
            importlib.import_module(f"{name}.plugin.jax").DALIGenericIterator([], ["x"])


# -- decorators --------------------------------------------------------------------------------------------------------


def test_data_iterator_takes_what_the_pipeline_takes() -> None:
    @plugin.data_iterator(output_map=["x"], size=8)
    def numbers(first: int) -> Any:
        return fn.external_source(source=lambda info: np.array([first + info.idx_in_epoch]), batch=False)

    loader = numbers(5, batch_size=4, num_threads=1)
    assert [batch["x"].ravel().tolist() for batch in loader] == [[5, 6, 7, 8], [9, 10, 11, 12]]
    with pytest.raises(UnknownArgumentError, match="no argument 'output_map'"):
        numbers(5, batch_size=4, output_map=["y"])


def test_data_iterator_continues_from_checkpoints(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"{number}.dat").write_bytes(bytes([number]))
    files = [str(path) for path in sorted(tmp_path.iterdir())]

    @plugin.data_iterator(output_map=["x"], reader_name="Reader")
    @pipeline_def(batch_size=2, num_threads=1, enable_checkpointing=True)
    def read() -> Any:
        return fn.readers.file(files=files, name="Reader", pad_last_batch=True)[1]

    loader = read()
    assert [next(loader)["x"].ravel().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    later = read(checkpoints=loader.checkpoints())
    assert [batch["x"].ravel().tolist() for batch in later] == [[4, 5], [6, 6]]
    with pytest.raises(ArgumentValueError, match="got 2 checkpoints for 1 pipeline"):
        read(checkpoints=loader.checkpoints() * 2)


# -- looking ahead -----------------------------------------------------------------------------------------------------


def peekable(size: int = 8, **options: Any) -> Any:
    @clu.peekable_data_iterator(output_map=["x"], size=size, **options)
    def numbers() -> Any:
        return fn.external_source(source=lambda info: np.array([info.idx_in_epoch], np.int32), batch=False)

    return numbers(batch_size=4, num_threads=1)


def values(batch: Any) -> list[int]:
    return np.asarray(batch["x"]).ravel().tolist()


def test_peek() -> None:
    loader = peekable()
    assert loader.element_spec == {"x": clu.dataset_iterator.ArraySpec(np.dtype("int32"), (4, 1))}
    assert [values(loader.peek()), values(loader.peek()), values(next(loader))] == [[0, 1, 2, 3]] * 3
    assert values(loader.peek_async().result(timeout=60)) == [4, 5, 6, 7]
    assert values(next(loader)) == [4, 5, 6, 7]
    for ask in (loader.peek, loader.__next__, loader.peek_async().result):
        with pytest.raises(StopIteration):
            ask()
    loader.reset()
    assert values(loader.peek()) == [8, 9, 10, 11]


def test_the_error_of_a_peek_reaches_the_consumer_although_memory_is_exhausted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exhausted(Future[Any]):
        attempts = 0

        def set_exception(self, exception: BaseException | None) -> None:
            self.attempts += 1
            if self.attempts < 3:
                raise MemoryError
            super().set_exception(exception)

    monkeypatch.setattr(clu, "Future", Exhausted)
    loader = peekable()
    monkeypatch.setattr(loader, "_made", partial(operator.truediv, 1, 0))
    with pytest.raises(ZeroDivisionError):
        loader.peek_async().result(timeout=60)


def test_a_loop_begins_with_the_peeked_batch() -> None:
    loader = peekable()
    loader.peek()
    assert [values(batch) for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_peeked_batch_is_returned_again_after_a_restart() -> None:
    first = peekable(size=12)
    next(first)
    first.peek()
    state = json.loads(json.dumps(first.state_dict()))
    second = peekable(size=12)
    second.load_state_dict(state)
    assert values(next(second)) == values(next(first)) == [4, 5, 6, 7]


def test_len_of_an_epoch_after_peek() -> None:
    """The second of these epochs is a batch shorter; looking at its first batch changes nothing of that."""
    loader = peekable(size=6, auto_reset=True)
    for expected in (2, 1, 2, 1):
        before = len(loader)
        loader.peek()
        assert (before, len(loader), len(list(loader))) == (expected, expected, expected)


def test_padding_is_reported(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.dat").write_bytes(b"x")
    files = [str(path) for path in sorted(tmp_path.iterdir())]

    @clu.peekable_data_iterator(output_map=["x"], reader_name="Reader")
    def read() -> Any:
        return fn.readers.file(files=files, name="Reader", pad_last_batch=True)[1]

    loader = read(batch_size=2, num_threads=1)
    with pytest.raises(PipelineStateError, match="no batch was returned yet"):
        _ = loader.is_nonpadding
    masks = []
    for _ in loader:
        masks.append(loader.is_nonpadding.tolist())
    assert masks == [[True, True], [True, False]]


def test_a_changed_shape_is_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def growing() -> Any:
        return fn.external_source(source=lambda number: np.zeros((2, number + 1), np.float32))

    loader = clu.DALIGenericPeekableIterator(growing(), ["x"])
    next(loader)
    with pytest.raises(ShapeError, match=r"'x' is float32\[2, 2\], and was float32\[2, 1\] before"):
        next(loader)


# -- functions in pipelines --------------------------------------------------------------------------------------------


def run(function: Any, shape: tuple[int, ...] = (2, 3, 1), **options: Any) -> Any:
    operator = plugin.fn.jax_function(**options)(function)

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe() -> Any:
        source = lambda info: np.full(shape, info.idx_in_batch, np.float32)  # noqa: E731
        return operator(fn.external_source(source=source, batch=False, layout="HWC"))

    return pipe().run()


def test_function() -> None:
    (found,) = run(jax.jit(jax.vmap(lambda image: image[::-1] * 2)))
    np.testing.assert_array_equal(found.as_array()[:, 0, 0, 0], [0, 2, 4, 6])
    assert found.layout() == "HWC"


def test_function_of_several_outputs() -> None:
    first, second = run(lambda x: (x + 1, x.mean(axis=(1, 2, 3))), num_outputs=2)
    assert first.layout() == "HWC"
    np.testing.assert_array_equal(second.as_array(), [0, 1, 2, 3])
    assert second.layout() == ""
    first, second = run(lambda x: (x, x[..., 0]), num_outputs=2, output_layouts=["XYZ", "HW"])
    assert (first.layout(), second.layout()) == ("XYZ", "HW")


def test_operators_after_a_function() -> None:
    @plugin.fn.jax_function
    def doubled(x: Any) -> Any:
        return x * 2

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe() -> Any:
        image = fn.external_source(source=lambda: np.ones((2, 8, 8, 3), np.uint8), layout="HWC")
        return fn.resize(doubled(image), size=(4, 4)) + 1

    np.testing.assert_array_equal(pipe().run()[0].as_array(), np.full((2, 4, 4, 3), 3))


def test_function_without_outputs_is_called() -> None:
    seen: list[Any] = []

    @plugin.fn.jax_function(num_outputs=0)
    def note(x: Any) -> None:
        seen.append(x.shape)

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def pipe() -> Any:
        x = fn.external_source(source=lambda: np.ones((2, 3), np.float32))
        note(x)
        return x

    pipe().run()
    assert seen[0] == (2, 3)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.asarray(x), SourceError, "returned ndarray where a JAX array is expected"),
        (lambda x: (x, x), SourceError, "returned 2 arrays where 1 are expected"),
        (lambda x: x[:2], SourceError, "has 2 samples; expected 4"),
        (lambda x: x.sum(), SourceError, "has a single value; expected 4"),
        (lambda x: 1 / 0, ZeroDivisionError, "division by zero"),
    ],
)
def test_mistakes_in_functions(function: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run(function)


def test_function_on_a_device(emulated_gpu: None) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe() -> Any:
        values = fn.external_source(source=lambda: np.arange(6, dtype=np.float32).reshape(2, 3)).gpu()
        return plugin.fn.jax_function(jax.jit(lambda x: x * 2))(values) + 1

    (found,) = pipe().run()
    np.testing.assert_array_equal(found.as_cpu().as_array(), np.arange(6).reshape(2, 3) * 2 + 1)


def test_no_function() -> None:
    with pytest.raises(ArgumentTypeError, match="needs a function; got int"):
        plugin.fn.jax_function(3)


def test_ragged_samples_cannot_be_given_to_a_function() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe() -> Any:
        ragged = fn.external_source(source=lambda: [np.zeros(1, np.float32), np.zeros(2, np.float32)])
        return plugin.fn.jax_function(lambda x: x)(ragged)

    with pytest.raises(ShapeError, match=r"sample 0 is \(1,\), sample 1 is \(2,\)"):
        pipe().run()


def test_four_devices() -> None:
    """JAX determines the number of devices at its start, so these run in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(MANY_DEVICES)],
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_two_processes_of_two_devices() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    children = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "jax_process.py"), coordinator, "2", str(number)],
            env={
                **os.environ,
                "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        outcomes = [child.communicate(timeout=120) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert [child.returncode for child in children] == [0, 0], "".join(errors[-3000:] for _, errors in outcomes)
    found = [json.loads(output.splitlines()[-1]) for output, _ in outcomes]
    assert [each["shape"] for each in found] == [[8, 1]] * 2
    assert [each["parts"] for each in found] == [[[400, 400], [401, 401]], [[402, 402], [403, 403]]]
    assert [each["divided shape"] for each in found] == [[8]] * 2
    assert [each["divided"] for each in found] == [[[0, 1], [2, 3]], [[10, 11], [12, 13]]]
