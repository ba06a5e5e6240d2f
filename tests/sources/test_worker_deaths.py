"""If a worker process dies or exceeds the time limit, one batch is lost and the process is replaced."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, WorkerError
from dalify.pipeline import Pipeline
from tests.helpers.platforms import needs_linux
from tests.helpers.processes import children, is_running, killed
from tests.helpers.programs import LIMIT_S, finished, running

pytestmark = needs_linux

BATCH_SIZE = 4
# Only calls that sleep for an hour exceed it, with any load of the machine.
TIMEOUT_S = 3.0
FATAL = 2  # the batch that is lost


def exits() -> None:
    os._exit(3)


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crashes() -> None:
    faulthandler.disable()  # pytest's, inherited: it would print a dump for each
    ctypes.string_at(0)


def closes_its_files() -> None:
    os.closerange(3, 1024)


def sleeps() -> None:
    time.sleep(3600)


def computes_without_pause() -> None:
    7 ** (10**9)  # one C call, which holds the GIL


WAYS: dict[str, tuple[Callable[[], None], str]] = {
    "exit": (exits, r"a worker process \(pid \d+\) ended with exit code 3 in the source .*; it is replaced"),
    "kill": (is_killed, r"was ended by signal 9 \(SIGKILL\) in the source"),
    "segmentation fault": (crashes, r"was ended by signal 11 \(SIGSEGV\) in the source"),
    "files closed": (closes_its_files, r"a worker process \(pid \d+\) (ended|was ended)"),
    "sleep": (sleeps, r"took longer than callback_timeout_s=3 for .*; its worker process \(pid \d+\) was killed"),
    "computation": (computes_without_pause, r"took longer than callback_timeout_s=3"),
}


class Once:
    """Dies at one item, but not when the replacement reaches it again."""

    def __init__(self, folder: Path, way: str = "kill", item: int = FATAL) -> None:
        self.mark = folder / "died"
        self.way = way
        self.item = item

    def __call__(self, item: int) -> None:
        if item == self.item and not self.mark.exists():
            self.mark.touch()
            WAYS[self.way][0]()


class PerSample(Once):
    def __call__(self, info: Any) -> np.ndarray:
        if info.iteration >= 6:
            raise StopIteration
        super().__call__(info.iteration * info.epoch_idx if self.item < 0 else info.idx_in_epoch)
        return np.full(3, info.idx_in_epoch)


class PerBatch(Once):
    def __call__(self, iteration: int) -> np.ndarray:
        if iteration >= 6:
            raise StopIteration
        super().__call__(iteration)
        return np.full((BATCH_SIZE, 3), iteration)


class Walked(Once):
    """An iterable of six batches."""

    def __iter__(self) -> Iterator[np.ndarray]:
        for number in range(6):
            super().__call__(number)
            yield np.full((BATCH_SIZE, 2), number)


class WalkedSamples(Once):
    """An iterable of six batches and two samples."""

    def __iter__(self) -> Iterator[np.ndarray]:
        for number in range(6 * BATCH_SIZE + 2):
            super().__call__(number)
            yield np.full(2, number)


def one_shot(once: Once) -> Iterator[np.ndarray]:
    """Return an iterator that only a process forked before its start can restart."""
    return iter(Walked(once.mark.parent, once.way, once.item))


def source_of(kind: str, folder: Path, way: str = "kill") -> dict[str, Any]:
    """Return the arguments of an external source that dies in its third batch."""
    sample = FATAL * BATCH_SIZE + 1
    return {
        "samples": lambda: {"source": PerSample(folder, way, sample), "batch": False},
        "batches": lambda: {"source": PerBatch(folder, way)},
        "iterable": lambda: {"source": Walked(folder, way)},
        "iterable, raise": lambda: {"source": Walked(folder, way), "cycle": "raise"},
        "iterable, quiet": lambda: {"source": Walked(folder, way), "cycle": "quiet"},
        "iterable of samples, raise": lambda: {
            "source": WalkedSamples(folder, way, sample),
            "batch": False,
            "cycle": "raise",
        },
        "iterator": lambda: {"source": one_shot(Once(folder, way))},
    }[kind]()


KINDS = (
    "samples",
    "batches",
    "iterable",
    "iterable, raise",
    "iterable, quiet",
    "iterable of samples, raise",
    "iterator",
)


@pytest.fixture
def make() -> Iterator[Callable[..., Pipeline]]:
    """Create a pipeline of external sources from their arguments; it is closed after the test."""
    pipes: list[Pipeline] = []

    def build(*sources: dict[str, Any], ahead: int = 2, **options: Any) -> Pipeline:
        given = {"batch_size": BATCH_SIZE, "num_threads": 1, "py_num_workers": 2, "prefetch_queue_depth": 2, **options}
        pipe = Pipeline(**given)
        with pipe:
            nodes = [fn.external_source(parallel=True, prefetch_queue_depth=ahead, **source) for source in sources]
            pipe.set_outputs(*nodes)
        pipes.append(pipe)
        return pipe

    yield build
    for pipe in pipes:
        pipe.close()


def steps(pipe: Pipeline, count: int) -> list[Any]:
    """Return the first numbers of each batch, the error of a failed batch, and "end"."""
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append([int(output.as_array().flat[0]) for output in pipe.run()])
        except StopIteration:
            found.append("end")
            pipe.reset()
        except WorkerError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["samples", "iterable, raise"])
def test_every_cause_of_death(make: Callable[..., Pipeline], tmp_path: Path, way: str, kind: str) -> None:
    pipe = make(source_of(kind, tmp_path, way), callback_timeout_s=TIMEOUT_S)
    factor = BATCH_SIZE if kind == "samples" else 1
    found = steps(pipe, 14)
    assert isinstance(found[FATAL], WorkerError)
    expected = [[number * factor] for number in range(6)]
    assert found == [*expected[:FATAL], found[FATAL], *expected[FATAL + 1 :], "end", *expected, "end"]
    with pytest.raises(WorkerError, match=WAYS[way][1]) as caught:
        raise found[FATAL]
    text = str(caught.value)
    thing = f"batch {FATAL} of epoch 0"
    assert (f"sample 1 of {thing}" if kind == "samples" else thing) in text
    assert "fn.external_source" in text
    assert "test_worker_deaths.py" in text  # the user's line
    assert "The next run() returns the next batch." in text


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_batch_is_the_next_one(
    make: Callable[..., Pipeline], tmp_path: Path, kind: str, workers: int, ahead: int
) -> None:
    pipe = make(source_of(kind, tmp_path), ahead=ahead, py_num_workers=workers)
    count = 6 if kind == "iterator" else 13
    found = steps(pipe, count)
    assert isinstance(found[FATAL], WorkerError)
    found[FATAL] = "lost"
    factor = BATCH_SIZE if "samples" in kind else 1
    epoch: list[Any] = [[number * factor] for number in range(6)]
    first = [*epoch[:FATAL], "lost", *epoch[FATAL + 1 :]]
    between = [] if "quiet" in kind else ["end"]
    again = ["end"] * 6 if kind == "iterable" else epoch  # every epoch after the end is empty
    assert found == (first + between + again + epoch)[:count]


@pytest.mark.parametrize("kind", ["iterable", "iterable, raise", "iterable, quiet"])
def test_the_last_batch_of_an_iterable_is_lost(make: Callable[..., Pipeline], tmp_path: Path, kind: str) -> None:
    pipe = make({**source_of(kind, tmp_path), "source": Walked(tmp_path, "kill", 5)}, py_num_workers=1)
    found = steps(pipe, 8)
    assert isinstance(found[5], WorkerError)
    after = {"iterable": ["end", "end"], "iterable, raise": ["end", [0]], "iterable, quiet": [[0], [1]]}[kind]
    assert [*found[:5], *found[6:]] == [*([number] for number in range(5)), *after]


def test_several_sources_stay_in_step(make: Callable[..., Pipeline], tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    pipe = make(
        source_of("samples", folders[0]),
        {"source": Walked(tmp_path, "exit", 4)},
        {"source": Walked(folders[1], "exit", 99)},
        {"source": lambda iteration: np.full((BATCH_SIZE, 1), iteration)},
    )
    found = steps(pipe, 6)
    assert [index for index, batch in enumerate(found) if isinstance(batch, WorkerError)] == [2, 4]
    assert [found[index] for index in (0, 1, 3, 5)] == [[BATCH_SIZE * number, *[number] * 3] for number in (0, 1, 3, 5)]


class AtTheSameItem:
    """Kills its worker at the same item in each iteration."""

    def __iter__(self) -> Iterator[np.ndarray]:
        for number in range(6):
            if number == FATAL:
                is_killed()
            yield np.full((BATCH_SIZE, 1), number)


def test_an_iterable_that_always_kills_its_worker_at_the_same_item(make: Callable[..., Pipeline]) -> None:
    pipe = make({"source": AtTheSameItem()})
    found = steps(pipe, 6)
    assert found[:FATAL] == [[0], [1]]
    assert all(isinstance(batch, WorkerError) for batch in found[FATAL:])


def test_idle_workers_that_are_killed_lose_no_batch(make: Callable[..., Pipeline]) -> None:
    before = children()
    pipe = make({"source": lambda iteration: np.full((BATCH_SIZE, 1), iteration)}, prefetch_queue_depth=1, ahead=1)
    assert steps(pipe, 2) == [[0], [1]]
    deaths, number = 0, 2
    while deaths < 4:  # a death is detected while waiting for a batch; a batch that was ready may come first
        time.sleep(0.05)  # until they have computed the prefetched batches
        for worker in children() - before:
            deaths += is_running(worker) and killed(worker)
        found = steps(pipe, 1)
        # On a busy machine they may still have been computing.
        assert found == [[number]] or isinstance(found[0], WorkerError)
        number += 1
        assert number < 100, f"only {deaths} workers could be killed"
    assert steps(pipe, 3) == [[number], [number + 1], [number + 2]]


def test_workers_that_are_killed_at_any_moment_lose_at_most_their_batch(make: Callable[..., Pipeline]) -> None:
    """Each batch is correct or an error, in order; the number of errors is at most the number of deaths."""

    def source(info: Any) -> np.ndarray:
        return np.full((10, 10), info.idx_in_epoch)

    before = children()
    pipe = make({"source": source, "batch": False}, py_num_workers=3, ahead=4)
    pipe.build()
    ends, deaths = threading.Event(), 0

    def kill() -> None:
        nonlocal deaths
        random = np.random.default_rng(0)
        while not ends.wait(random.uniform(0, 0.004)):
            for worker in list(children() - before)[:1]:
                deaths += killed(worker)

    thread = threading.Thread(target=kill)
    thread.start()
    found: list[Any] = []
    deadline = time.monotonic() + LIMIT_S
    try:
        # Few are killed during 300 batches if the killing thread is seldom scheduled.
        while len(found) < 300 or (deaths <= 10 and time.monotonic() < deadline):
            found += steps(pipe, 1)
    finally:
        ends.set()
        thread.join()
    lost = [index for index, batch in enumerate(found) if isinstance(batch, WorkerError)]
    assert len(lost) <= deaths
    assert [batch for batch in found if not isinstance(batch, WorkerError)] == [
        [index * BATCH_SIZE] for index in range(len(found)) if index not in lost
    ]
    assert deaths > 10


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def shared_memory() -> int:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("/memfd:" in line or "/dev/shm/" in line for line in lines)


def test_a_hundred_deaths_leak_nothing(make: Callable[..., Pipeline]) -> None:
    def source(iteration: int) -> np.ndarray:
        if iteration % 2:
            is_killed()
        return np.full((BATCH_SIZE, 1), iteration)

    before = children()
    pipe = make({"source": source})
    assert len([batch for batch in steps(pipe, 10) if isinstance(batch, WorkerError)]) == 5
    gc.collect()
    files, memory = open_files(), shared_memory()
    assert len([batch for batch in steps(pipe, 200) if isinstance(batch, WorkerError)]) == 100
    gc.collect()
    assert (open_files(), shared_memory()) == (files, memory)
    assert len(children() - before) <= 2
    pipe.close()
    assert children() == before


def test_the_time_of_all_calls_together_is_not_bounded(make: Callable[..., Pipeline]) -> None:
    def source(info: Any) -> np.ndarray:
        time.sleep(0.3)
        return np.full(1, info.idx_in_epoch)

    # On a busy machine, one call may take much longer than it sleeps.
    options = {"py_num_workers": 1, "batch_size": 16, "prefetch_queue_depth": 1}
    pipe = make({"source": source, "batch": False}, callback_timeout_s=3.5, ahead=1, **options)
    assert steps(pipe, 1) == [[0]]


# -- starting ----------------------------------------------------------------------------------------------------------

SPAWNED = """
import os, sys
from pathlib import Path
import numpy as np
from dalify import fn, pipeline_def
from dalify.base.errors import WorkerError

