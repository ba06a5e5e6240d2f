"""Pipelines with worker processes behave like pipelines without them."""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
import pytest

from dalify import fn, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DecodeError,
    ErrorRateError,
    GraphError,
    LimitError,
    ReaderError,
    WorkerError,
)
from dalify.pipeline import Pipeline, pipeline_def
from dalify.pipeline.pipeline import parts_of
from tests.helpers.endless_programs import session_of
from tests.helpers.photo_pipelines import (
    BATCH_SIZE,
    EPOCH,
    Samples,
    assert_equal,
    batches,
    photos,
    values,
    write_damaged_photos,
)
from tests.helpers.platforms import needs_linux, needs_posix
from tests.helpers.processes import children, is_running, killed
from tests.helpers.programs import LIMIT_S, finished, running

pytestmark = needs_posix

# Only calls that sleep for an hour exceed it, with any load of the machine.
TIMEOUT_S = 3.0


@pytest.fixture(scope="module")
def expected(photo_folder: Path) -> list[Samples]:
    """Return two epochs of `photos`, and a batch, without worker processes."""
    return batches(photos(photo_folder), 2 * EPOCH + 1)


def is_forkserver(process: int) -> bool:
    """Return whether a process belongs to multiprocessing, which keeps it for the next worker."""
    try:
        return any("forkserver import main" in word for word in psutil.Process(process).cmdline())
    except psutil.Error:
        return False


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = children()
    yield
    gc.collect()
    deadline = time.monotonic() + LIMIT_S
    while left := {process for process in children() - before if not is_forkserver(process)}:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("processes", "method"), [(1, "fork"), (2, "fork"), (3, "fork"), (2, "spawn"), (2, "forkserver")]
)
def test_batches_equal_those_of_threads(
    photo_folder: Path, expected: list[Samples], processes: int, method: str
) -> None:
    pipe = photos(photo_folder, processes=processes, py_start_method=method)
    assert_equal(batches(pipe, 2 * EPOCH + 1), expected)
    pipe.close()


@pytest.mark.parametrize(
    "options",
    [{"prefetch_queue_depth": 1}, {"prefetch_queue_depth": 5}, {"exec_pipelined": False}, {"num_threads": 5}],
    ids=str,
)
def test_depth_and_threads_change_nothing(photo_folder: Path, expected: list[Samples], options: dict[str, Any]) -> None:
    assert_equal(batches(photos(photo_folder, processes=2, **options), 2 * EPOCH + 1), expected)


def test_a_state_can_be_loaded_with_and_without_processes(photo_folder: Path, expected: list[Samples]) -> None:
    state = None
    found: list[Samples] = []
    for processes in (2, 0, 3, 0, 1):
        pipe = photos(photo_folder, processes=processes)
        if state is not None:
            pipe.load_state_dict(state)
        found += batches(pipe, 1)
        state = pipe.state_dict()
        pipe.close()
    assert_equal(found, expected[:5])


def test_a_state_does_not_depend_on_where_functions_are_called() -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=4)
    def pipeline(is_parallel: bool):
        return fn.python_function(
            fn.random.uniform(range=[0.0, 1.0]), function=lambda x: x + 1, parallel=is_parallel
        ) + fn.random.uniform(range=[0.0, 1.0])

    one = pipeline(True, processes=1)
    first = batches(one, 1)
    other = pipeline(False)
    other.load_state_dict(one.state_dict())
    assert_equal(first + batches(other, 1), batches(pipeline(False), 2))


def test_a_running_pipeline_can_load_a_state(photo_folder: Path, expected: list[Samples]) -> None:
    pipe = photos(photo_folder, processes=2)
    batches(pipe, 1)
    state = pipe.state_dict()
    batches(pipe, 3)
    pipe.load_state_dict(state)
    assert_equal(batches(pipe, 3), expected[1:4])
    pipe.start_epoch(1)
    pipe.load_state_dict(photos(photo_folder).state_dict())
    assert_equal(batches(pipe, 2), expected[:2])


