"""A system that allows no more threads, files or memory: errors at once, no waiting, and it works afterwards."""

from __future__ import annotations

import errno
import os
import pkgutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ReaderError, WorkerError
from dalify.base.threads import HelperThreads, ThreadPool
from dalify.executor import read_ahead
from dalify.formats.files import positions
from tests.helpers.platforms import needs_posix

resource = pytest.importorskip("resource")
pytestmark = needs_posix

BATCH_SIZE = 4
BATCHES = 5
OPTIONS: dict[str, Any] = {"batch_size": BATCH_SIZE, "num_threads": 2, "device_id": None}


class Items:
    """A dataset."""

    def __len__(self) -> int:
        return BATCH_SIZE * BATCHES

    def __getitem__(self, number: int) -> np.ndarray:
        return np.full(3, number)


def _source(info: Any) -> np.ndarray:
    return np.full(3, info.idx_in_epoch)


@pipeline_def(**OPTIONS)
def _threads() -> Any:
    return fn.readers.dataset(dataset=Items(), num_outputs=1) + 0


@pipeline_def(**OPTIONS, processes=2)
def _processes() -> Any:
    return fn.readers.dataset(dataset=Items(), num_outputs=1) + 0


@pipeline_def(**OPTIONS)
def _reading_processes() -> Any:
    return fn.readers.dataset(dataset=Items(), num_outputs=1, processes=2)


@pipeline_def(**OPTIONS, py_num_workers=2)
def _parallel_source() -> Any:
    return fn.external_source(_source, batch=False, parallel=True)


KINDS = {
    "threads": _threads,
    "processes": _processes,
    "reading processes": _reading_processes,
    "parallel source": _parallel_source,
}


def _batch(number: int) -> list[int]:
    return [number * BATCH_SIZE + place for place in range(BATCH_SIZE)]


def _numbers(pipe: Any) -> list[int]:
    (batch,) = pipe.run()
    return [int(np.array(batch.at(place))[0]) for place in range(BATCH_SIZE)]


def _attempt(pipe: Any) -> list[int] | WorkerError:
    try:
        return _numbers(pipe)
    except WorkerError as error:
        return error


@contextmanager
def _no_thread_after(count: int) -> Iterator[list[threading.Thread]]:
    """Let so many threads start, and refuse further ones, as with ``ulimit -u``; yields those that were refused."""
    started, refused = 0, []

    def start(thread: threading.Thread) -> None:
        nonlocal started
        started += 1
        if started > count:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        real_start(thread)

    real_start = threading.Thread.start
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        yield refused


def _has_threads(count: int) -> bool:
    """Wait for the end of a thread that receives results, for which closing does not wait."""
    deadline = time.monotonic() + 10.0
    while threading.active_count() > count and time.monotonic() < deadline:
        time.sleep(0.01)
    return threading.active_count() == count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("allowed", [0, 1, 2])
@pytest.mark.timeout(60)
def test_no_more_threads(kind: str, allowed: int) -> None:
    before = threading.active_count()
    with closing(KINDS[kind]()) as pipe:
        with _no_thread_after(allowed) as refused:
            first = _attempt(pipe)
        assert isinstance(first, WorkerError) == bool(refused)
        if isinstance(first, WorkerError):
            assert "can't start new thread" in first.message
            assert "ulimit -u" in str(first)
            assert kind == "reading processes" or _has_threads(before)
            # Batches that were requested while the thread was refused are lost: of a reader with processes, those that
            # were prefetched.
            lost = 0
            while isinstance(first := _attempt(pipe), WorkerError):
                lost += 1
            assert not lost or (kind == "reading processes" and allowed == 2)
            assert first == _batch(lost + 1 if lost else 0)
        assert _numbers(pipe)[0] == first[-1] + 1
    assert _has_threads(before)


