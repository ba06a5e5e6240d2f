"""Batches over four devices of JAX. Run by `test_jax.py` in a process that has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.plugin.jax import DALIGenericIterator, data_iterator
from dalify.plugin.jax import fn as jax_fn
from dalify.plugin.jax.clu import peekable_data_iterator

P = jax.sharding.PartitionSpec


def over(spec: Any, shape: tuple[int, ...] = (4,), names: tuple[str, ...] = ("b",), flip: bool = False) -> Any:
    devices = np.array(jax.devices()[::-1] if flip else jax.devices()).reshape(shape)
    return jax.sharding.NamedSharding(jax.sharding.Mesh(devices, names), spec)


@pipeline_def(batch_size=4, num_threads=1)
def numbers(first: int = 0, width: int = 1) -> Any:
    return fn.external_source(source=lambda info: np.full(width, first + info.idx_in_epoch, np.float32), batch=False)


def shards(array: Any) -> list[list[float]]:
    """Return the data on each device, in the order of the devices."""
    parts = {shard.device.id: np.asarray(shard.data).ravel().tolist() for shard in array.addressable_shards}
    return [parts[number] for number in sorted(parts)]


def test_four_devices_exist() -> None:
    assert len(jax.devices()) == 4


def test_a_pipeline_for_each_device() -> None:
    loader = DALIGenericIterator([numbers(100 * k) for k in range(4)], ["x"], sharding=over(P("b")))
    batch = next(loader)["x"]
    assert batch.shape == (16, 1)
    assert shards(batch) == [[100 * k + j for j in range(4)] for k in range(4)]
    assert jax.jit(lambda x: x.sum())(batch) == 4 * 600 + 4 * 6


def test_the_order_equals_that_of_the_sharding() -> None:
    loader = DALIGenericIterator([numbers(100 * k) for k in range(4)], ["x"], sharding=over(P("b"), flip=True))
    batch = next(loader)["x"]
    np.testing.assert_array_equal(np.asarray(batch)[:, 0], [100 * k + j for k in range(4) for j in range(4)])
    assert shards(batch)[0] == [300, 301, 302, 303]


def test_one_pipeline_for_all_devices() -> None:
    batch = next(DALIGenericIterator(numbers(), ["x"], sharding=over(P("b"))))["x"]
    assert shards(batch) == [[0], [1], [2], [3]]


def test_copies_and_columns() -> None:
    by_row = over(P("b"), (2, 2), ("b", "m"))
    batch = next(DALIGenericIterator([numbers(0), numbers(100)], ["x"], sharding=by_row))["x"]
    assert shards(batch) == [[0, 1, 2, 3]] * 2 + [[100, 101, 102, 103]] * 2
    by_both = over(P("b", "m"), (2, 2), ("b", "m"))
    batch = next(DALIGenericIterator([numbers(0, 2), numbers(100, 2)], ["x"], sharding=by_both))["x"]
    assert batch.shape == (8, 2)
    assert shards(batch) == [[0, 1, 2, 3]] * 2 + [[100, 101, 102, 103]] * 2
    copies = over(P())
    assert shards(next(DALIGenericIterator(numbers(), ["x"], sharding=copies))["x"]) == [[0, 1, 2, 3]] * 4


def test_for_pmap() -> None:
    batch = next(
        DALIGenericIterator([numbers(100 * k) for k in range(4)], ["x"], sharding=over(P("b")), pmap_compatible=True)
    )["x"]
    assert batch.shape == (4, 4, 1)
    assert shards(batch) == [[100 * k + j for j in range(4)] for k in range(4)]
    assert jax.pmap(lambda x: x.sum())(batch).tolist() == [6 + 400 * k for k in range(4)]


def test_stacked_without_sharding() -> None:
    batch = next(DALIGenericIterator([numbers(0), numbers(100)], ["x"]))["x"]
    np.testing.assert_array_equal(batch[..., 0], [[0, 1, 2, 3], [100, 101, 102, 103]])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_another_number_of_pipelines(count: int) -> None:
    with pytest.raises(ArgumentValueError, match=f"into 4 parts, but there are {count} pipelines"):
        DALIGenericIterator([numbers() for _ in range(count)], ["x"], sharding=over(P("b")))


def test_shapes_that_do_not_divide() -> None:
    @pipeline_def(batch_size=6, num_threads=1)
    def six() -> Any:
        return fn.external_source(source=lambda: np.zeros((6, 3), np.float32))

    with pytest.raises(ShapeError, match="'x' has 6 samples, which do not divide over 4 devices"):
        next(DALIGenericIterator(six(), ["x"], sharding=over(P("b"))))
    by_both = over(P("b", "m"), (2, 2), ("b", "m"))
    with pytest.raises(ShapeError, match=r"'x' of shape \(6, 3\) does not divide over the devices"):
        next(DALIGenericIterator(six(), ["x"], sharding=by_both))


def test_one_pipeline_has_no_axis_of_four_devices() -> None:
    with pytest.raises(ArgumentValueError, match="requires one pipeline per device"):
        DALIGenericIterator(numbers(), ["x"], sharding=over(P("b")), pmap_compatible=True)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for number in range(10):
        (tmp_path / f"{number}.dat").write_bytes(bytes([number]))
    return [str(path) for path in sorted(tmp_path.iterdir())]


@pytest.mark.parametrize("decorate", [data_iterator, peekable_data_iterator])
def test_decorators_make_a_pipeline_for_each_device(files: list[str], decorate: Callable[..., Any]) -> None:
    @decorate(output_map=["x"], reader_name="Reader", sharding=over(P("b")), auto_reset=True)
    def read(shard_id: int, num_shards: int) -> Any:
        return fn.readers.file(
            files=files,
            name="Reader",
            shard_id=shard_id,
            num_shards=num_shards,
            pad_last_batch=True,
            stick_to_shard=True,
        )[1]

    loader = read(batch_size=2, num_threads=1)
    for _ in range(2):
        found = [np.asarray(batch["x"]).ravel().tolist() for batch in loader]
        assert found == [[0, 1, 2, 3, 5, 6, 7, 8], [1, 1, 4, 4, 6, 6, 9, 9]]


def test_devices_are_for_pmap() -> None:
    @data_iterator(output_map=["x"], devices=jax.devices()[:2])
    def numbered(shard_id: int, num_shards: int) -> Any:
        return fn.external_source(source=lambda: np.full((2, 1), 10 * shard_id + num_shards, np.int32))

    batch = next(numbered(batch_size=2, num_threads=1))["x"]
    assert batch.shape == (2, 2, 1)
    assert np.asarray(batch).ravel().tolist() == [2, 2, 12, 12]


def test_validity_is_divided_like_the_data(files: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def read() -> Any:
        return fn.readers.file(files=files[:6], name="Reader", pad_last_batch=True)[1]

    loader = DALIGenericIterator(read(), ["x"], reader_name="Reader", sharding=over(P("b")), valid_name="valid")
    masks = [batch["valid"] for batch in loader]
    assert [np.asarray(mask).tolist() for mask in masks] == [[True] * 4, [True, True, False, False]]
    assert masks[0].sharding == over(P("b"))


def test_functions_get_shared_arrays() -> None:
    seen: list[Any] = []

    @jax_fn.jax_function(sharding=over(P("b")))
    def function(x: Any) -> Any:
        seen.append(x.sharding)
        return jax.jit(lambda x: x * 2)(x)

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe() -> Any:
        return function(fn.external_source(source=lambda: np.arange(4, dtype=np.float32)))

    assert pipe().run()[0].as_array().tolist() == [0, 2, 4, 6]
    assert seen[0] == over(P("b"))
