"""Functions that run other pipelines."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import PipelineStateError
from dalify.pipeline import Pipeline, waiting
from tests.helpers.programs import finished

NEVER = 1000


def chain(starts: list[int]) -> list[Pipeline]:
    """Return pipelines whose functions run the next pipeline from a batch on; the last one runs the first."""
    pipes: list[Pipeline] = []

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def calling(number: int) -> Any:
        def function(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            if x[0] >= starts[number]:
                pipes[(number + 1) % len(pipes)].run()
            return x

        counter = itertools.count()
        return fn.python_function(
            fn.external_source(lambda: np.full((2, 1), next(counter), np.int32)), function=function
        )

    pipes.extend(calling(number) for number in range(len(starts)))
    return pipes


def _run_often(pipe: Pipeline) -> None:
    for _ in range(20):
        pipe.run()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("starts", [[0, 0], [2, 0], [1, 3], [0, 0, 0], [3, 1, 0], [0, 0, 0, 0]])
def test_functions_that_run_each_others_pipeline(starts: list[int]) -> None:
    pipes = chain(starts)
    with pytest.raises(PipelineStateError, match="the function uses a pipeline that waits for this function") as error:
        _run_often(pipes[0])
    assert "test_waiting.py" in str(error.value)
    for pipe in pipes:
        pipe.close()
    assert not waiting._awaited


def cycle(kinds: list[str], following: list[int]) -> list[Pipeline]:
    """Return pipelines that call a function in a thread, as a source, in debug mode, or as a source in debug mode.

    Args:
        kinds: how each pipeline calls its function.
        following: the pipeline that each function runs; -1 for none.
    """
    pipes: list[Pipeline] = []

    def pipeline_of(kind: str, other: int) -> Pipeline:
        def follow() -> Any:
            if other >= 0:
                pipes[other].run()
            return np.zeros((2, 1), np.int32)

        def follow_with(x: Any) -> Any:
            follow()
            return x

        @pipeline_def(batch_size=2, num_threads=1, device_id=None, debug="debug" in kind)
        def defined() -> Any:
            if kind == "thread":
                return fn.python_function(fn.zeros(shape=1), function=follow_with)
            if "source" in kind:
                return fn.external_source(follow)
            follow()
            return fn.zeros(shape=1)

        return defined()

    pipes.extend(pipeline_of(kind, other) for kind, other in zip(kinds, following, strict=True))
    return pipes


CYCLE = r"wait for (itself|each other)|the pipeline that is calling it"
KINDS = ["thread", "source", "debug", "debug source"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("count", [2, 3])
def test_cycles_of_sources_and_of_functions_in_debug_mode(count: int) -> None:
    for kinds in itertools.product(KINDS, repeat=count):
        pipes = cycle([*kinds], [*range(1, count), 0])
        for _ in range(2):
            with pytest.raises(
                PipelineStateError, match=r"wait for (itself|each other)|the pipeline that is calling it"
            ):
                pipes[0].run()
        for pipe in pipes:
            pipe.close()
    assert not waiting._awaited
    assert not waiting._calling


@pytest.mark.timeout(60)
@pytest.mark.parametrize("count", [2, 3])
def test_chains_of_sources_and_of_functions_in_debug_mode(count: int) -> None:
    for kinds in itertools.product(KINDS, repeat=count):
        pipes = cycle([*kinds], [*range(1, count), -1])
        for _ in range(3):
            assert pipes[0].run()[0].as_cpu().as_array().shape == (2, 1)
        for pipe in reversed(pipes):
            pipe.close()
    assert not waiting._awaited
    assert not waiting._calling


@pytest.mark.timeout(60)
def test_functions_may_run_other_pipelines() -> None:
    pipes = chain([0, 0, NEVER])
    assert [int(pipes[0].run()[0].as_cpu().as_array()[0, 0]) for _ in range(4)] == [0, 1, 2, 3]
    for pipe in reversed(pipes):
        pipe.close()


def test_a_program_ends_while_functions_run_other_pipelines() -> None:
    program = """
        from tests.pipeline.test_waiting import chain

        pipes = chain([0, 0, 1000])
        print([int(pipes[0].run()[0].as_array()[0, 0]) for _ in range(3)])
    """
    code, output, errors = finished(program)
    assert (code, output.strip(), errors) == (0, "[0, 1, 2]", "")