def test_information_about_a_pipeline(photo_folder: Path) -> None:
    reported = []
    for processes in (0, 2):
        pipe = photos(
            photo_folder, processes=processes, taps=["decoded"], enable_memory_stats=True, prefetch_queue_depth=1
        )
        outputs = pipe.run()
        reported.append(
            (
                pipe.reader_meta(),
                pipe.epoch_size(),
                pipe.valid.tolist(),
                [outputs[0][index].source_info() for index in range(BATCH_SIZE)],
                [output.layout() for output in outputs],
                [output.dtype for output in outputs],
                [tensor.shape() for tensor in pipe.tap("decoded")],
                sorted(pipe.executor_statistics()),
                pipe.bad_samples(),
            )
        )
    # Numbers of nodes continue from pipeline to pipeline, and default names contain them.
    for found in reported:
        found[7][:] = [name.rstrip("0123456789") for name in found[7]]
    assert reported[0] == reported[1]


def test_epochs(photo_folder: Path) -> None:
    found = []
    for processes in (0, 2):
        pipe = photos(photo_folder, processes=processes)
        batches(pipe, 1)
        pipe.start_epoch(3)
        found.append(batches(pipe, 2))
    assert_equal(*found)


# -- where what is computed


def process_of(value: np.ndarray) -> np.ndarray:
    return np.int64([os.getpid(), float(value.ravel()[0]) * 0])


def top_of(image: np.ndarray) -> np.ndarray:
    return image[:5]


class Counts:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, value: np.ndarray) -> np.ndarray:
        self.count += 1
        return np.int64([self.count]) + value.astype(np.int64) * 0


def test_functions_with_a_state_run_in_this_process_and_get_batches_in_order() -> None:
    counts = Counts()

    @pipeline_def(batch_size=2, num_threads=2, seed=1, processes=2)
    def pipeline():
        drawn = fn.random.uniform(range=[0.0, 1.0], shape=[1])
        there = fn.python_function(drawn, function=process_of, parallel=True)
        here = fn.python_function(drawn, function=process_of)
        counted = fn.python_function(drawn, function=counts)
        return there, here, counted + 1, fn.python_function(counted, function=lambda x: x * 2, parallel=True)

    pipe = pipeline()
    for batch in range(5):
        there, here, counted, doubled = (output.as_array() for output in pipe.run())
        assert (there[:, 0] != os.getpid()).all()
        assert (here[:, 0] == os.getpid()).all()
        assert counted[:, 0].tolist() == [2 * batch + 2, 2 * batch + 3]
        np.testing.assert_array_equal(doubled, 2 * (counted - 1))


def test_explain_lists_devices_of_operators() -> None:
    @pipeline_def(batch_size=2, num_threads=2, seed=1, processes=2)
    def pipeline():
        drawn = fn.random.uniform(range=[0.0, 1.0])
        return fn.python_function(drawn, function=abs), fn.python_function(drawn, function=abs, parallel=True)

    there, here = _places_of(pipeline())
    assert "random.uniform(cpu) at test_processes.py:" in there
    assert there.count("python_function(cpu) at test_processes.py:") == 1
    assert here.count("python_function(cpu) at test_processes.py:") == 1
    assert "random.uniform" not in here


def _places_of(pipe: Pipeline) -> tuple[str, str]:
    lines = pipe.explain().splitlines()
    (there,) = (line for line in lines if "in 2 worker processes:" in line)
    (here,) = (line for line in lines if "in this process:" in line)
    return there, here


def test_a_condition_around_a_function_that_runs_in_this_process(photo_folder: Path) -> None:
    def define(processes: int) -> Pipeline:
        @pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=3, processes=processes)
        def pipeline():
            images = fn.decoders.image(fn.readers.file(file_root=str(photo_folder))[0])
            value = fn.python_function(
                fn.resize(images, size=[20, 20]), function=lambda image: image[:5], output_layouts="HWC"
            )
            if fn.random.coin_flip(dtype=types.BOOL):
                value = fn.brightness(value, brightness=fn.random.uniform(range=[0.5, 1.5]))
                if fn.reductions.mean(fn.resize(images, size=[4, 4])) > 100:
                    value = fn.flip(value)
            return value, fn.flip(images)

        return pipeline()

    assert_equal(batches(define(0), 4), batches(define(2), 4))


