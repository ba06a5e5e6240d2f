"""With many threads, more batches are in progress than the prefetch depth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def
from dalify.executor import engine, stage_runner, steps
from dalify.executor.chunking import batches_for_threads, chunk_bounds
from dalify.executor.steps import Step, run_steps
from dalify.graph import Node
from dalify.pipeline.pipeline import parts_of
from dalify.registry import catalog

SIZE = 64


@pytest.mark.parametrize("depth", [2, 3, 40])
@pytest.mark.parametrize("num_threads", [1, 2, 3, 16, 64])
@pytest.mark.parametrize("batch_seconds", [0.0, 1e-9, 0.01, 0.2, 100.0])
def test_number_of_batches(depth: int, num_threads: int, batch_seconds: float) -> None:
    found = depth_for(depth, batch_seconds, num_threads)
    assert depth <= found <= max(depth, num_threads + 1)
    if num_threads == 1 or not batch_seconds:
        assert found == depth
    assert found <= depth_for(depth, batch_seconds, 2 * num_threads)


def depth_for(depth: int, batch_seconds: float, num_threads: int, waited_seconds: float = 0.0) -> int:
    seconds = (batch_seconds + waited_seconds) / SIZE
    return batches_for_threads(depth, SIZE, seconds, batch_seconds / SIZE, num_threads, 3)


@pytest.mark.parametrize("num_threads", [4, 16, 64])
@pytest.mark.parametrize("batch_seconds", [1e-4, 1e-3, 5e-3, 20e-3])
def test_threads_that_would_wait_for_the_gil_get_no_batches(num_threads: int, batch_seconds: float) -> None:
    depth = depth_for(1, batch_seconds, num_threads)
    # The estimated time in which a batch holds the GIL is 0.6 ms.
    assert depth <= 3 / 2 * batch_seconds / 0.6e-3 + 2
    bounds = chunk_bounds(SIZE, batch_seconds / SIZE, num_threads, depth, 3)
    assert depth * len(bounds) <= 2 * num_threads


@pytest.mark.parametrize("num_threads", [4, 16, 64])
def test_threads_that_wait_for_files_do_not_need_the_gil(num_threads: int) -> None:
    cpu_seconds, waited_seconds = 1e-3, 0.1
    depth = depth_for(2, cpu_seconds, num_threads, waited_seconds)
    bounds = chunk_bounds(SIZE, (cpu_seconds + waited_seconds) / SIZE, num_threads, depth, 3)
    assert depth * len(bounds) > num_threads
    assert depth == num_threads + 1 >= depth_for(2, cpu_seconds, num_threads)


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize(
    ("batch_seconds", "waited_seconds"),
    [(1e-6, 0.1), (1e-3, 0.1), (0.05, 0.0), (0.05, 0.1), (0.15, 0.0), (1.0, 0.0)],
)
@pytest.mark.parametrize("num_threads", [1, 2, 3, 8, 32])
def test_every_thread_has_a_chunk(num_threads: int, batch_seconds: float, waited_seconds: float, size: int) -> None:
    cpu_seconds_per_sample, seconds_per_sample = batch_seconds / size, (batch_seconds + waited_seconds) / size
    scheduled = batches_for_threads(2, size, seconds_per_sample, cpu_seconds_per_sample, num_threads, 3)
    bounds = chunk_bounds(size, seconds_per_sample, num_threads, scheduled, 3)
    assert scheduled * len(bounds) >= num_threads
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    assert bounds[-1][1] == size


def test_chunks_grow_with_the_number_of_threads() -> None:
    """So that threads do not wait for the GIL."""
    counts: list[int] = []
    for num_threads in (8, 12, 16, 32):
        scheduled = depth_for(2, SIZE * 0.7e-3, num_threads)
        counts.append(len(chunk_bounds(SIZE, 0.7e-3, num_threads, scheduled, 3)))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 1


@pytest.mark.parametrize("num_threads", [2, 8, 32])
def test_few_batches_are_divided_among_the_threads(num_threads: int) -> None:
    assert len(chunk_bounds(SIZE, 1e-3, num_threads, 2, steps=3)) > len(chunk_bounds(SIZE, 1e-3, 1, 2, steps=3))


class SleepingStep(Step):
    """Waits, and runs its nested steps."""

    def __init__(self, operator: str, seconds: float, steps: Sequence[Step] = ()) -> None:
        super().__init__(Node(catalog.find(operator), (), {}), (), (), steps)
        self.seconds = seconds

    def run(self, frame: Any) -> None:
        time.sleep(self.seconds)
        run_steps(self.steps, frame)


@pytest.mark.parametrize("operator", ["readers.file", "python_function", "flip"])
def test_only_readers_and_user_code_wait(operator: str) -> None:
    """Other steps wait only for the GIL and for processors, and shorter chunks would increase these waits."""
    frame: Any = SimpleNamespace(waited_s=0.0, is_timed=True)
    run_steps([SleepingStep(operator, 0.02)], frame)
    if operator == "flip":
        assert frame.waited_s == 0
    else:
        assert 0.01 < frame.waited_s < 10


def test_waits_of_nested_steps_count_once() -> None:
    """An empty cache runs the steps before it with the same frame."""
    cache = SleepingStep("cache", 0.0, [SleepingStep("readers.file", 0.2)])
    frame: Any = SimpleNamespace(waited_s=0.0, is_timed=True)
    run_steps([cache, cache], frame)
    assert 0.39 < frame.waited_s < 0.7


@pytest.mark.parametrize("num_threads", [2, 4, 8, 32])
@pytest.mark.parametrize("depth", [2, 3, 8])
def test_no_more_chunks_than_the_threads_need(num_threads: int, depth: int) -> None:
    for batch_seconds in (1e-3, 20e-3, 60e-3):
        scheduled = depth_for(depth, batch_seconds, num_threads)
        chunks = len(chunk_bounds(SIZE, batch_seconds / SIZE, num_threads, scheduled, 3))
        assert (chunks - 1) * scheduled <= num_threads


def test_another_batch_is_preferred_to_more_chunks() -> None:
    assert [depth_for(2, 40e-3, num_threads) for num_threads in (2, 3, 4, 5)] == [3, 2, 3, 3]
    assert len(chunk_bounds(SIZE, 40e-3 / SIZE, 2, 3, 3)) == 1
    assert len(chunk_bounds(SIZE, 40e-3 / SIZE, 4, 3, 3)) == 2


def test_two_chunks_are_preferred_to_one() -> None:
    """They halve the memory of batches in progress, if threads then hold the GIL for less than all of the time."""
    chunks = [
        len(chunk_bounds(SIZE, ms * 1e-3, 16, depth_for(2, SIZE * ms * 1e-3, 16), 3)) for ms in (0.3, 0.6, 0.8, 1.0)
    ]
    assert chunks == [1, 2, 2, 2]
    assert [depth_for(2, SIZE * ms * 1e-3, 16) for ms in (0.3, 0.6, 0.8, 1.0)] == [17, 9, 9, 9]


def read(folder: Path) -> Any:
    encoded, label = fn.readers.file(file_root=str(folder), random_shuffle=True, name="reader")
    return fn.random_resized_crop(fn.decoders.image(encoded), size=16), label


def mirrored(folder: Path) -> Any:
    encoded, _ = fn.readers.file(file_root=str(folder), random_shuffle=True, name="reader")
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=16)
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip())


def feed(_: Path) -> Any:
    return fn.external_source(lambda: np.zeros((4, 3), np.float32)) + 1.0


def made(folder: Path, define: Callable[[Path], Any], num_threads: int, **options: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=num_threads, seed=5, **options)
    def pipeline() -> Any:
        return define(folder)

    return pipeline()


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A function that sets the number of processors."""
    return lambda count: monkeypatch.setattr(engine, "available_processors", lambda: count)


