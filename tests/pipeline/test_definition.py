"""Supported code in a pipeline function, and messages for errors in it."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from dalify import fn, ops, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    GraphError,
    IntegerRangeError,
    NoGraphError,
    PipelineStateError,
    SerializationError,
    ShapeError,
    UnknownArgumentError,
)
from dalify.pipeline import Pipeline
from tests.helpers.messages import own_text


def source() -> np.ndarray[Any, Any]:
    return np.arange(6, dtype=np.int32).reshape(3, 2)


def run(definition: Any, **options: Any) -> list[Any]:
    made = pipeline_def(definition)(**{"batch_size": 3, "num_threads": 1, **options})
    return [output.as_array().tolist() for output in made.run()]


def test_outputs_in_all_forms() -> None:
    data = source().tolist()
    assert run(lambda: fn.external_source(source)) == [data]
    assert run(lambda: (fn.external_source(source), 5)) == [data, [5] * 3]
    assert run(lambda: [fn.external_source(source), 2.5, True]) == [data, [2.5] * 3, [True] * 3]
    assert run(lambda: (fn.external_source(source), np.array([1, 2], np.uint8))) == [data, [[1, 2]] * 3]
    assert run(lambda: (fn.external_source(source), [1, 2])) == [data, [[1, 2]] * 3]
    assert run(lambda: (fn.external_source(source), types.Constant(3, dtype=types.UINT8))) == [data, [3] * 3]
    assert run(lambda: tuple(fn.external_source(lambda: (source(), source()), num_outputs=2))) == [data, data]


def test_one_node_as_two_outputs() -> None:
    def twice() -> Any:
        node = fn.external_source(source)
        return node, node

    assert run(twice) == [source().tolist()] * 2


def test_constants_alone() -> None:
    assert run(lambda: 7) == [[7] * 3]


@pytest.mark.parametrize("value", [{"a": 1}, "text", object()])
def test_outputs_of_other_types(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="output 1"):
        run(lambda: (fn.external_source(source), value))


def test_nested_outputs_say_how_to_unpack() -> None:
    with pytest.raises(GraphError, match="star"):
        run(lambda: (fn.external_source(source), (fn.external_source(source),)))


def test_arguments_of_function_and_pipeline() -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def scaled(factor: int, *rest: int, offset: int = 0) -> Any:
        return fn.external_source(source) * factor + offset + sum(rest)

    made = scaled(2, 10, 20, offset=3, seed=7, num_threads=2)
    assert made.run()[0].as_array()[0].tolist() == [33, 35]
    assert (made.seed, made.num_threads, made.max_batch_size) == (7, 2, 3)


def test_an_argument_of_the_function_comes_first() -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def own(seed: int) -> Any:
        return fn.external_source(source) + seed

    assert own(seed=5).run()[0].as_array()[0, 0] == 5


def test_a_method_without_outputs_is_quoted() -> None:
    class Empty(Pipeline):
        def define_graph(self) -> Any:
            fn.external_source(source)

    pipe = Empty(batch_size=3, num_threads=1)
    with pytest.raises(NoGraphError, match=r"(?s)no outputs.*in define_graph\(\)\s+def define_graph\(self\)"):
        pipe.build()


def test_unknown_arguments() -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def plain(folder: str) -> Any:
        return fn.external_source(source)

    with pytest.raises(UnknownArgumentError, match=r"(?s)'num_thread'.*Did you mean 'num_threads'.*test_definition.py"):
        plain("x", num_thread=4)
    with pytest.raises(UnknownArgumentError, match="Did you mean 'folder'"):
        plain(foldr="x")
    with pytest.raises(UnknownArgumentError, match="Did you mean 'prefetch_queue_depth'"):
        Pipeline(batch_size=1, num_threads=1, prefetch_queue_dept=1)


def test_variadic_keywords_are_refused() -> None:
    """Errors are raised when a pipeline is created, so a module that only defines the function can be imported."""

    @pipeline_def
    def loose(**options: Any) -> Any:
        return fn.external_source(source)

    with pytest.raises(ArgumentTypeError, match=r"\*\*options"):
        loose(batch_size=1, num_threads=1)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_size": 0}, ArgumentValueError, "batch_size must be at least 1"),
        ({"batch_size": 2.5}, ArgumentTypeError, "batch_size must be an integer"),
        ({"batch_size": None}, ArgumentTypeError, "requires batch_size"),
        ({"num_threads": 0}, ArgumentValueError, "num_threads must be at least 1"),
        ({"prefetch_queue_depth": 0}, ArgumentValueError, "prefetch_queue_depth"),
        ({"prefetch_queue_depth": {"cpu": 1}}, ArgumentValueError, "cpu_size"),
        ({"py_start_method": "thread"}, ArgumentValueError, "must be one of fork, spawn, forkserver"),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Pipeline(**{"batch_size": 2, "num_threads": 1, **options})


def test_retired_options_are_taken_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="max_streams"):
        Pipeline(batch_size=1, num_threads=1, max_streams=2)


def test_current_pipeline() -> None:
    assert Pipeline.current() is None
    seen = []

    @pipeline_def(batch_size=3, num_threads=1)
    def outer() -> Any:
        seen.append(Pipeline.current())
        inner = Pipeline(batch_size=1, num_threads=1)
        with inner:
            seen.append(Pipeline.current())
        seen.append(Pipeline.current())
        seen.append(inner)
        return fn.external_source(source)

    made = outer()
    assert seen == [made, seen[3], made, seen[3]]
    assert Pipeline.current() is None


def test_current_pipeline_after_an_error_in_the_definition() -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def broken() -> Any:
        raise RuntimeError("in the definition")

    with pytest.raises(RuntimeError, match="in the definition"):
        broken()
    assert Pipeline.current() is None


def test_operators_need_no_pipeline() -> None:
    node = fn.external_source(source) + 1
    made = Pipeline(batch_size=3, num_threads=1)
    made.set_outputs(node)
    assert made.run()[0].as_array().tolist() == (source() + 1).tolist()


def test_subclass_with_define_graph_and_iter_setup() -> None:
    class Old(Pipeline):
        def __init__(self, batch_size: int, num_threads: int) -> None:
            super().__init__(batch_size, num_threads, seed=1)
            self.number = 0

        def define_graph(self) -> Any:
            self.data = fn.external_source(name="data")
            return self.data, self.data * 2

        def iter_setup(self) -> None:
            self.feed_input(self.data, np.full((2, 1), self.number, np.int32))
            self.number += 1

    made = Old(2, 1)
    made.build()
    for number in range(5):
        assert [output.as_array().ravel().tolist() for output in made.run()] == [[number] * 2, [2 * number] * 2]


@pytest.mark.parametrize("method", ["build", "run", "feed_input", "epoch_size", "reader_meta", "reset", "serialize"])
def test_a_function_that_was_not_called_says_so(method: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def training() -> Any:
        return fn.random.uniform()

    with pytest.raises(AttributeError, match=r"pipe = training\(\); pipe\." + method):
        getattr(training, method)("x", data=3)
    assert hasattr(Pipeline, method)


def test_a_pipeline_without_outputs_says_what_to_do() -> None:
    with pytest.raises(PipelineStateError, match="pipeline_def"):
        Pipeline(batch_size=1, num_threads=1).run()


def test_sinks_are_run() -> None:
    seen: list[int] = []
    made = Pipeline(batch_size=3, num_threads=1)
    with made:
        data = fn.external_source(source)
        made.set_outputs(data)
        made.add_sink(fn.python_function(data, function=lambda x: seen.append(int(x[0])) or x))
    made.run()
    assert seen[:3] == [0, 2, 4]


def test_operators_that_no_output_needs_do_not_run() -> None:
    def unused() -> Any:
        fn.external_source(lambda: 1 / 0)
        return fn.external_source(source)

    assert run(unused) == [source().tolist()]


def test_names_of_readers_and_inputs_in_messages() -> None:
    made = Pipeline(batch_size=3, num_threads=1)
    made.set_outputs(fn.external_source(source))
    with pytest.raises(PipelineStateError, match="no reader 'Reader'"):
        made.reader_meta("Reader")
    assert made.reader_meta() == {}
    assert made.epoch_size() == {}


def test_a_pipeline_is_usable_after_an_error_while_building() -> None:
    made = Pipeline(batch_size=3, num_threads=1)
    with pytest.raises(PipelineStateError):
        made.build()
    made.set_outputs(fn.external_source(source))
    assert made.run()[0].as_array().tolist() == source().tolist()


@pytest.mark.parametrize(
    ("mistake", "error", "text"),
    [
        (lambda: fn.random.uniform(seed="a"), ArgumentTypeError, "seed must be an integer; got 'a'"),
        (lambda: fn.random.uniform(seed=0.5), ArgumentTypeError, "seed must be an integer; got 0.5"),
        (lambda: fn.random.uniform(seed=fn.random.coin_flip()), ArgumentTypeError, "seed must be an integer"),
        (
            lambda: fn.cast(source(), dtype=types.FLOAT, output_dtype=types.INT64),
            ArgumentTypeError,
            "both were specified",
        ),
        (lambda: fn.random.uniform(name=3), ArgumentTypeError, "name must be a string; got 3"),
        (lambda: fn.cast(source(), dtype=3.5), ArgumentValueError, "dtype must be one of types.UINT8"),
        (lambda: fn.cast(source(), dtype=[1]), ArgumentValueError, "dtype must be one of types.UINT8"),
        (lambda: fn.cast(source(), dtype=dict), DTypeError, "type object are not supported"),
        (lambda: fn.external_source(source, source=source), ArgumentTypeError, "source was specified twice"),
        (lambda: ops.ExternalSource(source, source=source)(), ArgumentTypeError, "source was specified twice"),
        (lambda: ops.ExternalSource(source, *range(20))(), ArgumentTypeError, "20|21"),
        (lambda: fn.random.uniform() + 2**40, IntegerRangeError, "types.INT64"),
        (lambda: fn.random.uniform() + 2**40, OverflowError, "int32"),  # which is what DALI raises
        (lambda: fn.copy([2**63]), IntegerRangeError, "types.INT64"),
        (lambda: fn.copy([1, 2**70]), IntegerRangeError, "does not fit int32"),
    ],
)
def test_errors_have_our_message_and_the_users_line(mistake: Any, error: type, text: str) -> None:
    with pytest.raises(error) as caught:
        run(mistake)
    assert re.search(text, own_text(caught.value))
    assert "test_definition.py" in str(caught.value)


def test_a_seed_without_effect_is_reported_at_the_users_line() -> None:
    with pytest.warns(DeprecationWarning, match="is not random") as caught:
        run(lambda: fn.flip(np.zeros((2, 2, 3), np.uint8), seed=4))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: types.Constant(5, shape=[2]), np.array([5, 5], np.int32)),
        (lambda: types.Constant([1.5, 2.5], shape=[2, 1]), np.array([[1.5], [2.5]], np.float32)),
        (lambda: types.Constant(True, shape=[1, 2]), np.array([[True, True]])),
        (lambda: types.Constant(7, shape=[2], dtype=types.UINT8), np.array([7, 7], np.uint8)),
        (lambda: types.Constant(np.zeros(2), shape=[2, 1]), np.zeros((2, 1))),
    ],
)
def test_constants_of_a_shape_have_the_type_of_their_numbers(make: Any, wanted: np.ndarray[Any, Any]) -> None:
    made = pipeline_def(make)(batch_size=2, num_threads=1)
    found = made.run()[0].at(0)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("dtype", "floats", "integers"),  # the results of the real DALI
    [
        (types.UINT8, [3, 4, 0, 255, 255], [255, 255, 0]),
        (types.INT8, [3, 4, -2, 127, 127], [127, 127, -128]),
        (types.UINT16, [3, 4, 0, 301, 65535], [61072, 300, 0]),
        (types.INT32, [3, 4, -2, 301, 2**31 - 1], [61072, 300, -300]),
        (types.INT64, [3, 4, -2, 301, 10**10], [61072, 300, -300]),
        (types.FLOAT16, [2.5, 3.5, -1.5, 300.75, float("inf")], [61088, 300, -300]),
        (types.FLOAT, [2.5, 3.5, -1.5, np.float32(300.7), 1e10], [61072, 300, -300]),
        (types.BOOL, [True] * 5, [True] * 3),
    ],
)
@pytest.mark.parametrize("kind", [list, np.array])
def test_constants_are_rounded_and_saturated(dtype: Any, floats: list[float], integers: list[int], kind: Any) -> None:
    def constants() -> tuple[Any, ...]:
        values = kind([2.5, 3.5, -1.5, 300.7, 1e10]), kind([61072, 300, -300])
        return tuple(types.Constant(value, dtype=dtype) for value in values)

    found = pipeline_def(constants)(batch_size=2, num_threads=1).run()
    for batch, wanted in zip(found, (floats, integers), strict=True):
        np.testing.assert_array_equal(batch.at(1), np.array(wanted, dtype.numpy))


def test_constants_that_cannot_be_are_refused() -> None:
    with pytest.raises(OverflowError, match="300 is out of range for uint8"):
        run(lambda: fn.constant(idata=[1], dtype=types.UINT8) + types.Constant(300, dtype=types.UINT8))
    with pytest.raises(ShapeError, match=r"3 elements.*\(2,\)"):
        types.Constant([1, 2, 3], shape=[2])
    with pytest.raises(ArgumentTypeError, match=r"types\.FLOAT"):
        types.Constant(1, dtype=np.float32)


def test_outputs_set_last_count() -> None:
    made = Pipeline(batch_size=3, num_threads=1)
    with made:
        data = fn.external_source(source)
        made.set_outputs(data)
    assert made.num_outputs == 1
    made.set_outputs(data, data + 1)
    assert made.num_outputs == 2
    assert len(made.run()) == 2


def test_a_graph_given_to_serialize_may_return_one_value() -> None:
    text = Pipeline(batch_size=2, num_threads=1, seed=1).serialize(define_graph=lambda: fn.random.uniform())
    assert Pipeline.deserialize(text).num_outputs == 1


def test_outputs_are_fixed_once_the_pipeline_is_built() -> None:
    made = pipeline_def(lambda: fn.external_source(source))(batch_size=3, num_threads=1)
    made.build()
    with pytest.raises(PipelineStateError, match="after it is built"):
        made.set_outputs(fn.external_source(source))


@pytest.mark.parametrize(
    "options", [{"output_dtype": [types.INT32] * 2}, {"output_ndim": []}, {"output_layout": ["C", "C"]}]
)
def test_the_number_of_expectations_equals_that_of_outputs(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentValueError, match="but the pipeline has 1 output"):
        run(lambda: fn.external_source(source), **options)


def test_numbers_of_numpy_are_numbers_of_a_pipeline() -> None:
    made = Pipeline(batch_size=np.int64(2), num_threads=np.int32(1), seed=np.int16(7))
    assert (made.max_batch_size, made.num_threads, made.seed) == (2, 1, 7)


@pytest.mark.parametrize("options", [{"seed": True}, {"batch_size": True}, {"output_dtype": np.float32}])
def test_options_of_another_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentTypeError, match=next(iter(options))):
        Pipeline(**{"batch_size": 2, "num_threads": 1, **options})


def changed(text: bytes, change: Any) -> bytes:
    data = json.loads(text)
    change(data)
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["nodes"][0].update(device="tpu"),
        lambda data: data.update(options=5),
        lambda data: data.update(outputs=[[7, 0]]),
        lambda data: data.pop("nodes"),
    ],
)
def test_a_damaged_string_is_not_a_pipeline(change: Any) -> None:
    text = pipeline_def(lambda: fn.random.uniform())(batch_size=1, num_threads=1).serialize()
    with pytest.raises(SerializationError, match="damaged"):
        Pipeline.deserialize(changed(text, change))