def test_random_numbers_of_users_functions_depend_only_on_the_batch() -> None:
    @pipeline_def(batch_size=3, num_threads=2, seed=9)
    def pipeline():
        value = fn.random.uniform(range=[0.0, 1.0])
        return fn.python_function(
            value, function=lambda x: np.float64([random.random(), np.random.rand()]), parallel=True
        )

    found = [batches(pipeline(processes=processes), 4) for processes in (1, 2, 2)]
    assert_equal(found[0], found[1])
    assert_equal(found[0], found[2])
    assert len(np.unique(np.concatenate([sample for (output,) in found[0] for sample in output]))) == 24


@pytest.mark.usefixtures("gpu")
def test_operators_of_the_device_run_in_this_process(photo_folder: Path) -> None:

    def define(processes: int) -> Pipeline:
        @pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=3, processes=processes)
        def pipeline():
            encoded, labels = fn.readers.file(file_root=str(photo_folder))
            images = fn.resize(fn.decoders.image(encoded, device="mixed"), size=[30, 30])
            return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip()), labels.gpu()

        return pipeline()

    found = []
    for processes in (0, 2):
        pipe = define(processes)
        outputs = [pipe.run() for _ in range(4)]
        assert all(type(output).__name__ == "TensorListGPU" for batch in outputs for output in batch)
        found.append([values([output.as_cpu() for output in batch]) for batch in outputs])
    assert_equal(*found)


def test_a_pipeline_that_leaves_nothing_to_processes_is_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, processes=2)
    def pipeline():
        return fn.python_function(fn.external_source(lambda: np.zeros((2, 1))), function=lambda x: x)

    with pytest.raises(GraphError, match=r"the processes of this pipeline have nothing to compute") as raised:
        pipeline().build()
    assert "parallel=True" in str(raised.value)
    assert "test_processes.py:" in str(raised.value)


def test_processes_of_reader_and_pipeline_exclude_each_other() -> None:
    @pipeline_def(batch_size=2, num_threads=1, processes=2)
    def pipeline():
        return fn.readers.dataset(dataset=[np.zeros(3)] * 4, processes=2)

    with pytest.raises(ArgumentValueError, match=r"the reader and the pipeline both have processes="):
        pipeline().build()


@pytest.mark.parametrize("value", [-1, 1.5, "2", True, 1 << 20])
def test_numbers_of_processes(value: Any) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match="processes must be"):
        Pipeline(batch_size=1, num_threads=1, processes=value)


# -- data from outside


def ragged_source(info: Any) -> np.ndarray:
    if info.iteration == 4:
        raise StopIteration
    return np.full((info.idx_in_batch + 1, 2), info.idx_in_epoch, np.float32)


def generated() -> Iterator[list[np.ndarray]]:
    for number in range(4):
        yield [np.ones(number + 1)] * 2


SOURCES: dict[str, dict[str, Any]] = {
    "samples": {"source": ragged_source, "batch": False},
    "samples, parallel": {"source": ragged_source, "batch": False, "parallel": True},
    "batches": {"source": [np.full((3, 2), number, np.int16) for number in range(4)], "cycle": "raise"},
    "generator": {"source": generated, "cycle": "raise"},
}


@pytest.mark.parametrize("name", SOURCES)
def test_external_sources(name: str) -> None:
    def define(processes: int) -> Pipeline:
        @pipeline_def(batch_size=3, num_threads=2, seed=3, processes=processes)
        def pipeline():
            data = fn.external_source(**SOURCES[name])
            return data * 2 + fn.random.uniform(range=[0.0, 1.0]), data

        return pipeline()

    found = []
    for processes in (0, 2):
        pipe = define(processes)
        mine = []
        for _ in range(2):
            mine += [values(outputs) for outputs in pipe]
        assert len(mine) == 8
        found.append(mine)
        pipe.close()
    assert_equal(*found)


@pytest.mark.parametrize(("depth", "processes", "count"), [(1, 3, 3), (2, 1, 2), (2, 3, 6), (4, 3, 8)])
def test_a_request_waits_for_each_worker(depth: int, processes: int, count: int) -> None:
    asked: list[int] = []

    @pipeline_def(batch_size=2, num_threads=3, processes=processes, prefetch_queue_depth=depth)
    def pipeline():
        return fn.external_source(lambda number: (asked.append(number), np.full(2, number))[1]) + 1

    pipe = pipeline()
    pipe.run()
    assert asked == list(range(count))
    pipe.run()
    assert asked == list(range(count + 1))


