"""Serialized graphs and states with values of any type and size: a specific error, and bounded memory."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, CheckpointError, DalifyError, SerializationError
from dalify.pipeline import state as saving

VALUES: list[Any] = [
    10**12, -1, 2**31 - 1, 2**63, -(2**70), 1e30, math.nan, math.inf, None, True, 0, 1, 1.5, "",
    "x" * 100, "1-abc", [], {},
    [1, 2, 3], {"edge": [0, 0]}, {"edge": [10**9, 0]}, {"edge": [0.0, True]}, {"items": []}, {"items": [{"items": []}]},
    {"enum": "DALIDataType", "value": 99}, {"line": [1, 2, 3]}, {"line": []},
    {"array": "AAAA", "dtype": "<f4", "shape": [1]}, {"array": "AAAA", "dtype": "<f4", "shape": [10**30, 0]},
    {"array": "AAAA", "dtype": "(2147483648,)f4", "shape": [1]}, {"array": "", "dtype": "O", "shape": [0]},
]  # fmt: skip


@pipeline_def(batch_size=2, num_threads=1, seed=3)
def several() -> Any:
    data = fn.external_source(name="data", layout="HW", dtype=types.FLOAT)
    if fn.random.coin_flip():
        data = fn.rotate(data, angle=fn.random.uniform(range=[-5.0, 5.0]), size=[4, 4])
    else:
        data = fn.resize(data, size=[4, 4])
    noise = fn.random.normal(shape=[3])
    return data + np.ones((1, 1), np.float32), noise, fn.one_hot(fn.cast(noise, dtype=types.INT32), num_classes=3)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value in plain data."""
    if path:
        yield path
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    data = copy.deepcopy(data)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = copy.deepcopy(value)
    return data


def test_values_of_any_kind_in_a_graph() -> None:
    whole = json.loads(several().serialize())
    draws = random.Random(1)
    for path in places(whole):
        for value in draws.sample(VALUES, 2):
            text = json.dumps(changed(whole, path, value))
            try:
                pipe = Pipeline.deserialize(text)
                pipe.build()
                pipe.run(data=np.ones((2, 3, 4), np.float32))
            except DalifyError:
                continue


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["nodes"][0].update(outputs=10**12),
        lambda data: data["nodes"][0].update(outputs=0),
        lambda data: data["nodes"][-1].update(inputs=[None] * 100_000),
        lambda data: data["nodes"][-1].update(seed="x"),
        lambda data: data["nodes"][-1].update(name=[]),
        lambda data: data["nodes"][-1].update(line={"line": "x"}),
        lambda data: data.update(outputs=10**12),
        lambda data: data.update(nodes=[1]),
        lambda data: data.update(nodes={}),
        lambda data: data["options"].update(py_callback_pickler="os"),
        lambda data: data["nodes"].append(10**12),
    ],
)
def test_damaged_graphs(damage: Any) -> None:
    data = json.loads(several().serialize())
    damage(data)
    with pytest.raises(SerializationError):
        Pipeline.deserialize(json.dumps(data))


@pytest.mark.parametrize(
    "items",
    [
        1e9,
        {"items": [-math.inf]},
        {"items": [{"items": ["at", None]}]},
        {"items": [{"items": ["at", {"items": ["node", 1]}]}]},
        {"items": [{"items": ["slice", 0, 1]}]},
        {"items": [{"items": ["newaxis", "long"]}]},
        {"items": [{"items": ["other", 1]}]},
    ],
)
def test_invalid_index(items: Any) -> None:
    with Pipeline(batch_size=1, num_threads=1, seed=3) as pipe:
        pipe.set_outputs(fn.random.normal(shape=[4])[1:3])
    data = json.loads(pipe.serialize())
    data["nodes"][-1]["arguments"]["items"] = items
    with pytest.raises(ArgumentTypeError, match="must be created by indexing"):
        Pipeline.deserialize(json.dumps(data)).build()


@pytest.mark.parametrize("name", ["\ud800", "a\0b", ""])
def test_lines_of_nodes_that_are_not_in_a_file(name: str) -> None:
    with Pipeline(batch_size=1, num_threads=1, seed=3) as pipe:
        pipe.set_outputs(fn.random.normal(stddev=2.0))
    data = json.loads(pipe.serialize())
    data["nodes"][-1] |= {"operator": "constant", "arguments": {}, "line": {"line": [name, 56, "make"]}}
    with pytest.raises(ArgumentValueError, match=r"(?s)either fdata or idata.*:56 in make\(\)"):
        Pipeline.deserialize(json.dumps(data)).build()