def in_progress(pipe: Pipeline) -> int:
    """Run twice, as if a sample took a millisecond; return the number of batches that are then in progress."""
    pipe.run()
    running = parts_of(pipe).builder.engine()
    for state in running.stages:
        state.seconds_per_sample = state.cpu_seconds_per_sample = 1e-3
    pipe.run()
    return running.scheduled + 1


@pytest.mark.parametrize(
    ("define", "num_threads", "options", "expected"),
    [
        (read, 8, {}, 9),
        (read, 8, {"prefetch_queue_depth": 1}, 1),
        (read, 8, {"exec_async": False}, 1),
        (read, 8, {"prefetch_queue_depth": 10}, 10),
        (read, 1, {}, 2),
        (feed, 8, {}, 2),
    ],
)
def test_batches_in_progress(
    photo_folder: Path,
    define: Callable[[Path], Any],
    num_threads: int,
    options: dict[str, Any],
    expected: int,
    processors: Callable[[int], None],
) -> None:
    processors(64)
    with made(photo_folder, define, num_threads, **options) as pipe:
        assert in_progress(pipe) == expected


@pytest.mark.parametrize(("count", "expected"), [(1, 2), (4, 5), (8, 9), (16, 9)])
def test_threads_that_share_processors_need_no_more_batches(
    photo_folder: Path, processors: Callable[[int], None], count: int, expected: int
) -> None:
    processors(count)
    with made(photo_folder, read, 8) as pipe:
        assert in_progress(pipe) == expected