def test_data_fed_by_hand() -> None:
    @pipeline_def(batch_size=3, num_threads=2, processes=2, prefetch_queue_depth=1)
    def pipeline():
        return fn.external_source(name="data") + 1

    pipe = pipeline()
    for number in range(4):
        pipe.feed_input("data", np.full((2, 5), number, np.int32))
        np.testing.assert_array_equal(pipe.run()[0].as_array(), np.full((2, 5), number + 1))


def test_a_failing_source_fails_only_its_batch() -> None:
    def source(iteration: int) -> np.ndarray:
        if iteration == 2:
            raise KeyError("no such batch")
        return np.full((2, 3), iteration)

    @pipeline_def(batch_size=2, num_threads=2, processes=2)
    def pipeline():
        return fn.external_source(source) + 1

    pipe = pipeline()
    found: list[Any] = []
    for _ in range(5):
        try:
            found.append(int(pipe.run()[0].as_array()[0, 0]))
        except KeyError:
            found.append(None)
    assert found == [1, 2, None, 4, 5]


# -- memory


def test_views_keep_their_values(photo_folder: Path, expected: list[Samples]) -> None:
    pipe = photos(photo_folder, processes=2)
    held = [pipe.run() for _ in range(2 * EPOCH + 1)]  # without a copy, as long as there are slots
    for _ in range(5):
        pipe.run()
    arrays = [held[0][1].as_array(), held[2][0].at(1)]
    pipe.close()
    assert_equal([values(batch) for batch in held], expected)
    del held, pipe
    gc.collect()
    np.testing.assert_array_equal(arrays[0], np.stack(expected[0][1]))
    np.testing.assert_array_equal(arrays[1], expected[2][0][1])


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_consumer_may_hold_all_batches_to_the_end_of_the_data(depth: int) -> None:
    @pipeline_def(batch_size=2, num_threads=1, processes=1, prefetch_queue_depth=depth)
    def pipeline():
        return fn.external_source([np.full((2, 3), number, np.int32) for number in range(25)]) + 1

    held = list(pipeline())
    assert [int(batch[0].as_array()[1, 2]) for batch in held] == list(range(1, 26))


def test_memory_is_reused() -> None:
    @pipeline_def(batch_size=8, num_threads=1, seed=1, processes=1)
    def pipeline():
        return fn.random.uniform(range=[0.0, 1.0], shape=[1000])

    pipe = pipeline()
    addresses = set()
    for _ in range(40):
        addresses.add(pipe.run()[0].as_array().__array_interface__["data"][0])
    assert len(addresses) <= 3  # two in progress, and one that was just released


@needs_linux
def test_memory_of_an_unusually_large_batch_is_freed() -> None:
    sizes = [10, 32 << 20, *[10] * 20]

    @pipeline_def(batch_size=2, num_threads=1, processes=1)
    def pipeline() -> Any:
        shape = fn.external_source([[np.array([size])] * 2 for size in sizes])
        return fn.zeros(shape=shape, dtype=types.UINT8)

    with pipeline() as pipe:
        engine: Any = parts_of(pipe).builder.engine()
        used: list[int] = []
        for size in sizes:
            assert pipe.run()[0].as_array().shape == (2, size)
            used.append(sum(slot.used_bytes for slot in engine.remote._slots))
    assert max(used) >= 64 << 20
    assert used[-1] < 4 << 20


@needs_linux
def test_dropped_batches_return_their_memory(photo_folder: Path) -> None:
    photos(photo_folder, processes=2).build()  # opens what remains open
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    pipe, other = (photos(photo_folder, processes=processes, prefetch_queue_depth=4) for processes in (2, 0))
    for each in (pipe, other):
        for _ in range(40):
            each.run()
            each.start_epoch(0)
    assert_equal(batches(pipe, 2), batches(other, 2))
    engine: Any = parts_of(pipe).builder.engine()
    engine.discard()
    stages = engine.remote
    deadline = time.monotonic() + LIMIT_S
    while len(stages._free) < len(stages._slots):
        assert time.monotonic() < deadline, "a slot is lost"
        time.sleep(0.02)
    assert sorted(stages._free) == list(range(len(stages._slots)))
    pipe.close()
    del pipe, other, each, engine, stages
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_consumers_may_write(photo_folder: Path, expected: list[Samples]) -> None:
    pipe = photos(photo_folder, processes=2)
    for number in range(2 * EPOCH + 1):
        outputs = pipe.run()
        assert_equal([values(outputs)], [expected[number]])
        outputs[1].as_array()[...] = -1


