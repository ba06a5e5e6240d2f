"""Stages that take less time than starting them in another thread."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.executor import engine
from dalify.executor.chunking import chunk_bounds, is_brief
from dalify.pipeline.pipeline import parts_of
from dalify.registry import Kernel, catalog


@pytest.fixture
def threads(monkeypatch):
    """The threads that flips ran in."""
    found: list[str] = []
    operator = catalog.find("coord_flip")
    original = operator.kernels["cpu"]

    def noted(out, x, *, flip_x, flip_y, flip_z, center_x, center_y, center_z, layout):
        found.append(threading.current_thread().name)
        if (x.values < 0).any():
            raise ValueError("negative")
        original.function(
            out, x, flip_x=flip_x, flip_y=flip_y, flip_z=flip_z, center_x=center_x, center_y=center_y,
            center_z=center_z, layout=layout,
        )  # fmt: skip

    monkeypatch.setitem(operator.kernels, "cpu", Kernel(noted, original.form))
    return found


def pipeline_of(values: list[float], seconds_per_sample: float, *, depth: int = 1) -> Any:
    fed = iter(values)

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=depth)
    def graph() -> Any:
        return fn.coord_flip(fn.external_source(source=lambda: np.full((2, 3, 1), next(fed), np.float32)))

    pipe = graph()
    pipe.build()
    for state in parts_of(pipe).builder.engine().stages:
        state.seconds_per_sample = seconds_per_sample
    return pipe


def test_brief_stages_run_in_the_scheduling_thread(threads):
    for seconds, is_here in ((0.0, True), (1e-3, False)):
        pipe = pipeline_of([0.25], seconds)
        np.testing.assert_array_equal(pipe.run()[0].as_array(), np.full((2, 3, 1), 0.75, np.float32))
        assert (threads.pop() == threading.current_thread().name) == is_here
        pipe.close()


def test_no_samples_are_lost_if_the_time_becomes_known_after_a_batch_was_divided(monkeypatch):
    """Another iteration may measure the stage at any time."""
    pipe = pipeline_of([0.25], 1.0)
    states = parts_of(pipe).builder.engine().stages

    def divided(size: int, *_: Any, **__: Any) -> list[tuple[int, int]]:
        for state in states:
            state.seconds_per_sample = 0.0
        return [(0, 1), (1, size)]

    monkeypatch.setattr(engine, "chunk_bounds", divided)
    np.testing.assert_array_equal(pipe.run()[0].as_array(), np.full((2, 3, 1), 0.75, np.float32))


@pytest.mark.usefixtures("emulated_gpu")
def test_an_emulated_device_takes_part_in_order(monkeypatch):
    monkeypatch.setattr("dalify.executor.stage_state.is_brief", lambda *_: True)
    found: list[str] = []
    operator = catalog.find("copy")
    original = operator.kernels["gpu"]

    def noted(out, x):
        found.append(threading.current_thread().name)
        original.function(out, x)

    monkeypatch.setitem(operator.kernels, "gpu", Kernel(noted, original.form))
    numbers = iter(range(6))

    @pipeline_def(batch_size=2, num_threads=2, device_id=0, prefetch_queue_depth=3)
    def graph(function: Any = None) -> Any:
        x = fn.copy(fn.external_source(source=lambda: np.full((2, 3), next(numbers))).gpu())
        return x if function is None else fn.python_function(x, function=function)

    pipe = graph()
    assert [pipe.run()[0].as_cpu().at(0)[0] for _ in range(3)] == [0, 1, 2]
    assert set(found) == {threading.current_thread().name}
    pipe.close()
    found.clear()
    numbers = iter(range(6))
    pipe = graph(lambda x: x)  # the user's function is called by another thread
    assert [pipe.run()[0].as_cpu().at(0)[0] for _ in range(3)] == [0, 1, 2]
    assert threading.current_thread().name not in found
    pipe.close()


def test_an_error_belongs_to_its_batch(threads, monkeypatch):
    monkeypatch.setattr("dalify.executor.stage_state.is_brief", lambda *_: True)  # for any load
    pipe = pipeline_of([0.25, -1.0, 0.5, 0.0], 0.0, depth=2)
    assert pipe.run()[0].as_array()[0, 0, 0] == 0.75
    with pytest.raises(ValueError, match="negative"):
        pipe.run()
    assert pipe.run()[0].as_array()[0, 0, 0] == 0.5
    assert set(threads) == {threading.current_thread().name}
    pipe.close()


def test_many_stages_need_no_deep_stack():
    """Alternating segments and batch stages do not call each other."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph() -> Any:
        x = fn.external_source(source=lambda: np.zeros((2, 3), np.float32))
        for _ in range(400):
            x = fn.permute_batch(x, indices=[1, 0]) + 1
        return x

    pipe = graph()
    pipe.build()
    for state in parts_of(pipe).builder.engine().stages:
        state.seconds_per_sample = 0.0
    assert (pipe.run()[0].as_array() == 400).all()
    pipe.close()


def test_brief_stages():
    assert is_brief(16, 1e-6)
    assert not is_brief(16, None)
    assert not is_brief(16, 1e-3)
    assert len(chunk_bounds(16, 1e-6, 4)) == 1