def test_brief_stages_need_no_more_batches(photo_folder: Path, processors: Callable[[int], None]) -> None:
    processors(64)
    with made(photo_folder, mirrored, 4) as pipe:
        pipe.run()
        running = parts_of(pipe).builder.engine()
        brief, long = running.stages
        long.seconds_per_sample = long.cpu_seconds_per_sample = 2e-3
        found: list[int] = []
        for seconds in (1e-6, 0.2e-3):
            brief.seconds_per_sample = brief.cpu_seconds_per_sample = seconds
            found.append(running.depth_for_threads(2))
    # The reader, and the decoder with the work of two operators; the random numbers would be a fourth step.
    expected = [batches_for_threads(2, 4, ms * 1e-3, ms * 1e-3, 4, steps) for ms, steps in ((2, 3), (2.2, 4))]
    assert found == expected == [3, 5]


@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"on_error": "skip"}])
def test_a_consumer_that_keeps_all_outputs(
    photo_folder: Path, processors: Callable[[int], None], options: dict[str, Any]
) -> None:
    processors(64)
    kept: list[list[np.ndarray[Any, Any]]] = []
    for num_threads in (1, 3, 16):
        with made(photo_folder, mirrored, num_threads, **options) as pipe:
            in_progress(pipe)
            outputs: list[Any] = [pipe.run()[0] for _ in range(20)]
            kept.append([images.as_array() for images in outputs])
    for batches in kept[1:]:
        np.testing.assert_array_equal(batches, kept[0])


def test_batches_and_states_are_the_same(photo_folder: Path, processors: Callable[[int], None]) -> None:
    processors(64)
    few, many = made(photo_folder, read, 2), made(photo_folder, read, 8)
    for pipe in (few, many):
        in_progress(pipe)
    assert few.state_dict() == many.state_dict()
    for _ in range(5):
        for one, other in zip(few.run(), many.run(), strict=True):
            np.testing.assert_array_equal(one.as_array(), other.as_array())
    state = many.state_dict()
    after = [many.run()[1].as_array() for _ in range(3)]
    many.load_state_dict(state)
    for labels in after:
        np.testing.assert_array_equal(many.run()[1].as_array(), labels)


def test_times_of_few_batches_are_measured(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the first batches, then one of eight: reading the CPU time is a system call."""
    calls: list[float] = []

    def thread_seconds() -> float:
        calls.append(0.0)
        return 0.0

    monkeypatch.setattr(stage_runner, "thread_seconds", thread_seconds)
    monkeypatch.setattr(steps, "thread_seconds", thread_seconds)
    with made(photo_folder, read, 1, prefetch_queue_depth=1) as pipe:
        per_batch: list[int] = []
        for _ in range(26):
            calls.clear()
            pipe.run()
            per_batch.append(len(calls))
    assert [number for number, count in enumerate(per_batch) if count] == [*range(17), 24]
    assert per_batch[24] == 4  # before and after the reader and the chunk