# -- what fails


def test_errors_equal_those_of_threads(photo_folder: Path) -> None:
    def fails(image: np.ndarray) -> np.ndarray:
        raise LookupError("no such color")

    def define(processes: int) -> Pipeline:
        @pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=3, processes=processes)
        def pipeline():
            encoded, labels = fn.readers.file(file_root=str(photo_folder))
            images = fn.resize(fn.decoders.image(encoded), size=[20, 20])
            if fn.squeeze(labels, axes=0) == 1:
                images = fn.python_function(images, function=fails, parallel=True)
            return images

        return pipeline()

    notes = []
    for processes in (0, 2):
        pipe = define(processes)
        pipe.run()
        with pytest.raises(LookupError, match="no such color") as raised:
            pipe.run()
        notes.append(raised.value.__notes__[0])
        pipe.run()  # the next batch is the next one
    assert notes[0] == notes[1]
    assert "fn.python_function at" in notes[0]
    assert "test_processes.py:" in notes[0]


@pytest.fixture
def damaged(photo_folder: Path, tmp_path: Path) -> Path:
    """Return photos of which three are damaged."""
    write_damaged_photos(photo_folder, tmp_path)
    return tmp_path


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, seed=5)
def labeled(folder: Path):
    encoded, labels = fn.readers.file(file_root=str(folder), random_shuffle=True)
    return fn.decoders.image(encoded), labels


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples(damaged: Path, policy: Any) -> None:
    found, bad, valid = [], [], []
    for processes in (0, 2):
        pipe = labeled(damaged, processes=processes, on_error=policy)
        mine, flags = [], []
        for _ in range(2 * EPOCH):
            mine.append(values(pipe.run()))
            flags.append(pipe.valid.tolist())
        found.append(mine)
        valid.append(flags)
        bad.append(pipe.bad_samples())
    assert_equal(*found)
    assert bad[0] == bad[1]
    assert len(bad[0]) >= 3
    assert valid[0] == valid[1]


def test_a_damaged_sample_is_an_error_that_names_it(damaged: Path) -> None:
    strings = []
    for processes in (0, 2):
        pipe = labeled(damaged, processes=processes)
        for _ in range(EPOCH):
            try:
                pipe.run()
            except DecodeError as error:
                strings.append((processes, str(error)))
    assert [text for number, text in strings if number] == [text for number, text in strings if not number]
    assert all(".jpg" in text and "test_processes.py:" in text for _, text in strings)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_that_a_worker_does_not_find(photo_folder: Path, tmp_path: Path, method: str) -> None:
    """The error is that of threads, without a traceback of code that does not belong to the user."""
    strings = []
    for processes in (0, 2):
        folder = tmp_path / "photos"
        shutil.copytree(photo_folder, folder)
        pipe = labeled(folder, processes=processes, py_start_method=method)
        pipe.build()
        shutil.rmtree(folder)
        with pytest.raises(ReaderError) as raised:
            pipe.run()
        strings.append("".join([str(raised.value), *getattr(raised.value, "__notes__", ())]))
        pipe.close()
    assert strings[0] == strings[1]
    assert "cannot open the file" in strings[0]
    assert "test_processes.py:" in strings[0]


def test_too_many_bad_samples(damaged: Path) -> None:
    pipe = labeled(damaged, processes=2, on_error="skip", max_error_rate=0.1)
    with pytest.raises(ErrorRateError, match="2 of the 12 samples of this epoch could not be used"):
        batches(pipe, EPOCH)


def test_limits_hold_in_processes(photo_folder: Path) -> None:
    pipe = labeled(photo_folder, processes=2, limits={"max_image_pixels": 100})
    with pytest.raises(LimitError, match="more than the limit max_image_pixels=100"):
        pipe.run()