mark = Path(sys.argv[2])
if mark.exists():
    raise ImportError("broken today")

def source(info):
    if info.iteration == 1 and info.idx_in_batch == 2:
        os._exit(3)
    return np.full(3, info.iteration)

@pipeline_def(batch_size=4, num_threads=1, py_num_workers=2, py_start_method=sys.argv[1])
def batches():
    return fn.external_source(source, batch=False, parallel=True)

if __name__ == "__main__":
    pipe = batches()
    if sys.argv[3] == "broken":
        mark.touch()
    for number in range(7):
        try:
            print("batch", pipe.run()[0].as_array()[0, 0], flush=True)
        except WorkerError as error:
            print("error", str(error).replace("\\n", " "), flush=True)
        if number == 3:
            mark.unlink(missing_ok=True)
    pipe.close()
    known = ("resource_tracker", "forkserver", "ps -ww")
    lines = os.popen("ps -ww -o args= --ppid %d" % os.getpid()).read().splitlines()
    print("workers", [line for line in lines if not any(word in line for word in known)])
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_not_forked_are_replaced(tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPAWNED)
    code, out, errors = finished(program, method, tmp_path / "mark", "well")
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    assert "ended with exit code 3 in the source source(), called for sample 2 of batch 1 of epoch 0" in lines[1]
    assert [lines[0], *lines[2:7]] == [f"batch {number}" for number in (0, 2, 3, 4, 5, 6)]
    assert lines[7] == "workers []"


