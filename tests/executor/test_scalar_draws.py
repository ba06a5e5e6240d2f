"""Random operators that draw one number for each sample are computed together, with the numbers of their kernels."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager, fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError
from dalify.executor.scalar_draws_step import ScalarDrawsStep
from dalify.pipeline.pipeline import parts_of
from tests.helpers.messages import own_text

BATCH_SIZE = 9

JOINED = {
    "default range": lambda: fn.random.uniform(),
    "a range": lambda: fn.random.uniform(range=[0.25, 0.5]),
    "the next number is the end": lambda: fn.random.uniform(
        range=[1.0, float(np.nextafter(np.float32(1), np.float32(2)))]
    ),
    "infinite width": lambda: fn.random.uniform(range=[-3e38, 3e38]),
    "a seed": lambda: fn.random.uniform(seed=2**63 + 5),
    "FLOAT": lambda: fn.random.uniform(dtype=types.FLOAT),
    "coin": lambda: fn.random.coin_flip(),
    "rare": lambda: fn.random.coin_flip(probability=0.125, dtype=types.INT32),
    "never": lambda: fn.random.coin_flip(probability=-1.0),
    "always": lambda: fn.random.coin_flip(probability=1.5),
}
ALONE = {
    "normal": lambda: fn.random.normal(),
    "values": lambda: fn.random.uniform(values=[1.0, 2.0]),
    "a shape": lambda: fn.random.uniform(shape=[1]),
    "empty shape": lambda: fn.random.uniform(shape=[]),
    "DOUBLE": lambda: fn.random.uniform(dtype=types.FLOAT64),
    "UINT8 range": lambda: fn.random.uniform(range=[0.0, 9.0], dtype=types.UINT8),
    "BOOL": lambda: fn.random.coin_flip(dtype=types.BOOL),
    "a state": lambda: fn.random.uniform(_random_state=np.arange(7, dtype=np.uint32)),
}


def pipeline(calls: list[Any], *, are_outputs: bool, **options: Any) -> Any:
    """Return a pipeline of random numbers, which are outputs, or inputs of an operator that does not change them."""

    @pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None, seed=11, **options)
    def graph() -> Any:
        drawn = [call() for call in calls]
        return tuple(drawn) if are_outputs else tuple(fn.stack(number) for number in drawn)

    pipe = graph()
    pipe.build()
    return pipe


def batches(pipe: Any, count: int = 3) -> list[list[np.ndarray]]:
    with closing(pipe):
        found = [[np.array(out.as_array()) for out in pipe.run()] for _ in range(count)]
    return [[numbers.reshape(BATCH_SIZE, -1) for numbers in outputs] for outputs in found]


def joined_sizes(pipe: Any) -> list[int]:
    """Return the number of operators of each joined step."""
    stages = parts_of(pipe).builder.engine().stages
    return [len(step.steps) for state in stages for step in state.steps if isinstance(step, ScalarDrawsStep)]


def check_equal(expected: list[list[np.ndarray]], found: list[list[np.ndarray]]) -> None:
    for one, other in zip(expected, found, strict=True):
        for numbers, others in zip(one, other, strict=True):
            assert numbers.dtype == others.dtype
            np.testing.assert_array_equal(numbers, others)


def test_the_numbers_equal_those_of_the_kernels():
    calls = list(JOINED.values())
    by_kernels, together = pipeline(calls, are_outputs=True), pipeline(calls, are_outputs=False)
    assert joined_sizes(by_kernels) == []
    assert joined_sizes(together) == [len(JOINED)]
    check_equal(batches(by_kernels), batches(together))


@pytest.mark.parametrize("name", ALONE)
def test_other_draws_are_not_joined(name):
    calls = [JOINED["coin"], ALONE[name], JOINED["a range"]]
    together = pipeline(calls, are_outputs=False)
    assert joined_sizes(together) in ([2], [])  # not in a stage with constants
    check_equal(batches(pipeline(calls, are_outputs=True)), batches(together))


def test_numbers_depend_on_the_position_in_the_run():
    calls = [JOINED["a range"], JOINED["coin"]]
    whole = batches(pipeline(calls, are_outputs=False), 6)
    pipe = pipeline(calls, are_outputs=False, enable_checkpointing=True)
    with closing(pipe):
        for _ in range(4):
            pipe.run()
        state = pipe.checkpoint()
    rest = batches(pipeline(calls, are_outputs=False, checkpoint=state, enable_checkpointing=True), 2)
    check_equal(whole[4:], rest)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fn.random.uniform(range=[1.0, 1.0]), "is empty"),
        (lambda: fn.random.uniform(range=[math.nan, 1.0]), "is empty"),
        (lambda: fn.random.coin_flip(probability=math.nan), "probability must be"),
    ],
)
def test_invalid_arguments_name_their_operator(call, text):
    good = [JOINED["coin"], JOINED["a range"]]
    with pytest.raises(ArgumentValueError) as caught:
        batches(pipeline([good[0], call, good[1]], are_outputs=False))
    assert text in own_text(caught.value)
    assert caught.value.operator in ("fn.random.uniform", "fn.random.coin_flip")
    assert "test_scalar_draws.py" in str(caught.value)


def test_sizes_of_single_operators_are_measured():
    """Measuring needs the result of each operator, so the steps run one by one."""
    pipe = pipeline([JOINED["coin"], JOINED["a range"]], are_outputs=False, enable_memory_stats=True)
    assert joined_sizes(pipe) == [2]
    with closing(pipe):
        pipe.run()
        sizes = pipe.executor_statistics()
    drawn = {name: size for name, size in sizes.items() if "random" in name}
    assert len(drawn) == 2
    assert all(size["real_memory_size"] == [4 * BATCH_SIZE] for size in drawn.values()), drawn


def test_lazy_mode_draws_the_numbers_of_each_call():
    """In lazy mode, seed and position of each call differ from those of the plan."""

    def scaled() -> list[Any]:
        eager.seed(3)
        drawn = [eager.random.uniform(range=[0.25, 0.5], batch_size=4) for _ in range(2)]
        drawn.append(eager.random.coin_flip(batch_size=4))
        found = [eager.stack(numbers) for numbers in drawn]
        del drawn
        return found

    expected = [np.array(item.as_array()) for item in scaled()]
    for _ in range(2):
        with dalify.lazy():
            found = scaled()
            for one, other in zip(expected, found, strict=True):
                np.testing.assert_array_equal(one, other.numpy())