def test_what_cannot_be_sent_is_refused_with_its_line() -> None:
    lock = threading.Lock()

    def locked(value: np.ndarray) -> np.ndarray:
        with lock:
            return value + 1

    def define(method: str) -> Pipeline:
        @pipeline_def(batch_size=2, num_threads=1, seed=1, processes=1, py_start_method=method)
        def pipeline():
            return fn.python_function(fn.random.uniform(range=[0.0, 1.0]), function=locked, parallel=True)

        return pipeline()

    with pytest.raises(ArgumentTypeError, match="cannot be sent to a worker process") as raised:
        define("spawn").build()
    text = str(raised.value)
    assert "fn.python_function" in text
    assert "test_processes.py:" in text
    assert "py_start_method='fork'" in text
    define("fork").run()


def test_functions_are_sent_by_a_chosen_pickler() -> None:
    @pipeline_def(
        batch_size=2, num_threads=1, seed=1, processes=1, py_start_method="spawn", py_callback_pickler=cloudpickle
    )
    def pipeline():
        return fn.python_function(fn.random.uniform(range=[0.0, 1.0]), function=lambda x: x * 0 + 5, parallel=True)

    assert pipeline().run()[0].as_array().tolist() == [5, 5]


# -- workers that die


class Once:
    """Kills or blocks its process at the first call for a value."""

    def __init__(self, folder: Path, harm: Callable[[], Any]) -> None:
        self.mark = folder / "done"
        self.harm = harm

    def __call__(self, value: np.ndarray) -> np.ndarray:
        if value == 2 and not self.mark.exists():
            self.mark.touch()
            self.harm()
        return value


HARMS: dict[str, Callable[[], Any]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "crash": lambda: (faulthandler.disable(), os.kill(os.getpid(), signal.SIGSEGV)),
    "sleep": lambda: time.sleep(3600),
    "files closed": lambda: os.closerange(3, 1024),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


@pipeline_def(batch_size=2, num_threads=1, processes=2, callback_timeout_s=TIMEOUT_S)
def harmed(function: Callable[[np.ndarray], np.ndarray]):
    numbers = fn.external_source(lambda iteration: np.full(2, iteration, np.int64))
    return fn.python_function(numbers, function=function, parallel=True)


@pytest.mark.parametrize("harm", HARMS)
def test_a_batch_whose_worker_dies_is_computed_again(tmp_path: Path, harm: str) -> None:
    pipe = harmed(Once(tmp_path, HARMS[harm]))
    assert [pipe.run()[0].as_array().tolist() for _ in range(6)] == [[number] * 2 for number in range(6)]
    assert (tmp_path / "done").exists()


def test_idle_workers_that_are_stopped_lose_no_batch(tmp_path: Path) -> None:
    pipe = harmed(Once(tmp_path, lambda: None))
    before = children()
    assert pipe.run()[0].as_array().tolist() == [0, 0]
    workers = children() - before
    assert len(workers) == 2
    time.sleep(0.2)  # until they have computed the next batches
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    assert [pipe.run()[0].as_array().tolist() for _ in range(1, 8)] == [[number] * 2 for number in range(1, 8)]
    pipe.close()
    assert not workers & children()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("kill", r"was ended by signal 9 \(SIGKILL\) in the pipeline, called for batch 2, tried 5 times"),
        ("sleep", r"the pipeline took longer than callback_timeout_s=3 for batch 2, tried 2 times"),
    ],
)
def test_a_batch_that_kills_every_worker_is_an_error(tmp_path: Path, harm: str, message: str) -> None:
    class Always(Once):
        def __call__(self, value: np.ndarray) -> np.ndarray:
            self.mark.unlink(missing_ok=True)
            return super().__call__(value)

    pipe = harmed(Always(tmp_path, HARMS[harm]))
    found: list[Any] = []
    for _ in range(5):
        try:
            found.append(pipe.run()[0].as_array().tolist())
        except WorkerError as error:
            found.append(error)
    assert [*found[:2], *found[3:]] == [[number] * 2 for number in (0, 1, 3, 4)]
    assert isinstance(found[2], WorkerError)
    with pytest.raises(WorkerError, match=message):
        raise found[2]