@pytest.mark.parametrize("kind", ["processes", "reading processes", "parallel source"])
@pytest.mark.timeout(60)
def test_workers_end_if_no_thread_can_be_started(kind: str) -> None:
    """Also while the error is held, with the frames in which they were started."""
    children = set(psutil.Process().children())
    with closing(KINDS[kind]()) as pipe, _no_thread_after(0):
        with pytest.raises(WorkerError, match="can't start new thread") as caught:
            pipe.run()
        pipe.close()
        assert set(psutil.Process().children()) <= children
        assert caught.value.__traceback__ is not None


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_threads_end_if_starting_them_is_interrupted(error: type[BaseException]) -> None:
    """Also the last one, which has started when the error is raised."""

    def start(thread: threading.Thread) -> None:
        real_start(thread)
        started.append(thread)
        if len(started) == 2:
            raise error

    started: list[threading.Thread] = []
    real_start = threading.Thread.start
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(WorkerError if error is MemoryError else error):
            ThreadPool(3, "interrupted")
    assert len(started) == 2
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.timeout(60)
def test_a_thread_without_memory_for_its_first_function(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own ``start`` would wait forever."""

    def begin(thread: threading.Thread) -> None:
        if thread.name == f"dalify-{number}":
            raise MemoryError
        real_begin(thread)

    real_begin = threading.Thread._bootstrap  # pyright: ignore[reportAttributeAccessIssue]
    before = set(threading.enumerate())
    monkeypatch.setattr(threading.Thread, "_bootstrap", begin)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    with pytest.raises(WorkerError, match="a thread cannot be started: there is no memory") as caught:
        ThreadPool(3, "dalify")
    assert "ulimit -v" in str(caught.value)
    monkeypatch.undo()
    assert set(threading.enumerate()) <= before
    pool = ThreadPool(3, "dalify")
    pool.close()


def test_threads_that_help_are_not_needed() -> None:
    with _no_thread_after(0) as refused:
        assert HelperThreads(3, "helping").run([lambda: 1, lambda: 2]) == [1, 2]
    assert refused


@pytest.mark.parametrize("allowed", [0, 3])
@pytest.mark.timeout(60)
def test_threads_that_read_ahead(allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_queue", None)
    with _no_thread_after(allowed):
        if allowed:
            assert read_ahead._submit(lambda: 7).result() == 7
        else:
            with pytest.raises(WorkerError, match="can't start new thread"):
                read_ahead._submit(lambda: 7)
    assert read_ahead._submit(lambda: 8).result() == 8


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("threads", "dalify.executor.engine.chunk_bounds"),
        ("threads", "dalify.executor.stage_runner.thread_seconds"),
        ("threads", "dalify.executor.iteration.Iteration.join_chunks"),
        ("threads", "dalify.executor.stage_state.StageState.measure"),
        ("processes", "dalify.executor.remote.Replies.fill"),
    ],
)
@pytest.mark.timeout(60)
def test_no_memory_between_steps(kind: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of the batch: its consumer does not wait forever."""
    holder, _, name = place.rpartition(".")
    owner = pkgutil.resolve_name(holder)
    function = getattr(owner, name)
    is_failing = True

    def fails_once(*arguments: Any, **options: Any) -> Any:
        nonlocal is_failing
        if is_failing:
            is_failing = False
            raise MemoryError("no memory")
        return function(*arguments, **options)

    with closing(KINDS[kind]()) as pipe:
        monkeypatch.setattr(owner, name, fails_once)
        found: list[list[int] | None] = []
        for _ in range(4):
            try:
                found.append(_numbers(pipe))
            except MemoryError:
                found.append(None)
        assert not is_failing
        # With prefetching and several workers, any of the first batches may be the one.
        assert found.count(None) == 1
        assert [batch for batch in found if batch] == [_batch(n) for n in range(4) if found[n] is not None]


@pytest.mark.parametrize("kind", ["processes", "reading processes", "parallel source"])
def test_few_open_files(kind: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(KINDS[kind]()) as pipe:
        pipe.run()  # imports and files that are opened once
    found: list[int] | WorkerError | None = None
    messages: list[str] = []
    # Steps of 3, because multiprocessing loses two files where it can open only one of its two pipes.
    for count in range(0, 300, 3):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.close(descriptor)
        with closing(KINDS[kind]()) as pipe:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptor + count, before[1]))
            try:
                found = _attempt(pipe)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
        if not isinstance(found, WorkerError):
            break
        messages.append(str(found))
    assert found == _batch(0)
    assert len(messages) > 3
    assert all("ulimit -n" in message for message in messages)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("no_collector")
def test_closed_pipelines_have_no_open_files(kind: str) -> None:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("Linux lists the open files of a process")
    make: Callable[[], Any] = KINDS[kind]

    def run() -> int:
        with closing(make()) as pipe:
            assert _numbers(pipe) == _batch(0)
            kept.append(pipe)
        return len(list(folder.iterdir()))

    kept: list[Any] = []
    first = run()
    assert run() == run() == first


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOMEM, "none"), OSError(errno.EMFILE, "Too many"), OSError(errno.EIO, "other")]
)
@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("processes", [0, 2])
def test_what_the_system_lacks_is_no_bad_sample(error: Exception, on_error: str, processes: int) -> None:
    class Failing(Items):
        def __getitem__(self, number: int) -> np.ndarray:
            if number == BATCH_SIZE:
                raise type(error)(*error.args)
            return super().__getitem__(number)

    @pipeline_def(**OPTIONS, on_error=on_error, processes=processes)
    def reading() -> Any:
        return fn.readers.dataset(dataset=Failing(), num_outputs=1) + 0

    with closing(reading()) as pipe:
        assert _numbers(pipe) == _batch(0)
        if error.args[0] == errno.EIO:  # of the file
            pipe.run()
        else:
            with pytest.raises(type(error), match=error.args[-1]):
                pipe.run()
        assert _numbers(pipe) == _batch(2)
        assert pipe.bad_count == (error.args[0] == errno.EIO)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_files_that_cannot_be_opened_now_are_no_bad_samples(
    on_error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str | bytes) -> int:
        raise OSError(errno.EMFILE, "Too many open files", path)

    @pipeline_def(**OPTIONS, on_error=on_error, prefetch_queue_depth=1)
    def reading() -> Any:
        return fn.readers.file(files=[str(tmp_path / str(number)) for number in range(BATCH_SIZE)])[0]

    for number in range(BATCH_SIZE):
        (tmp_path / str(number)).write_bytes(bytes([number]))
    with closing(reading()) as pipe:
        with monkeypatch.context() as patched:
            patched.setattr(positions, "open_regular", refuse)
            with pytest.raises(ReaderError, match="Too many open files"):
                pipe.run()
        assert _numbers(pipe) == list(range(BATCH_SIZE))
        assert not pipe.bad_count
