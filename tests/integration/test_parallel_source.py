"""`external_source(parallel=True)` in pipelines: results of the serial run, no copies, dead workers, cleanup."""

from __future__ import annotations

import gc
import os
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentTypeError, PipelineStateError, SourceError
from dalify.pipeline.pipeline import parts_of
from tests.helpers.platforms import needs_linux
from tests.helpers.processes import children, is_running, wait_until
from tests.helpers.programs import LIMIT_S, running
from tests.helpers.steps import steps_of

pytestmark = needs_linux

BATCH_SIZE = 5
PROJECT = Path(__file__).parent.parent.parent


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """Build a pipeline from the result of a function without arguments; it is closed after the test."""
    pipes: list[Any] = []

    def build(graph: Callable[[], Any], **options: Any) -> Any:
        given = {"batch_size": BATCH_SIZE, "num_threads": 1, "device_id": None, "py_num_workers": 2, **options}
        pipe = pipeline_def(**given)(graph)()
        pipes.append(pipe)
        pipe.build()
        return pipe

    yield build
    for pipe in pipes:
        pipe.close()


# -- the same as in this process ---------------------------------------------------------------------------------------


def per_sample(info: Any) -> np.ndarray:
    if info.idx_in_epoch >= 23:
        raise StopIteration
    return np.full((2, 3), info.idx_in_epoch + 1000 * info.epoch_idx, np.int32)


def ragged(info: Any) -> tuple[np.ndarray, np.ndarray]:
    if info.iteration >= 3:
        raise StopIteration
    return np.full((2, info.idx_in_epoch % 3), info.idx_in_batch, np.uint8), np.float32([info.epoch_idx])


def per_batch(iteration: int) -> np.ndarray:
    if iteration >= 4:
        raise StopIteration
    return np.full((BATCH_SIZE - iteration % 2, 3), iteration)


def per_batch_info(info: Any) -> list[np.ndarray]:
    if info.iteration >= 3:
        raise StopIteration
    return [np.full(index + 1, info.iteration + 10 * info.epoch_idx) for index in range(BATCH_SIZE)]


def generator() -> Iterator[np.ndarray]:
    for number in range(4):
        yield np.full((BATCH_SIZE, 2), number)


class Dataset:
    """A typical source: an object with data, called with an index."""

    def __init__(self, count: int) -> None:
        self.table = np.arange(count * 2).reshape(count, 2)

    def __call__(self, info: Any) -> np.ndarray:
        if info.idx_in_epoch >= len(self.table):
            raise StopIteration
        return self.table[info.idx_in_epoch]


SOURCES: dict[str, dict[str, Any]] = {
    "per sample": {"source": per_sample, "batch": False},
    "per sample, ragged, two outputs": {"source": ragged, "batch": False, "num_outputs": 2, "layout": ["HW", "X"]},
    "per batch": {"source": per_batch},
    "per batch, BatchInfo": {"source": per_batch_info, "batch_info": True},
    "generator": {"source": generator},
    "generator, raise": {"source": generator, "cycle": "raise"},
    "generator, quiet": {"source": generator, "cycle": "quiet"},
    "list, raise": {"source": [np.full((BATCH_SIZE, 1), number) for number in range(3)], "cycle": "raise"},
    "object": {"source": Dataset(17), "batch": False},
    "lambda": {"source": lambda info: np.array([info.idx_in_epoch]), "batch": False},
}


def source_node(name: str, **more: Any) -> Any:
    result = fn.external_source(**SOURCES[name], **more)
    return tuple(result) if isinstance(result, list) else result


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", SOURCES)
def test_order_and_epochs_equal_those_of_the_serial_run(make: Callable[..., Any], name: str, workers: int) -> None:
    steps = "rrrrrrr" if "quiet" in name or name == "lambda" else "rrrrrr0rrrrrr0r"
    serial = steps_of(make(lambda: source_node(name)), steps)
    parallel = steps_of(make(lambda: source_node(name, parallel=True), py_num_workers=workers), steps)
    assert parallel == serial
    ahead = make(lambda: source_node(name, parallel=True, prefetch_queue_depth=3), py_num_workers=workers)
    assert steps_of(ahead, steps) == serial