def test_workers_that_are_killed_at_any_moment_lose_no_batch(photo_folder: Path, expected: list[Samples]) -> None:
    """A worker is killed at a random time during every second batch: with more kills, a batch would be an error."""
    pipe = photos(photo_folder, processes=3)
    pipe.build()
    before = children() - set(workers_of(pipe))
    chance = random.Random(3)
    deaths = 0

    def kill() -> None:
        nonlocal deaths
        if workers := sorted(children() - before):
            deaths += killed(chance.choice(workers))

    found: list[Samples] = []
    while deaths < 20:
        killer = threading.Timer(chance.uniform(0, 0.03), kill)
        killer.start()
        found += batches(pipe, 2)
        killer.join()
        assert len(found) < 400, f"only {deaths} of the workers could be killed"
    found += batches(pipe, 3)
    assert_equal(found[: len(expected)], expected)
    assert_equal(found[len(expected) :], batches(photos(photo_folder), len(found))[len(expected) :])


def test_idle_workers_that_are_killed_lose_no_batch(photo_folder: Path, expected: list[Samples]) -> None:
    pipe = photos(photo_folder, processes=2, prefetch_queue_depth=1)
    found = batches(pipe, 1)
    for count in (1, 2, 2):
        before = workers_of(pipe)
        parts_of(pipe).builder.engine().discard()
        for worker in before[:count]:
            killed(worker)
        while any(map(is_running, before[:count])):
            time.sleep(0.01)
        found += batches(pipe, 2)
        assert len(workers_of(pipe)) == 2
    assert_equal(found, expected)


def workers_of(pipe: Pipeline) -> list[int]:
    engine: Any = parts_of(pipe).builder.engine()
    return engine.remote.process_ids


WITHOUT_GUARD = """
import numpy as np
from dalify import fn, pipeline_def
from dalify.base.errors import WorkerError

@pipeline_def(batch_size=2, num_threads=1, processes=1, py_start_method="spawn")
def pipeline():
    return fn.random.uniform(range=[0.0, 1.0])

try:
    pipeline().run()
except WorkerError as error:
    print(error)
"""


def test_workers_that_cannot_start_are_an_error(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WITHOUT_GUARD)
    status, out, errors = finished(program)
    assert status == 0, errors
    assert "batch 0 is lost: a worker process (pid" in out
    assert "ended with exit code 1 before it was ready" in out
    assert 'if __name__ == "__main__":' in out.replace("'", '"')


def test_more_batches_in_progress_than_slots(photo_folder: Path, expected: list[Samples]) -> None:
    pipe = photos(photo_folder, processes=2, prefetch_queue_depth=300)
    assert_equal(batches(pipe, 2 * EPOCH + 1), expected)


# -- the end


@pytest.mark.parametrize("how", ["close", "forget"])
def test_nothing_is_left(photo_folder: Path, how: str) -> None:
    before = set(threading.enumerate())
    pipe = photos(photo_folder, processes=2)
    pipe.run()
    workers = workers_of(pipe)
    assert len(workers) == 2
    if how == "close":
        pipe.close()
    del pipe
    gc.collect()
    deadline = time.monotonic() + LIMIT_S
    while any(map(is_running, workers)) or set(threading.enumerate()) - before:
        assert time.monotonic() < deadline
        time.sleep(0.02)


ENDLESS = """
import sys, time
import numpy as np
from dalify import fn, pipeline_def
from dalify.pipeline.pipeline import parts_of

def waits(value):
    if value > 20:
        print("computes", flush=True)
        time.sleep(3600)
    return np.zeros((100, 100)) + value

@pipeline_def(batch_size=2, num_threads=2, processes=2, py_start_method=sys.argv[1])
def pipeline():
    numbers = fn.external_source(lambda iteration: np.full(2, iteration, np.int64))
    return fn.python_function(numbers, function=waits, parallel=True)

if __name__ == "__main__":
    pipe = pipeline()
    pipe.build()
    print(*parts_of(pipe).builder.engine().remote.process_ids, flush=True)
    held = [pipe.run() for _ in range(21)]
    pipe.run()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_program_that_is_killed_leaves_nothing(tmp_path: Path, method: str) -> None:
    shared = Path("/dev/shm")
    before = set(shared.iterdir()) if shared.is_dir() else set()
    program = tmp_path / "program.py"
    program.write_text(ENDLESS)
    with running(program, method) as process:
        assert process.stdout is not None
        workers = [int(word) for word in process.stdout.readline().split()]
        assert len(workers) == 2
        assert process.stdout.readline().startswith("computes")  # both workers may print at once
        process.kill()
        process.wait(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while any(map(is_running, workers)):
            assert time.monotonic() < deadline, "workers stayed behind"
            time.sleep(0.02)
    left = (set(shared.iterdir()) if shared.is_dir() else set()) - before
    assert not [path for path in left if "dalify" in path.name or "psm" in path.name]


STARTING = """
import os, sys, time

