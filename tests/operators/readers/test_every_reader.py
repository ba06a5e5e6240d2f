"""What holds for every reader: order, shards, padding and epochs as in DALI, and resuming wherever it stood."""

from __future__ import annotations

import functools
import os
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.registry import READER_PARAMETERS, catalog
from tests.operators.readers.datasets import DATASETS, Batches, run_reader

COUNT = 11
every_reader = pytest.mark.parametrize("name", sorted(DATASETS))


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The arguments of every reader, with its data written once."""
    found = {}
    for name, write in DATASETS.items():
        if name in catalog.names():
            found[name] = write(tmp_path_factory.mktemp(name), COUNT)
    return found


def arguments_of(name: str, written: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if name in ("readers.caffe", "readers.caffe2"):
        pytest.importorskip("lmdb", reason="the extra dalify[lmdb]")
    if name == "experimental.readers.fits":
        pytest.importorskip("astropy", reason="the extra dalify[fits]")
    return written[name]


def test_every_reader_has_data():
    readers = [name for name in catalog.names() if name.startswith(("readers.", "experimental.readers."))]
    videos = {name for name in readers if "video" in name or name == "readers.sequence"}
    # `readers.dataset` reads Python objects with a length and items, and no file format.
    assert set(readers) - videos - {"readers.dataset"} <= set(DATASETS)


def assert_same_batches(ours: Batches, theirs: Batches) -> None:
    for own_outputs, other_outputs in zip(ours, theirs, strict=True):
        for own, other in zip(own_outputs, other_outputs, strict=True):
            for one, two in zip(own, other, strict=True):
                assert one.dtype == two.dtype
                assert one.shape == two.shape
                np.testing.assert_array_equal(one, two)


@every_reader
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_shards": 3, "shard_id": 1},
        {"num_shards": 3, "shard_id": 2, "pad_last_batch": True},
        {"num_shards": 2, "shard_id": 1, "stick_to_shard": True, "pad_last_batch": True},
    ],
    ids=["all", "shard", "padded", "stuck"],
)
def test_batches_equal_dali(oracle: ModuleType, written: dict[str, dict[str, Any]], name: str, options: dict[str, Any]):
    """Contents, types, layouts and order over more than two epochs, and the reported metadata."""
    arguments = {**arguments_of(name, written), **options}
    if name == "experimental.readers.fits":
        pytest.skip("DALI's wants a GPU, also for its CPU variant")
    if name in ("readers.arrow", "readers.hdf5", "readers.parquet", "readers.zarr"):
        pytest.skip("DALI has no such reader")
    if not hasattr(functools.reduce(getattr, name.split(".")[:-1], oracle.fn), name.split(".")[-1]):
        pytest.skip("DALI has no such reader")
    layouts, ours, meta = run_reader(dalify, name, 9, **arguments)
    their_layouts, theirs, their_meta = run_reader(oracle, name, 9, **arguments)
    assert layouts == their_layouts
    assert_same_batches(ours, theirs)
    assert {key: meta[key] for key in their_meta} == their_meta


def flat(batches: Batches) -> list[bytes]:
    """Return what identifies each sample."""
    return [
        b"|".join(output[index].tobytes() for output in outputs)
        for outputs in batches
        for index in range(len(outputs[0]))
    ]


@every_reader
def test_shards_cover_the_data_once(written: dict[str, dict[str, Any]], name: str):
    arguments = arguments_of(name, written)
    everything = flat(run_reader(dalify, name, COUNT, 1, **arguments)[1])
    assert len(set(everything)) == COUNT
    for options in ({}, {"random_shuffle": True}, {"shuffle_after_epoch": True}):
        seen: list[bytes] = []
        for shard in range(3):
            size = COUNT * (shard + 1) // 3 - COUNT * shard // 3
            seen += flat(run_reader(dalify, name, size, 1, num_shards=3, shard_id=shard, **options, **arguments)[1])
        assert sorted(seen) == sorted(everything)


@every_reader
@pytest.mark.parametrize("options", [{}, {"random_shuffle": True}, {"shuffle_after_epoch": True}], ids=str)
def test_epochs_and_resuming_at_every_step(written: dict[str, dict[str, Any]], name: str, options: dict[str, Any]):
    """Each epoch has all samples; a saved state continues exactly where it was taken; reset begins the next epoch."""
    arguments = arguments_of(name, written)
    whole = run_reader(dalify, name, 8, 3, **options, **arguments)[1]
    samples = flat(whole)
    assert sorted(samples[:COUNT]) == sorted(samples[COUNT : 2 * COUNT])
    pipe = _pipe(name, arguments, options)
    states = []
    for _ in range(8):
        states.append(pipe.state_dict())
        pipe.run()
    for step, state in enumerate(states):
        again = _pipe(name, arguments, options)
        again.load_state_dict(state)
        for expected in whole[step : step + 2]:
            found = [[np.array(output.at(index)) for index in range(3)] for output in again.run()]
            assert_same_batches([found], [expected])
        again.close()
    pipe.close()


def _pipe(name: str, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
    pipe = dalify.Pipeline(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=1, seed=1)
    with pipe:
        given = {key: value(dalify) if callable(value) else value for key, value in arguments.items()}
        node = dalify.fn
        for part in name.split("."):
            node = getattr(node, part)
        result = node(name="reader", **given, **options)  # pyright: ignore
        results = list(result.values()) if isinstance(result, dict) else result
        pipe.set_outputs(*(results if isinstance(results, (list, tuple)) else [results]))
    pipe.build()
    return pipe


def given_to_the_index(operator: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        key: parameter.normalize(arguments[key], operator.name) if key in arguments else parameter.default
        for key, parameter in operator.parameters.items()
        if key not in READER_PARAMETERS
    }


@every_reader
def test_the_index_survives_pickling_and_forks(written: dict[str, dict[str, Any]], name: str):
    """Open files and databases are neither pickled nor shared with a child that would move them."""
    arguments = {key: value(dalify) if callable(value) else value for key, value in arguments_of(name, written).items()}
    operator = catalog.find(name)
    given = given_to_the_index(operator, arguments)
    index = operator.index_function(**given)
    read = operator.read_function
    constants = {key: given[key] for key in read.names if operator.parameters[key].kind == "static"} | {
        key: None for key in read.names if operator.parameters[key].kind != "static"
    }
    before = read.function(index[COUNT - 1], **constants)
    copy = pickle.loads(pickle.dumps(index))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        try:
            found = read.function(index[COUNT - 1], **constants)
            same = all(np.array_equal(one, two) for one, two in zip(found, before, strict=True))
            os.write(writer, b"y" if same else b"n")
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 1) == b"y"
    os.close(reader)
    os.waitpid(child, 0)
    for one, two in zip(read.function(copy[COUNT - 1], **constants), before, strict=True):
        np.testing.assert_array_equal(one, two)
    assert len(index[-2:]) == 2
    assert operator.origin_function(index[-1])
    with pytest.raises(IndexError):
        index[COUNT]


@every_reader
def test_entries_are_small_enough_for_a_million(written: dict[str, dict[str, Any]], name: str, tmp_path: Path):
    """Indices are compact: what pickle needs for an entry is a measure of it."""
    write = DATASETS[name]
    arguments_of(name, written)
    sizes = []
    for count in (50, 250):
        folder = tmp_path / str(count)
        folder.mkdir()
        arguments = {key: value(dalify) if callable(value) else value for key, value in write(folder, count).items()}
        operator = catalog.find(name)
        index = operator.index_function(**given_to_the_index(operator, arguments))
        sizes.append(len(pickle.dumps(index)))
    assert (sizes[1] - sizes[0]) / 200 < 400
