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
