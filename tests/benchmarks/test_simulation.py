"""Recording of compiled calls, their replacement in a simulation, and removal of all hooks afterwards."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from benchmarks import simulation
from benchmarks.simulation import Recording, Simulated, recording, simulating
from dalify import fn, pipeline_def
from dalify.data.samples import Samples
from dalify.kernels.audio.loudness import nonsilent_regions
from dalify.kernels.images.resample import resample
from dalify.kernels.random import philox
from dalify.kernels.random.philox import Draws
from tests.helpers.platforms import needs_posix

pytestmark = needs_posix

KERNEL = "dalify.kernels.images.resample.separable"
IMAGES = np.random.default_rng(1).integers(0, 256, (2, 400, 500, 3), np.uint8)
WINDOWS = np.float32([[0, 0]] * 2), np.float32([[400, 500]] * 2)


def resized() -> np.ndarray:
    out = np.zeros((2, 224, 224, 3), np.uint8)
    resample(Samples.of_dense(out), Samples.of_dense(IMAGES), *WINDOWS)
    return out


def recorded(times: int = 3) -> Recording:
    resized()  # compiles
    with recording() as made:
        for _ in range(times):
            resized()
    return made


def test_recording_counts_calls_and_changes_no_result() -> None:
    expected = resized()
    with recording() as made:
        np.testing.assert_array_equal(resized(), expected)
    function = made.functions[KERNEL]
    assert function.calls == 1
    assert function.seconds > 0
    assert not function.is_decisive
    assert made.thread_s == pytest.approx(sum(each.seconds for each in made.functions.values()))


def test_simulated_calls_sleep_and_do_not_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    made, done = recorded(), Simulated()
    made.functions[KERNEL].seconds = 0.03 * made.functions[KERNEL].calls
    with simulating(made, done):
        start, simulated_start = time.perf_counter(), time.thread_time()
        cpu_start = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        assert not resized().any()
        cpu = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - cpu_start
        elapsed, simulated = time.perf_counter() - start, time.thread_time() - simulated_start
    assert elapsed >= 0.03
    assert cpu < 0.025  # slept
    assert simulated >= 0.03
    assert done.slept_s == pytest.approx(0.03)
    assert done.real_share == 0


def test_time_is_proportional_to_bytes() -> None:
    made, done = recorded(), Simulated()
    with simulating(made, done):
        out = np.zeros((1, 224, 224, 3), np.uint8)
        resample(Samples.of_dense(out), Samples.of_dense(IMAGES[:1]), WINDOWS[0][:1], WINDOWS[1][:1])
    whole = made.functions[KERNEL].seconds / made.functions[KERNEL].calls
    assert done.slept_s == pytest.approx(whole / 2, rel=0.01)


def test_calls_with_control_flow_are_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "SHORT_S", 0.0)
    monkeypatch.setattr(philox, "FEW", 0)  # few numbers are drawn with the lock held: such calls are not intercepted

    def numbers() -> np.ndarray:
        return Draws(1).uniform(np.arange(4), 22)

    expected, done = numbers(), Simulated()
    with recording() as made:
        numbers()
    with simulating(made, done):
        np.testing.assert_array_equal(numbers(), expected)
    assert done.slept_s == 0
    assert done.real_share == 1


def test_regions_of_recordings_equal_those_of_the_recording_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "SHORT_S", 0.0)
    loud = np.zeros((2, 20_000), np.float32)
    loud[0, 5000:9000] = loud[1, 5000:9000] = 1
    found = np.zeros((2, 2), np.int32)

    def regions(x: np.ndarray) -> np.ndarray:
        options = {"cutoff_db": -20.0, "reference_power": 0.0, "window_length": 64, "reset_interval": 6400}
        nonsilent_regions(found[0], found[1], Samples.of_dense(x), **options)
        return found.copy()

    with recording() as made:
        expected = regions(loud)
    done = Simulated()
    with simulating(made, done):
        np.testing.assert_array_equal(regions(np.zeros_like(loud)), expected)
        assert done.real_share == 0
        # Of another length: executed.
        np.testing.assert_array_equal(regions(np.ones((2, 300), np.float32)), [[0, 0], [300, 300]])
    assert done.real_share > 0


def test_files_that_a_simulated_call_would_close_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "SHORT_S", 0.0)
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.full((100 + number, 50), number, np.float32))

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipeline() -> Any:
        return fn.readers.numpy(file_root=str(tmp_path))

    pipe, done = pipeline(), Simulated()
    with closing(pipe):
        pipe.run()
        with recording() as made:
            for _ in range(3):
                pipe.run()
        with simulating(made, done):
            pipe.run()
            before = len(list(Path("/dev/fd").iterdir()))
            for _ in range(20):
                pipe.run()
            assert len(list(Path("/dev/fd").iterdir())) < before + 20  # other batches are being read
    assert done.slept_s > 0


def test_library_functions_are_intercepted_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "SHORT_S", 0.0)
    image = IMAGES[0]
    original = cv2.GaussianBlur
    with recording() as made:
        expected = cv2.GaussianBlur(image, (5, 5), 1.0)
    with simulating(made, Simulated()):
        assert cv2.GaussianBlur(image, (5, 5), 1.0) is not None
        target = np.empty_like(image)
        assert cv2.flip(image, 1, dst=target) is not None  # not recorded: it is executed
        np.testing.assert_array_equal(target, image[:, ::-1])
    assert cv2.GaussianBlur is original
    np.testing.assert_array_equal(cv2.GaussianBlur(image, (5, 5), 1.0), expected)


def test_nothing_remains_after_an_error() -> None:
    with pytest.raises(RuntimeError, match="in the block"), recording():
        raise RuntimeError("in the block")
    assert "__call__" not in vars(Dispatcher)
    assert resized().any()