def test_an_error_at_import_fails_each_batch_until_it_is_fixed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPAWNED)
    code, out, errors = finished(program, "spawn", tmp_path / "mark", "broken")
    assert code == 0
    assert "ImportError: broken today" in errors
    lines = out.splitlines()
    for line in lines[:4]:
        assert "is lost: a worker process" in line
        assert "ended with exit code 1 before it was ready" in line
        assert "if __name__ == '__main__':" in line
    # Prefetched batches may also be lost.
    assert lines[6] == "batch 6"
    assert lines[7] == "workers []"


def test_no_process_can_be_started(make: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch) -> None:
    def source(iteration: int) -> np.ndarray:
        if iteration == 1:
            is_killed()
        return np.full((BATCH_SIZE, 1), iteration)

    pipe = make({"source": source}, py_num_workers=1, prefetch_queue_depth=1, ahead=1)
    assert steps(pipe, 1) == [[0]]
    with monkeypatch.context() as patched:
        patched.setattr(os, "fork", lambda: (_ for _ in ()).throw(BlockingIOError(11, "no more processes")))
        found = steps(pipe, 3)
    assert all(isinstance(batch, WorkerError) for batch in found)
    assert "no more processes" in str(found[-1])
    assert steps(pipe, 3)[-1] == [6]


