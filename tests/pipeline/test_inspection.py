"""Serialization of graphs, and information about pipelines."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, StreamPolicy, fn, pipeline_def, types
from dalify.base.errors import ArgumentTypeError, NoDataError, PipelineStateError, SerializationError
from dalify.registry import catalog


@pipeline_def(batch_size=3, num_threads=2, seed=11)
def branching() -> Any:
    data = fn.external_source(name="data", layout="HW", dtype=types.FLOAT)
    flip = fn.external_source(name="flip", ndim=0, dtype=types.BOOL)
    if flip:  # noqa: SIM108 -- an if statement is what is written down
        data = data * 2 + types.Constant(np.ones((1, 2), np.float32))
    else:
        data = -data
    return data, fn.random.uniform(range=[0, 1])


def run(pipe: Pipeline) -> list[np.ndarray[Any, Any]]:
    data = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    return [output.as_array() for output in pipe.run(data=data, flip=np.array([True, False, True]))]


def test_a_graph_with_branches_can_be_serialized() -> None:
    text = branching().serialize()
    again = Pipeline.deserialize(text)
    for found, wanted in zip(run(again), run(branching()), strict=True):
        np.testing.assert_array_equal(found, wanted)
    json.loads(text)


def test_random_numbers_depend_on_the_order_of_definition_not_on_that_of_the_graph() -> None:
    @pipeline_def(batch_size=4, num_threads=1, seed=11)
    def drawing() -> Any:
        first, second, third = (fn.random.uniform(range=[0, 1]) for _ in range(3))
        return third, first - second

    again = Pipeline.deserialize(drawing().serialize())
    for found, wanted in zip(again.run(), drawing().run(), strict=True):
        np.testing.assert_array_equal(found.as_array(), wanted.as_array())


def test_constants_keep_their_types() -> None:
    values = [types.FLOAT, [types.INTERP_CUBIC, types.INTERP_NN], types.GRAY, np.uint16([3]), np.float64(2), True]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def constants() -> Any:
        return tuple(fn.copy(value) for value in values)

    with constants() as pipe, Pipeline.deserialize(pipe.serialize()) as loaded:
        for expected, found in zip(pipe.run(), loaded.run(), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(found.at(1)), np.asarray(expected.at(1)))


def test_deserialize_and_build_fills_an_empty_pipeline() -> None:
    pipe = Pipeline(batch_size=5, num_threads=1, seed=11)
    pipe.deserialize_and_build(branching().serialize())
    assert pipe.max_batch_size == 5
    np.testing.assert_array_equal(run(pipe)[0], run(branching())[0])
    with pytest.raises(PipelineStateError, match="already has a graph"):
        pipe.deserialize_and_build(branching().serialize())


def test_functions_cannot_be_serialized() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def with_callback() -> Any:
        return fn.external_source(source=lambda: np.zeros((2, 2)))

    with pytest.raises(SerializationError, match="source is a Python function") as caught:
        with_callback().serialize()
    assert "test_inspection.py" in str(caught.value)


def test_callbacks_of_named_sources_are_left_out() -> None:
    """As in DALI: the program feeds what it has read, in whole batches."""

    @pipeline_def(batch_size=2, num_threads=1)
    def with_callback() -> Any:
        options: dict[str, Any] = {"batch": False, "layout": "A", "dtype": types.INT32}
        return fn.external_source(source=lambda _: np.int32([7]), name="numbers", **options)

    pipe = Pipeline.deserialize(with_callback().serialize())
    pipe.feed_input("numbers", [np.int32([1]), np.int32([2])])
    (batch,) = pipe.run()
    assert (batch.as_array().tolist(), batch.layout()) == ([[1], [2]], "A")
    with pytest.raises(NoDataError, match="no data were fed to the external_source 'numbers'"):
        pipe.run()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.update(format="something else"),
        lambda data: data["nodes"][-1].update(inputs=[[99, 0]]),
        lambda data: data["nodes"][0].update(operator="os.system"),
        lambda data: data["nodes"][0]["arguments"].update(nonsense=1),
        lambda data: data.pop("outputs"),
        lambda data: data["nodes"][0].update(made=7),
        lambda data: data["nodes"][0].update(made="a"),
        lambda data: data["branches"][0].update(taken=-1),
    ],
)
def test_damaged_strings_are_rejected(damage: Any) -> None:
    data = json.loads(branching().serialize())
    damage(data)
    with pytest.raises(Exception, match=r".") as caught:
        Pipeline.deserialize(json.dumps(data))
    assert type(caught.value).__module__ == "dalify.base.errors"


@pytest.mark.parametrize("text", [5, {}, Path("graph.json")])
def test_a_serialized_pipeline_is_a_text(text: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be bytes or a string; got .*\n  test_inspection"):
        Pipeline.deserialize(text)


def _text(operator: str, outputs: int = 1, **arguments: Any) -> str:
    """Return a serialized graph of one operator, like one from another source."""
    data = json.loads(branching().serialize())
    node = {**data["nodes"][0], "operator": operator, "arguments": arguments, "outputs": outputs, "branch": None}
    node.update(inputs=[], made=0, name=None)
    return json.dumps({**data, "nodes": [node], "branches": [], "outputs": [[0, 0]], "sinks": []})


def _dumping() -> str:
    @pipeline_def(batch_size=2, num_threads=1)
    def graph() -> Any:
        return fn.dump_image(fn.external_source(name="data", ndim=3, dtype=types.UINT8, layout="HWC"))

    return graph().serialize().decode()


_LISTS: dict[str, Any] = {
    **{key: {"items": [{"enum": "DALIDataType", "value": 0}]} for key in ("out_types", "in_types")},
    **{key: {"items": [1]} for key in ("outs_ndim", "ins_ndim")},
}


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        (_dumping(), "writes files"),
        (_text("python_function", function="os.system"), "runs Python code"),
        (_text("dl_tensor_python_function", function="os.system"), "runs Python code"),
        (_text("experimental.numba_function", run_fn="os.system", **_LISTS), "runs Python code"),
        (_text("experimental._numba_batch_function", run_fn="os.system", **_LISTS), "runs Python code"),
        (_text("external_source", source="os.system"), "runs Python code"),
        (_text("readers.dataset", outputs=2, dataset="os.system"), "runs Python code"),
        (
            _text(
                "readers.coco",
                outputs=3,
                file_root=".",
                annotations_file="a.json",
                save_preprocessed_annotations=True,
                save_preprocessed_annotations_dir="saved",
            ),
            "writes files",
        ),
    ],
    ids=lambda value: json.loads(value)["nodes"][-1]["operator"] if value.startswith("{") else value,
)
def test_operators_with_side_effects_are_refused_from_elsewhere(text: str, effect: str) -> None:
    with pytest.raises(SerializationError, match=f"has an operator that {effect}") as caught:
        Pipeline.deserialize(text)
    assert "allow_side_effects=True" in str(caught.value)
    with pytest.raises(SerializationError, match="allow_side_effects=True"):
        Pipeline(batch_size=2, num_threads=1).deserialize_and_build(text)
    Pipeline.deserialize(text, allow_side_effects=True)


def test_every_operator_that_calls_users_or_has_effects_says_so() -> None:
    """The permissions of a serialized graph depend on properties of operators, not on their names."""
    for operator in map(catalog.find, catalog.names()):
        if operator.runs_user_code or operator.has_side_effect:
            given = dict.fromkeys(operator.parameters, "given")
            assert operator.effect(given), operator.name
        elif operator.effect_function is None:
            assert not operator.effect({})


@pytest.mark.parametrize("options", [{"limits": {"max_sample_bytes": 1 << 60}}, {"py_callback_pickler": "os"}, 7])
def test_options_that_are_never_saved_are_refused(options: Any) -> None:
    data = json.loads(branching().serialize())
    data["options"] = {**data["options"], **options} if isinstance(options, dict) else options
    with pytest.raises(SerializationError, match="options are not options of a pipeline"):
        Pipeline.deserialize(json.dumps(data))


def test_properties() -> None:
    pipe = branching(prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}, stream_policy=StreamPolicy.SINGLE)
    assert (pipe.cpu_queue_size, pipe.gpu_queue_size, pipe.exec_separated) == (3, 2, True)
    assert pipe.stream_policy is StreamPolicy.SINGLE
    assert (pipe.max_batch_size, pipe.num_threads, pipe.seed, pipe.num_outputs) == (3, 2, 11, 2)
    assert not branching().exec_separated


def test_properties_without_effect() -> None:
    pipe = branching()
    assert (pipe.max_streams, pipe.default_cuda_stream_priority) == (-1, 0)
    run(pipe)
    assert pipe.executor_statistics() == {}
    assert pipe.external_source_shm_statistics() == {"capacities": [], "per_sample_capacities": []}


def test_drawings_are_written(tmp_path: Path) -> None:
    pipe = branching()
    pipe.save_graph_to_svg_file(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text() == pipe._repr_svg_()
    with pytest.warns(DeprecationWarning, match="show_ids"):
        pipe.save_graph_to_dot_file(str(tmp_path / "graph.dot"), show_ids=True)
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")


@pytest.mark.parametrize(
    "write",
    [
        Pipeline.save_graph_to_svg_file,
        Pipeline.save_graph_to_dot_file,
        lambda pipe, path: pipe.serialize(filename=path),
    ],
    ids=["svg", "dot", "serialize"],
)
def test_written_files_are_complete(
    write: Callable[[Pipeline, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error, such as a full disk, leaves the previous file."""
    path = tmp_path / "graph"
    path.write_bytes(b"before")

    def fail(*_: object) -> None:
        assert path.read_bytes() == b"before"
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="the disk is full"):
            write(branching(), path)
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"before"]
    write(branching(), path)
    assert len(path.read_bytes()) > 100


