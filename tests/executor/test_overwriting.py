"""Element-wise steps write their results over their first input if nothing else reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.executor.arena import Arena
from dalify.executor.elementwise_step import ElementwiseStep
from dalify.pipeline.pipeline import parts_of

RANDOM = np.random.default_rng(0)
UNIFORM = [RANDOM.normal(0, 3, (4, 5)).astype(np.float32) for _ in range(6)]
RAGGED = [RANDOM.normal(0, 3, (size, 5)).astype(np.float32) for size in (4, 4, 1, 7, 3, 3)]
ROW = np.arange(10, 15, dtype=np.float32)


def chain(x: Any) -> tuple[Any, ...]:
    return ((x * 2.0 + 1.0) / 3.0 - 0.5,)


def read_twice(x: Any) -> tuple[Any, ...]:
    doubled = x * 2.0
    return (doubled + 1.0, doubled - 1.0)


def also_output(x: Any) -> tuple[Any, ...]:
    doubled = x * 2.0
    return (doubled, (doubled + 1.0) * 3.0)


def both_operands(x: Any) -> tuple[Any, ...]:
    doubled = x * 2.0
    return ((doubled * doubled) + 1.0,)


def second_operand(x: Any) -> tuple[Any, ...]:
    return (1.0 - (x * 2.0 - 3.0),)


def other_type(x: Any) -> tuple[Any, ...]:
    return (x * 2.0 > 1.0,)


def larger_shape(x: Any) -> tuple[Any, ...]:
    return ((ROW_OF[type(x)] * 2.0) + x,)


ROW_OF: dict[type, Any] = {np.ndarray: ROW}
STEPS: dict[Callable[[Any], Any], int] = {
    chain: 3,
    read_twice: 0,
    also_output: 1,
    both_operands: 1,
    second_operand: 1,
    other_type: 1,
    larger_shape: 1,
}


def _run(samples: list[np.ndarray], expression: Callable[[Any], Any]) -> tuple[list[list[np.ndarray]], int]:
    """Return the outputs of the third batch, and the number of steps that may overwrite their input."""

    @pipeline_def(batch_size=len(samples), num_threads=2)
    def pipeline():
        x = fn.external_source(source=lambda: samples, ndim=2, dtype=np.float32, no_copy=True)
        ROW_OF[type(x)] = fn.external_source(source=lambda: [ROW] * len(samples), ndim=1, dtype=np.float32)
        return expression(x)

    outputs: list[list[np.ndarray]] = []
    with pipeline() as pipe:
        for _ in range(3):
            outputs = [[np.array(sample) for sample in output] for output in pipe.run()]
        steps = [step for stage in parts_of(pipe).builder.engine().plan.stages for step in stage.steps]
    return outputs, sum(isinstance(step, ElementwiseStep) and step.overwrites for step in steps)


@pytest.mark.parametrize("expression", STEPS)
@pytest.mark.parametrize("samples", [UNIFORM, RAGGED], ids=["uniform", "ragged"])
def test_results_equal_numpy(samples: list[np.ndarray], expression: Callable[[Any], Any]) -> None:
    before = [sample.copy() for sample in samples]
    outputs, steps = _run(samples, expression)
    for sample, *results in zip(before, *outputs, strict=True):
        for result, expected in zip(results, expression(sample), strict=True):
            np.testing.assert_array_equal(result, expected)
    for sample, original in zip(samples, before, strict=True):
        np.testing.assert_array_equal(sample, original)
    assert steps == STEPS[expression]


def test_all_steps_compute_in_the_memory_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch: list[tuple[int, ...]] = []
    empty = Arena.empty
    monkeypatch.setattr(Arena, "empty", lambda arena, shape, dtype: scratch.append(shape) or empty(arena, shape, dtype))

    @pipeline_def(batch_size=len(UNIFORM), num_threads=1, prefetch_queue_depth=1)
    def pipeline():
        x = fn.external_source(source=lambda: UNIFORM, ndim=2, dtype=np.float32)
        return chain(x)

    with pipeline() as pipe:
        pipe.run()
        pipe.run()
        scratch.clear()
        (output,) = pipe.run()
    assert not scratch
    np.testing.assert_array_equal(np.array(output.as_tensor()), np.stack([chain(sample)[0] for sample in UNIFORM]))


def test_shapes_and_types_of_results_change_from_batch_to_batch() -> None:
    shapes = [(4, 5), (4, 5), (2, 3), (4, 5), None, None, (4, 5), (1, 5), (4, 5), (4, 5)]
    batches = [RAGGED if shape is None else [np.full(shape, 100 + i, np.float32) for i in range(6)] for shape in shapes]

    @pipeline_def(batch_size=6, num_threads=2, prefetch_queue_depth=1)
    def pipeline():
        x = fn.external_source(source=lambda: next(items), ndim=2, dtype=np.float32)
        row = fn.external_source(source=lambda: [ROW] * 6, ndim=1, dtype=np.float32)
        return (
            (x * 2.0 + 1.0) * 0.5,
            fn.cast(x * 2.0 + 1.0, dtype=types.UINT8) + 0.5,
            fn.cast(row * 2.0, dtype=types.FLOAT16),
        )

    items = iter(batches)
    with pipeline() as pipe:
        for batch in batches:
            halves, casts, rows = pipe.run()
            for sample, half, wrapped, wide in zip(batch, halves, casts, rows, strict=True):
                np.testing.assert_array_equal(half, (sample * 2 + 1) * np.float32(0.5))
                expected = np.clip(np.sign(sample * 2 + 1) * np.floor(np.abs(sample * 2 + 1) + 0.5), 0, 255)
                np.testing.assert_array_equal(wrapped, expected.astype(np.uint8) + np.float32(0.5))
                np.testing.assert_array_equal(wide, (ROW * 2).astype(np.float16))


def test_branches_read_the_same_memory() -> None:
    """A split of all samples is the value itself."""

    def expression(x: Any) -> Any:
        doubled = x * 2.0
        is_all: Any = fn.reductions.sum(x) > -1e9
        inside = doubled + 1.0 if is_all else doubled - 1.0
        return inside, doubled * 3.0

    outputs, _ = _run(UNIFORM, expression)
    for sample, inside, outside in zip(UNIFORM, *outputs, strict=True):
        np.testing.assert_array_equal(inside, sample * 2.0 + 1.0)
        np.testing.assert_array_equal(outside, sample * 2.0 * 3.0)


def test_views_of_a_result_keep_it() -> None:
    def expression(x: Any) -> Any:
        doubled = x * 2.0
        flat = fn.reshape(doubled, shape=[-1])
        return (flat + 1.0) * 2.0, (doubled + 3.0) * 2.0

    outputs, _ = _run(UNIFORM, expression)
    for sample, flat, plain in zip(UNIFORM, *outputs, strict=True):
        np.testing.assert_array_equal(flat, ((sample * 2.0 + 1.0) * 2.0).reshape(-1))
        np.testing.assert_array_equal(plain, (sample * 2.0 + 3.0) * 2.0)