if __name__ != "__main__":  # a worker imports the program
    os.write(1, b"imports\\n")
    time.sleep(0.5)

from dalify import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, processes=2, py_start_method=sys.argv[1])
def pipeline():
    return fn.random.uniform(range=[0.0, 1.0], shape=[3]) + 0

if __name__ == "__main__":
    os.write(1, b"starts\\n")
    pipe = pipeline()
    pipe.build()
    pipe.run()
    os.write(1, b"is idle\\n")
    time.sleep(3600)
"""


@pytest.mark.parametrize("moment", ["starts", "imports", "is idle"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_end_with_a_program_that_is_killed_at_any_moment(tmp_path: Path, method: str, moment: str) -> None:
    """A worker that imports the program ends after the import."""
    if (method, moment) == ("fork", "imports"):
        pytest.skip("forked workers import nothing")
    program = tmp_path / "program.py"
    program.write_text(STARTING)
    with running(program, method) as process:
        assert process.stdout is not None
        while process.stdout.readline() != f"{moment}\n":
            assert process.poll() is None
        time.sleep(0.1 if moment == "starts" else 0.0)
        process.kill()
        process.wait(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while session_of(process.pid):
            assert time.monotonic() < deadline, "workers stayed behind"
            time.sleep(0.02)


def test_a_forked_child_has_its_own_workers(photo_folder: Path, expected: list[Samples]) -> None:
    pipe = photos(photo_folder, processes=2)
    batches(pipe, 1)
    child = os.fork()
    if not child:
        status = 1
        try:
            assert_equal(batches(pipe, 3), expected[1:4])
            pipe.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert_equal(batches(pipe, 3), expected[1:4])


# The import of the plugin decides on the order of what is called at exit: finalizers before the engines are closed.
_FORK_THAT_EXITS = """
import os, sys
from dalify import fn
from dalify.pipeline import pipeline_def
from dalify.plugin.pytorch import DALIGenericIterator

@pipeline_def(batch_size=2, num_threads=2, processes=2, seed=1)
def numbers():
    return fn.python_function(fn.random.uniform(range=[0.0, 1.0]), function=abs, parallel=True)

pipe = numbers()
pipe.run()
child = os.fork()
if not child:
    pipe.run()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_that_exits_is_silent() -> None:
    assert finished(_FORK_THAT_EXITS) == (0, "", "")


# Without a function that is called before, multiprocessing ends the workers, while a thread waits for their results.
_CHILDREN_OF_MULTIPROCESSING = """
import multiprocessing
from dalify import fn
from dalify.pipeline import pipeline_def

@pipeline_def(batch_size=2, num_threads=2, processes=2, seed=1)
def numbers():
    return fn.python_function(fn.random.uniform(range=[0.0, 1.0]), function=abs, parallel=True)

context = multiprocessing.get_context("fork")
pipe = numbers()
pipe.run()
for _ in range(8):
    child = context.Process(target=pipe.run)
    child.start()
    child.join()
    print(child.exitcode)
"""


def test_a_process_of_multiprocessing_with_a_pipeline_ends_without_an_error() -> None:
    assert finished(_CHILDREN_OF_MULTIPROCESSING) == (0, "0\n" * 8, "")


_DAEMON = """
import multiprocessing
from dalify import fn
from dalify.base.errors import WorkerError
from dalify.pipeline import pipeline_def

@pipeline_def(batch_size=2, num_threads=1, processes=2)
def numbers():
    return fn.random.uniform(range=[0.0, 1.0])

def child():
    try:
        numbers().run()
    except WorkerError as error:
        print(error, flush=True)

process = multiprocessing.get_context("fork").Process(target=child, daemon=True)
process.start()
process.join()
"""


def test_a_daemon_of_multiprocessing_cannot_have_workers() -> None:
    status, out, errors = finished(_DAEMON)
    assert (status, errors) == (0, "")
    assert "this process cannot start worker processes, because it is a daemon of multiprocessing" in out
    assert "start it with daemon=False" in out