@pytest.mark.parametrize("state", [5, None, True, [5], [None], [[]], "5", b"null", "[" * 100_000])
def test_objects_that_are_not_states(files: list[str], state: Any) -> None:
    with pytest.raises(CheckpointError):
        reading(files).load_state_dict(state)


def test_states_of_shards_without_their_number(files: list[str]) -> None:
    pipe = reading(files)
    state = {name: entry for name, entry in pipe.state_dict().items() if name != "check"}
    del state["sources"][0]["shard_id"]
    with pytest.raises(CheckpointError, match="not the state of a reader"):
        reading(files).load_state_dict([saving.sealed(state)] * 2)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": ' + "[" * 100_000, "1" * 10_000, "\ud800", b"\xff\xfe\x00"]
)
def test_invalid_json(text: str | bytes) -> None:
    with pytest.raises(SerializationError):
        Pipeline.deserialize(text)


def test_graphs_that_dali_saved() -> None:
    """The hints say that these have another format in DALI."""
    protobuf = b"\x08\x04\x10\x03"
    with pytest.raises(SerializationError, match=r"(?s)it is not JSON.*What DALI serialized cannot be read"):
        Pipeline.deserialize(protobuf)
    with pytest.raises(CheckpointError, match=r"(?s)it is not JSON.*Checkpoints of DALI cannot be read"):
        pipeline_def(lambda: fn.random.uniform())(batch_size=2, num_threads=1, checkpoint=protobuf)


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 10**12}, {"num_threads": 10**9}, {"prefetch_queue_depth": 10**9}, {"py_num_workers": 10**9}],
)
def test_options_have_upper_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentValueError, match="at most"):
        several(**options)


def test_numbers_of_outputs_have_an_upper_bound() -> None:
    with pytest.raises(ArgumentValueError, match="between 0 and 65536; got 1000000000000"):
        fn.external_source(lambda: [], num_outputs=10**12)


@pytest.fixture
def files(tmp_path: Any) -> list[str]:
    for number in range(6):
        (tmp_path / f"{number}.dat").write_bytes(bytes([number] * 3))
    return [str(path) for path in sorted(tmp_path.iterdir())]


def reading(files: list[str]) -> Pipeline:
    pipe = Pipeline(batch_size=2, num_threads=1, seed=3)
    with pipe:
        data, _ = fn.readers.file(files=files, random_shuffle=True, pad_last_batch=True)
        numbers = fn.external_source(source=lambda number: np.full((2, 1), number, np.float32), batch=True)
        pipe.set_outputs(data, numbers, fn.random.uniform(range=[0.0, 1.0]))
    return pipe


def test_values_of_any_kind_in_a_state(files: list[str]) -> None:
    """With a correct checksum."""
    pipe = reading(files)
    pipe.run()
    whole = {name: value for name, value in pipe.state_dict().items() if name != "check"}
    draws = random.Random(2)
    for path in places(whole):
        for value in draws.sample(VALUES, 4):
            other = reading(files)
            if draws.random() < 0.5:
                other.build()
            try:
                other.load_state_dict(saving.sealed(changed(whole, path, value)))
                other.run()
            except (CheckpointError, StopIteration):
                continue


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("sources", 0, "num_shards"), 10**12),
        (("sources", 0, "left"), {"0": [[10**12, 1, 1]]}),
        (("sources", 0, "position"), 10**30),
        (("sources", 0, "epoch"), math.inf),
        (("sources", 0), None),
        (("sources",), []),
        (("sources", 1, "items"), 10**12),
        (("sources", 1, "iteration"), "x"),
        (("number",), -1),
        (("seed",), 2**70),
        (("graph", "joined"), 7),
        (("graph", "fn.readers.file"), "fe494da199"),
    ],
)
def test_states_with_invalid_values(files: list[str], path: tuple[Any, ...], value: Any) -> None:
    pipe = reading(files)
    pipe.run()
    state = {name: entry for name, entry in pipe.state_dict().items() if name != "check"}
    with pytest.raises(CheckpointError):
        reading(files).load_state_dict(saving.sealed(changed(state, path, value)))
    before = [np.asarray(sample).tolist() for sample in pipe.run()[0]]
    assert len(before) == 2


def test_names_of_any_characters() -> None:
    """Random numbers depend on names, including names that are not valid UTF-8."""
    pipe = Pipeline(batch_size=1, num_threads=1, seed=3)
    with pipe:
        pipe.set_outputs(fn.random.uniform(name="\ud800"), fn.random.uniform(name="☃"))
    again = Pipeline.deserialize(pipe.serialize())
    for one, other in zip(pipe.run(), again.run(), strict=True):
        np.testing.assert_array_equal(one.at(0), other.at(0))
