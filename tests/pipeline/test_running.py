"""Running a pipeline: batch by batch, with fed data, scheduled, iterated, and with errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
import dalify.math
from dalify import fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    BatchSizeError,
    DTypeError,
    LayoutError,
    PipelineStateError,
    ShapeError,
    UnknownInputError,
)
from dalify.pipeline import Pipeline
from dalify.pipeline.graph_definition import _INSTEAD
from dalify.types import SampleInfo


def counting(limit: int | None = None) -> Callable[[int], np.ndarray[Any, Any]]:
    """A source whose batch i is filled with i."""

    def source(iteration: int) -> np.ndarray[Any, Any]:
        if limit is not None and iteration >= limit:
            raise StopIteration
        return np.full((3, 2), iteration, np.int32)

    return source


def counted(limit: int | None = None, **options: Any) -> Pipeline:
    @pipeline_def(batch_size=3, num_threads=2)
    def numbers() -> Any:
        return fn.python_function(fn.external_source(counting(limit)), function=lambda x: x * 10)

    return numbers(**options)


def fed(**options: Any) -> Pipeline:
    @pipeline_def(batch_size=3, num_threads=2)
    def echo() -> Any:
        return fn.external_source(name="data"), fn.external_source(name="more", repeat_last=True)

    return echo(**options)


def first(outputs: Any) -> int:
    return int(outputs[0].as_array().flat[0])


OPTIONS = [
    {},
    {"prefetch_queue_depth": 1},
    {"prefetch_queue_depth": 5},
    {"prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 2}},
    {"exec_async": False},
    {"exec_pipelined": False},
    {"exec_async": False, "exec_pipelined": False},
    {"exec_dynamic": True},
    {"exec_dynamic": False},
    {"num_threads": 1},
    {"seed": 5, "set_affinity": True, "enable_memory_stats": True, "bytes_per_sample": 1000, "py_num_workers": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches_come_in_order(options: dict[str, Any]) -> None:
    pipe = counted(**options)
    assert [first(pipe.run()) for _ in range(20)] == list(range(0, 200, 10))


def test_first_run_asks_for_as_many_batches_as_the_queue_is_deep() -> None:
    asked: list[int] = []

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=3)
    def numbers() -> Any:
        def source(iteration: int) -> Any:
            asked.append(iteration)
            return np.zeros((1, 1), np.int32)

        return fn.external_source(source)

    pipe = numbers()
    pipe.build()
    assert asked == []
    pipe.run()
    assert asked == [0, 1, 2]


@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_end_of_data_repeats_until_reset(options: dict[str, Any]) -> None:
    pipe = counted(limit=3, **options)
    for _ in range(3):
        assert [first(pipe.run()) for _ in range(3)] == [0, 10, 20]
        for _ in range(3):
            with pytest.raises(StopIteration):
                pipe.run()
        pipe.reset()


def test_iteration_over_a_pipeline_is_one_epoch() -> None:
    pipe = counted(limit=4)
    for _ in range(3):
        assert [first(outputs) for outputs in pipe] == [0, 10, 20, 30]


def test_reset_in_the_middle_begins_again() -> None:
    pipe = counted(limit=5)
    pipe.run()
    pipe.reset()
    assert [first(outputs) for outputs in pipe] == [0, 10, 20, 30, 40]


# -- fed data ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"exec_async": False, "exec_pipelined": False}])
def test_run_with_data(options: dict[str, Any]) -> None:
    pipe = fed(**options)
    for number in range(5):
        data, more = pipe.run(data=np.full((2, 4), number, np.uint8), more=[np.zeros((1,)), np.ones((3,))])
        assert data.as_array().tolist() == [[number] * 4] * 2
        assert [tuple(shape) for shape in more.shape()] == [(1,), (3,)]


def test_run_with_data_is_refused_after_scheduled_batches() -> None:
    pipe = fed()
    for number in range(3):
        pipe.feed_input("data", np.full((1, 1), number))
        pipe.feed_input("more", np.zeros((1, 1)))
    assert first(pipe.run()) == 0
    with pytest.raises(PipelineStateError, match="prefetched"):
        pipe.run(data=np.zeros((1, 1)), more=np.zeros((1, 1)))
    with pytest.raises(UnknownInputError, match=r"no external_source 'dat'\. Did you mean 'data'"):
        pipe.run(dat=np.zeros((1, 1)))
    assert [first(pipe.run()) for _ in range(2)] == [1, 2]


def test_tracebacks_of_located_errors_end_where_they_are_raised_again() -> None:
    """The message has the line of the user; the frames below are those of the engine and of an operator."""

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe() -> Any:
        return fn.reshape(fn.external_source(lambda: np.zeros((2, 4))), shape=[3])

    with pytest.raises(ShapeError, match="cannot become") as caught:
        pipe().run()
    assert [Path(str(item.path)).name for item in caught.traceback][-2:] == ["engine.py", "first_error.py"]
    assert len(caught.traceback) < 10


def test_tracebacks_of_functions_of_the_user_are_complete() -> None:
    def divide(x: np.ndarray) -> Any:
        return x // 0 if x.ndim else 1 / 0

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe() -> Any:
        return fn.python_function(fn.external_source(lambda: np.zeros(2)), function=divide)

    with pytest.raises(ZeroDivisionError) as caught:
        pipe().run()
    assert caught.traceback[-1].name == "divide"


@pytest.mark.parametrize(
    ("use", "note"),
    [
        (lambda x: x.astype(np.float32), r"Instead of x\.astype, write fn\.cast\(x, dtype=types\.FLOAT\)"),
        (lambda x: x.mean(), r"Instead of x\.mean, write fn\.reductions\.mean\(x\)"),
        (lambda x: x.numpy(), r"it has no data while the pipeline is defined"),
    ],
)
def test_methods_of_arrays_are_explained(use: Callable[[Any], Any], note: str) -> None:
    with pytest.raises(AttributeError) as caught:
        pipeline_def(lambda: use(fn.external_source(lambda: np.zeros((2, 4)))), batch_size=2, num_threads=1)()
    assert re.search(note, caught.value.__notes__[0])


def test_a_method_that_is_not_called_is_no_output() -> None:
    with pytest.raises(ArgumentTypeError, match=r"of type method(?s:.*)Call the method: x\.shape\(\)\."):
        pipeline_def(lambda: fn.external_source(lambda: np.zeros((2, 4))).shape, batch_size=2, num_threads=1)()


@pytest.mark.parametrize("name", sorted(_INSTEAD))
def test_what_is_written_instead_works(name: str) -> None:
    scope = {"fn": fn, "types": types, "dalify": dalify, "low": 1, "high": 2}

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        scope["x"] = fn.external_source(lambda: np.zeros((2, 1, 4, 3)))
        return eval(_INSTEAD[name].partition(" or ")[0], scope)

    assert len(pipe().run()[0]) == 2


def test_feed_input_by_name_and_by_node() -> None:
    pipe = Pipeline(batch_size=4, num_threads=1)
    with pipe:
        node = fn.external_source(name="x")
        pipe.set_outputs(node)
    pipe.feed_input("x", np.arange(4, dtype=np.uint8).reshape(4, 1))
    pipe.feed_input(node, [np.array([9, 9], np.uint8)], layout="C")
    assert pipe.run()[0].as_array().ravel().tolist() == [0, 1, 2, 3]
    (last,) = pipe.run()
    assert last.layout() == "C"
    assert last.shape() == [(2,)]


def test_without_fed_data_the_error_names_feed_input() -> None:
    with pytest.raises(PipelineStateError, match="feed_input"):
        fed().run()


def test_unknown_input_names_the_known_ones() -> None:
    with pytest.raises(PipelineStateError, match="Did you mean 'data'"):
        fed(prefetch_queue_depth=1).run(dat=np.zeros((1, 1)))


def test_a_source_cannot_be_fed_by_hand() -> None:
    pipe = Pipeline(batch_size=4, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: np.zeros((4, 1)), name="x"))
    with pytest.raises(PipelineStateError, match="has a source and cannot be fed"):
        pipe.feed_input("x", np.zeros((1, 1)))


def test_batch_size_may_vary() -> None:
    sizes = [3, 1, 2, 3, 1]

    @pipeline_def(batch_size=3, num_threads=2)
    def varying() -> Any:
        data = fn.external_source(lambda i: np.zeros((sizes[i], 5), np.uint8) if i < 5 else _stop())
        return fn.python_function(data, function=lambda x: x + 1), types.Constant(7)

    assert [(len(data), len(constant)) for data, constant in varying()] == [(size, size) for size in sizes]


def _stop() -> Any:
    raise StopIteration


def test_too_large_a_batch_is_refused_and_the_next_one_comes() -> None:
    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def growing() -> Any:
        return fn.external_source(lambda i: np.full((3 if i == 1 else 2, 1), i, np.uint8))

    pipe = growing()
    assert first(pipe.run()) == 0
    with pytest.raises((BatchSizeError, ValueError), match="3"):
        pipe.run()
    assert first(pipe.run()) == 2


def test_sources_of_different_sizes_are_refused() -> None:
    pipe = Pipeline(batch_size=4, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: np.zeros((4, 1))), fn.external_source(lambda: np.zeros((3, 1))))
    with pytest.raises(BatchSizeError, match="different sizes"):
        pipe.run()


# -- schedule, share, release ------------------------------------------------------------------------------------------


def test_schedule_run_and_share_outputs() -> None:
    pipe = counted(limit=4)
    pipe.schedule_run()
    pipe.schedule_run()
    kept = pipe.share_outputs()
    pipe.release_outputs()
    pipe.schedule_run()
    assert [first(pipe.outputs()) for _ in range(2)] == [10, 20]
    assert first(kept) == 0
    pipe.schedule_run()
    pipe.schedule_run()
    assert first(pipe.outputs()) == 30
    assert pipe.empty()
    with pytest.raises(StopIteration):
        pipe.share_outputs()


def test_outputs_without_schedule() -> None:
    with pytest.raises(PipelineStateError, match="schedule_run"):
        counted().outputs()


def test_ways_to_run_cannot_be_mixed() -> None:
    pipe = counted()
    pipe.run()
    with pytest.raises(PipelineStateError, match="cannot be mixed"):
        pipe.schedule_run()
    pipe.enable_api_check(False)
    pipe.schedule_run()
    assert first(pipe.share_outputs()) == 10


# -- checks of outputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"output_dtype": types.FLOAT}, DTypeError),
        ({"output_ndim": 2}, ShapeError),
        ({"output_layout": "HW"}, LayoutError),
        ({"output_dtype": [types.UINT8]}, DTypeError),
    ],
)
def test_outputs_are_checked(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="output 0"):
        counted(**options).run()


def test_right_outputs_pass() -> None:
    pipe = counted(output_dtype=types.INT32, output_ndim=[1], output_layout=[None])
    pipe.run()
    assert pipe.output_dtype() == [types.INT32]
    assert pipe.output_ndim() == [1]


# -- errors in runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_an_error_fails_one_batch(options: dict[str, Any]) -> None:
    @pipeline_def(batch_size=3, num_threads=2)
    def failing() -> Any:
        def fragile(x: Any) -> Any:
            if x[0] == 2:
                raise ValueError("no twos")
            return x

        return fn.python_function(fn.external_source(counting(6)), function=fragile)

    pipe = failing(**options)
    found: list[Any] = []
    while True:
        try:
            found.append(first(pipe.run()))
        except StopIteration:
            break
        except ValueError as error:
            found.append(str(error))
            notes = "\n".join(error.__notes__)
            assert "fn.python_function" in notes
            assert "test_running.py" in notes
            assert "sample 0" in notes
    assert found == [0, 1, "no twos", 3, 4, 5]


def test_an_error_of_the_source_fails_one_batch() -> None:
    @pipeline_def(batch_size=3, num_threads=2)
    def failing() -> Any:
        def source(iteration: int) -> Any:
            if iteration == 1:
                raise OSError("the disk is tired")
            return counting(4)(iteration)

        return fn.external_source(source)

    pipe = failing()
    found: list[Any] = []
    for _ in range(5):
        try:
            found.append(first(pipe.run()))
        except OSError:
            found.append("error")
        except StopIteration:
            break
    assert found == [0, "error", 2, 3]


def test_sources_stay_in_step_when_one_of_them_fails() -> None:
    def fragile(iteration: int) -> Any:
        if iteration == 2:
            raise OSError("the disk is tired")
        return counting(5)(iteration)

    pipe = Pipeline(batch_size=3, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.external_source(fragile), fn.external_source(counting(5)))
    pairs = []
    for _ in range(5):
        try:
            one, other = pipe.run()
            pairs.append((one.as_array()[0, 0], other.as_array()[0, 0]))
        except OSError:
            pairs.append(())
    assert pairs == [(0, 0), (1, 1), (), (3, 3), (4, 4)]


def test_readers_stay_in_step_with_a_source_that_fails(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.bin" for number in range(8)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))

    def fragile(sample: SampleInfo) -> Any:
        if sample.iteration == 1:
            raise OSError("the disk is tired")
        return np.array([sample.idx_in_epoch])

    @pipeline_def(batch_size=2, num_threads=1)
    def both() -> Any:
        contents, _ = fn.readers.file(files=[str(file) for file in files])
        return contents, fn.external_source(fragile, batch=False)

    pipe = both()
    pairs: list[Any] = []
    for _ in range(4):
        try:
            contents, numbers = pipe.run()
            pairs.append((int(contents.as_array()[0, 0]), int(numbers.as_array()[0, 0])))
        except OSError:
            pairs.append(())
    assert pairs == [(0, 0), (), (4, 4), (6, 6)]


# -- threads -----------------------------------------------------------------------------------------------------------


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    results: list[Any] = [None] * len(functions)

    def call(index: int) -> None:
        results[index] = functions[index]()

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_two_pipelines_in_two_threads() -> None:
    pipes = counted(), counted()
    results = in_threads(*(lambda pipe=pipe: [first(pipe.run()) for _ in range(50)] for pipe in pipes))
    assert results == [list(range(0, 500, 10))] * 2


def test_one_pipeline_in_two_threads_gives_each_batch_once() -> None:
    pipe = counted()
    results = in_threads(*(lambda: [first(pipe.run()) for _ in range(50)],) * 2)
    assert sorted(results[0] + results[1]) == list(range(0, 1000, 10))
    assert results[0] == sorted(results[0])


@pytest.mark.parametrize(
    ("use", "debug"), [("run", False), ("run", True), ("reset", False), ("state_dict", False), ("schedule_run", False)]
)
def test_a_function_must_not_use_its_own_pipeline(use: str, debug: bool) -> None:
    """It would wait for itself."""

    def function(x: np.ndarray) -> np.ndarray:
        if x[0] == 10:
            getattr(pipe, use)()
        return x

    @pipeline_def(batch_size=3, num_threads=1)
    def calling() -> Any:
        batches = fn.external_source(lambda number: np.full((3, 1), number * 10, np.int32))
        return fn.python_function(batches, function=function)

    pipe = calling(debug=debug)
    assert first(pipe.run()) == 0
    with pytest.raises(PipelineStateError, match="the function uses the pipeline that is calling it"):
        pipe.run()
    assert first(pipe.run()) == 20


def test_a_function_is_not_called_for_the_other_samples_of_a_discarded_batch() -> None:
    """The end of a program, or of a pipeline, waits for the function."""
    called: list[int] = []
    is_called, may_end = threading.Event(), threading.Event()

    def function(x: np.ndarray) -> np.ndarray:
        called.append(int(x[0]))
        if x[0] == 1:
            is_called.set()
            assert may_end.wait(60)
        return x

    @pipeline_def(batch_size=3, num_threads=1, prefetch_queue_depth=2)
    def calling() -> Any:
        numbers = iter(range(100))
        batches = fn.external_source(lambda: np.full((3, 1), next(numbers), np.int32))
        return fn.python_function(batches, function=function)

    pipe = calling()
    assert first(pipe.run()) == 0
    assert is_called.wait(60)
    pipe.reset()
    may_end.set()
    assert first(pipe.run()) == 2
    assert called[:7] == [0, 0, 0, 1, 2, 2, 2]


def test_definitions_in_two_threads_are_independent() -> None:
    def define() -> int:
        return len({id(Pipeline.current()) for _ in range(20) if isinstance(counted(), Pipeline)})

    assert in_threads(define, define) == [1, 1]


def test_several_pipelines_take_turns() -> None:
    pipes = [counted(prefetch_queue_depth=depth) for depth in (1, 2, 3)]
    for number in range(5):
        assert [first(pipe.run()) for pipe in pipes] == [number * 10] * 3


def generator_of_batches() -> Iterator[np.ndarray[Any, Any]]:
    yield from (np.full((3, 1), number, np.int32) for number in range(3))


def test_two_epochs_of_a_generator_function() -> None:
    pipe = Pipeline(batch_size=3, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.external_source(generator_of_batches, cycle="raise"))
    assert [[first(outputs) for outputs in pipe] for _ in range(3)] == [[0, 1, 2]] * 3