# -- datasets ---------------------------------------------------------------------------------------------------------


class Items:
    """A dataset whose item 9 always ends its process."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __len__(self) -> int:
        return 24

    def __getitem__(self, number: int) -> np.ndarray:
        if number == 9:
            WAYS[self.way][0]()
        return np.full(2, number)


def reading(way: str, pipeline: dict[str, Any] | None = None, **options: Any) -> Pipeline:
    pipe = Pipeline(
        batch_size=4, num_threads=2, prefetch_queue_depth=3, callback_timeout_s=TIMEOUT_S, **(pipeline or {})
    )
    with pipe:
        node = fn.readers.dataset(dataset=Items(way), num_outputs=1, processes=2, name="Reader", **options)
        pipe.set_outputs(node)
    return pipe


@pytest.mark.parametrize("way", WAYS)
def test_processes_of_a_dataset(way: str) -> None:
    pipe = reading(way)
    found = steps(pipe, 6)
    assert [batch for index, batch in enumerate(found) if index != 2] == [[0], [4], [12], [16], [20]]
    with pytest.raises(
        WorkerError, match=WAYS[way][1].replace("source .*;", "dataset, .*;").replace("source", "dataset")
    ) as caught:
        raise found[2]
    assert "sample 1 of the batch, from item 9 of the dataset" in str(caught.value)
    assert "fn.readers.dataset" in str(caught.value)
    assert "test_worker_deaths.py" in str(caught.value)
    pipe.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_sample_that_kills_its_process_can_be_skipped(method: str) -> None:
    before = children()
    pipe = reading("exit", {"py_start_method": method}, on_error="skip")
    found = np.concatenate([pipe.run()[0].as_array()[:, 0] for _ in range(6)]).tolist()
    assert len(found) == 24
    assert 9 not in found
    assert [sample.source for sample in pipe.bad_samples()] == ["item 9 of the dataset"]
    pipe.close()
    deadline = time.monotonic() + LIMIT_S
    while method != "forkserver" and children() != before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- the option --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"),
    [(0, ArgumentValueError), (-1.0, ArgumentValueError), (float("nan"), ArgumentValueError), ("1", ArgumentTypeError)],
)
def test_timeouts_that_cannot_be(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="callback_timeout_s must be"):
        Pipeline(batch_size=1, callback_timeout_s=value)


def test_a_timeout_without_worker_processes_is_refused() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, callback_timeout_s=1)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda iteration: [np.zeros(1)]))
    with pytest.raises(ArgumentValueError, match="callback_timeout_s limits calls in worker processes") as caught:
        pipe.build()
    assert "parallel=True" in str(caught.value)


# -- the parent's end --------------------------------------------------------------------------------------------------

ORPHANS = """
import os, sys, threading, time
import numpy as np
from dalify import fn, pipeline_def