def test_old_names_of_methods() -> None:
    pipe = branching()
    pipe.feed_input("data", np.zeros((3, 2, 2), np.float32))
    pipe.feed_input("flip", np.array([True, False, True]))
    with pytest.warns(DeprecationWarning, match=r"schedule_run\(\)"):
        pipe._run()
    with pytest.warns(DeprecationWarning, match=r"share_outputs\(\)"):
        assert len(pipe._share_outputs()) == 2
    with pytest.warns(DeprecationWarning, match=r"release_outputs\(\)"):
        pipe._release_outputs()


def test_values_of_a_graph_say_what_is_known() -> None:
    value = fn.external_source(name="data", layout="HW", dtype=types.FLOAT)
    assert (value.ndim, value.layout, value.dtype, value.source) == (2, "HW", types.FLOAT, value.edge.node.operator)
    assert value.source_info().edge.node.operator.public_name == "fn.get_property"


def test_no_pipeline_to_pop() -> None:
    with pytest.raises(PipelineStateError, match="no current pipeline"):
        Pipeline.pop_current()


def _one(_: Any) -> np.ndarray[Any, Any]:
    return np.ones(5000, np.uint8)


def test_shared_memory_is_reported() -> None:
    @pipeline_def(batch_size=4, num_threads=1, py_num_workers=1, py_start_method="fork")
    def parallel() -> Any:
        return fn.external_source(source=_one, parallel=True, batch=False)

    pipe = parallel()
    assert pipe.external_source_shm_statistics()["capacities"] == []
    pipe.run()
    reported = pipe.external_source_shm_statistics()
    assert max(reported["capacities"]) >= 4 * 5000
    assert reported["per_sample_capacities"] == [-(-size // 4) for size in reported["capacities"]]
    pipe.close()


def test_a_pipeline_has_what_dali_has(oracle: Any) -> None:
    theirs = {name for name in dir(oracle.Pipeline) if not name.startswith("_")}
    assert theirs <= set(dir(Pipeline))


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pipelines_are_not_pickled(duplicate: Callable[[Any], Any]) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def numbers() -> Any:
        return fn.random.uniform(range=(0.0, 1.0))

    pipe = numbers(seed=3)
    with pytest.raises(SerializationError, match=r"serialize\(\).*state_dict\(\)"):
        duplicate(pipe)
    again = Pipeline.deserialize(pipe.serialize())  # as the message says
    assert again.run()[0].as_array().tolist() == pipe.run()[0].as_array().tolist()