def test_several_sources_in_one_pipeline(make: Callable[..., Any]) -> None:
    def graph(parallel: bool) -> Any:
        return (
            source_node("per sample", parallel=parallel),
            source_node("generator, raise", parallel=parallel),
            fn.external_source(per_batch_all),
        )

    expected = steps_of(make(lambda: graph(parallel=False)), "rrrrrr0rrrrr")
    assert steps_of(make(lambda: graph(parallel=True), py_num_workers=3), "rrrrrr0rrrrr") == expected


def per_batch_all(iteration: int) -> np.ndarray:
    return np.full((BATCH_SIZE, 1), iteration)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(make: Callable[..., Any], method: str) -> None:
    offset = 7
    pipe = make(
        lambda: (
            fn.external_source(lambda info: np.array([info.idx_in_epoch + offset]), batch=False, parallel=True),
            fn.external_source(Dataset(11), batch=False, parallel=True),
        ),
        py_start_method=method,
    )
    assert [int(pipe.run()[0].as_array()[0, 0]) for _ in range(2)] == [7, 12]
    with pytest.raises(StopIteration):
        pipe.run()


def test_workers_are_processes_that_start_with_the_build(make: Callable[..., Any]) -> None:
    before = children()
    pipe = make(
        lambda: fn.external_source(lambda info: np.int64([os.getpid()]), batch=False, parallel=True), py_num_workers=3
    )
    started = children() - before
    assert len(started) == 3
    ids = {int(number) for _ in range(8) for number in pipe.run()[0].as_array().ravel()}
    assert ids <= started
    pipe.close()
    assert not children() & started


# -- no copies ---------------------------------------------------------------------------------------------------------


def test_outputs_are_views_of_the_workers_memory(make: Callable[..., Any]) -> None:
    pipe = make(lambda: source_node("lambda", parallel=True))
    pipe.run()  # the first batch determines types and shapes
    feed = parts_of(pipe).builder.engine().feeds.externals[0]
    (batch,) = pipe.run()
    array = batch.as_array()
    assert any(
        np.may_share_memory(array, slot.memory) for slot in feed.source._slots
    )  # by bounds, which is enough here


def test_outputs_remain_valid_after_later_batches(make: Callable[..., Any]) -> None:
    def source(info: Any) -> np.ndarray:
        return np.full((100, 10), info.idx_in_epoch, np.int32)

    pipe = make(lambda: fn.external_source(source, batch=False, parallel=True, prefetch_queue_depth=2))
    kept = [pipe.run()[0].as_array() for _ in range(3)]
    for _ in range(20):
        pipe.run()
    pipe.close()
    del pipe
    gc.collect()
    for number, array in enumerate(kept):
        assert array[:, 0, 0].tolist() == list(range(number * BATCH_SIZE, (number + 1) * BATCH_SIZE))
        assert (array == array[:, :1, :1]).all()


# -- errors ------------------------------------------------------------------------------------------------------------


class OwnError(Exception):
    """An exception class of the user."""


def failing(info: Any) -> np.ndarray:
    if info.idx_in_epoch == 7:
        raise OwnError("the seventh")
    return np.array([info.idx_in_epoch])


def test_an_error_in_a_worker_keeps_its_type_and_shows_the_workers_traceback(make: Callable[..., Any]) -> None:
    pipe = make(lambda: fn.external_source(failing, batch=False, parallel=True), prefetch_queue_depth=1)
    pipe.run()
    with pytest.raises(OwnError, match="the seventh") as caught:
        pipe.run()
    notes = "\n".join(caught.value.__notes__)
    assert "Raised by the source of fn.external_source, failing() at test_parallel_source.py" in notes
    assert "for sample 2 of batch 1 of epoch 0" in notes
    assert 'raise OwnError("the seventh")' in notes
    assert notes.count("in fn.external_source at test_parallel_source.py") == 1
    assert pipe.run()[0].as_array().ravel().tolist() == [10, 11, 12, 13, 14]