def source(info):
    if info.iteration >= 1:
        os.write(1, b"busy %d\\n" % os.getpid())
        time.sleep(3600) if sys.argv[2] == "sleeps" else 7 ** (10 ** 9)
    return np.full(3, info.iteration)

class Items:
    def __len__(self):
        return 100

    def __getitem__(self, number):
        if number >= 4:
            os.write(1, b"busy %d\\n" % os.getpid())
            time.sleep(3600) if sys.argv[2] == "sleeps" else 7 ** (10 ** 9)
        return np.full(3, number)

@pipeline_def(batch_size=4, num_threads=1, py_num_workers=2, py_start_method=sys.argv[1], prefetch_queue_depth=1)
def batches():
    if sys.argv[3] == "source":
        return fn.external_source(source, batch=False, parallel=True)
    return fn.readers.dataset(dataset=Items(), num_outputs=1, processes=2)

if __name__ == "__main__":
    pipe = batches()
    if sys.argv[4] == "thread":  # that has ended long before the program does
        thread = threading.Thread(target=pipe.build)
        thread.start()
        thread.join()
    pipe.run()
    pipe.run()
"""


@pytest.mark.parametrize(
    ("does", "what", "where", "end"),
    [
        ("sleeps", "source", "main", signal.SIGKILL),
        ("computes", "dataset", "main", signal.SIGKILL),
        ("sleeps", "dataset", "thread", signal.SIGKILL),
        ("computes", "source", "main", signal.SIGTERM),
    ],
)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_end_with_their_parent_even_inside_a_call(
    tmp_path: Path, method: str, does: str, where: str, what: str, end: signal.Signals
) -> None:
    program = tmp_path / "program.py"
    program.write_text(ORPHANS)
    with running(program, method, does, what, where) as process:
        assert process.stdout is not None
        workers = {int(process.stdout.readline().split()[1]) for _ in range(2)}
        assert len(workers) == 2
        process.send_signal(end)
        process.wait(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while any(map(is_running, workers)):
            assert time.monotonic() < deadline, "workers stayed behind"
            time.sleep(0.01)