def test_bad_data_of_a_worker(make: Callable[..., Any]) -> None:
    def source(info: Any) -> Any:
        return ["text"] if info.idx_in_epoch == 8 else np.array([1])

    pipe = make(lambda: fn.external_source(source, batch=False, parallel=True), prefetch_queue_depth=1)
    pipe.run()
    with pytest.raises(
        TypeError, match=r"(?s)fn\.external_source: strings cannot be used.*sample 3 of the batch"
    ) as caught:
        pipe.run()
    assert "test_parallel_source.py" in str(caught.value)
    assert len(pipe.run()[0]) == BATCH_SIZE


def test_none_from_a_worker(make: Callable[..., Any]) -> None:
    pipe = make(lambda: fn.external_source(lambda info: None, parallel=True))
    with pytest.raises(SourceError, match=r"(?s)the source .*returned None"):
        pipe.run()


def test_what_a_parallel_source_may_be(make: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentTypeError, match=r"fn\.external_source: the source .* takes no argument"):
        make(lambda: fn.external_source(lambda: 0, parallel=True))
    with pytest.raises(ValueError, match="prefetch_queue_depth must be at least 1"):
        make(lambda: fn.external_source(per_batch, parallel=True, prefetch_queue_depth=0))


def shared_memory() -> list[str]:
    """Shared memory that this process maps; that of workers has no name, so a dead process leaves none."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if "/memfd:" in line or "/dev/shm/" in line]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_is_left_of_pipelines_that_come_and_go(make: Callable[..., Any]) -> None:
    def once(*, close: bool) -> None:
        pipe = pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, py_num_workers=2)(
            lambda: source_node("lambda", parallel=True)
        )()
        pipe.run()
        if close:
            pipe.close()
            with pytest.raises(PipelineStateError, match="closed"):
                pipe.run()

    once(close=False)
    gc.collect()
    before = children(), len(shared_memory()), open_files()
    for close in (True, False, True, False):
        once(close=close)
        gc.collect()
        assert wait_until(lambda: (children(), len(shared_memory()), open_files()) == before)


# -- programs ----------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, time
import numpy as np
from dalify import fn, pipeline_def
from dalify.pipeline.pipeline import parts_of

def source(info):
    return np.full((20, 20), info.idx_in_epoch)

@pipeline_def(batch_size=4, num_threads=2, device_id=None, py_num_workers=2, py_start_method=sys.argv[1])
def graph():
    return fn.external_source(source, batch=False, parallel=True) + 1

if __name__ == "__main__":
    pipe = graph()
    for _ in range(3):
        batch, = pipe.run()
    assert batch.as_array()[0, 0, 0] == 9
    for worker in parts_of(pipe).builder.engine().feeds.workers.process_ids:
        print(worker)
    print("ready", flush=True)
"""


@contextmanager
def started(tmp_path: Path, end: str, method: str = "fork") -> Iterator[tuple[Any, list[int]]]:
    """Start the program; yield it and the ids of its workers after a few batches."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + textwrap.indent(textwrap.dedent(end), "    "))
    with running(script, method) as process:
        assert process.stdout is not None
        workers: list[int] = []
        for line in process.stdout:
            if line.startswith("ready"):
                break
            workers.append(int(line))
        yield process, workers


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_program_that_closes_nothing_ends(tmp_path: Path, method: str) -> None:
    with started(tmp_path, "pass", method) as (process, workers):
        _, errors = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, errors) == (0, "")
        assert len(workers) == 2
        assert wait_until(lambda: not any(map(is_running, workers)))


def test_a_program_that_fails_ends(tmp_path: Path) -> None:
    with started(tmp_path, "raise RuntimeError('my own mistake')") as (process, workers):
        _, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 1
        assert errors.count("Traceback") == 1
        assert "my own mistake" in errors
        assert wait_until(lambda: not any(map(is_running, workers)))


def test_workers_end_when_the_program_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, "time.sleep(60)") as (process, workers):
        process.kill()
        process.wait()
        assert wait_until(lambda: not any(map(is_running, workers)))
