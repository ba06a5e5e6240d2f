"""A training program that repeats everything that may leak: ``python -m tests.fuzz.soak``.

Each round trains, resumes, skips and replaces bad files, forks, is interrupted, loses worker processes, drops
pipelines, and calls operators without one. Between rounds, memory, file descriptors, threads, child processes and
shared memory are counted. A line is fitted to each after a warm-up, and growth above a threshold is a failure.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import dalify
from dalify import eager, fn, types
from dalify.base.errors import BadSampleWarning, WorkerError
from dalify.codecs.decode_batch import jpeg_decoder
from tests.helpers.photos import drawn_photo, write_photo_folder

_BATCH = 4
_FORK_SECONDS = 60
# The share of the rounds at the beginning that is left out: caches fill, kernels are compiled, memory pools grow. The
# same share of the time may be less than one round: the first one compiles.
_WARM_UP = 0.35
# A run continues after its time until it has this many rounds: a fit to fewer is unreliable.
_FEWEST_ROUNDS = 20


@dataclass(frozen=True)
class Measure:
    """A quantity that is measured between rounds.

    Attributes:
        unit: of the count.
        count: counts it.
        per_minute: largest slope.
        in_all: growth over the measured time that is always allowed: the noise of the count.
    """

    unit: str
    count: Callable[[], float]
    per_minute: float
    in_all: float


def _shared_memory() -> int:
    folder = Path("/dev/shm")
    own = os.getuid()
    count = 0
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(OSError):  # another program's, gone meanwhile
            count += path.stat().st_uid == own and ("dalify" in path.name or path.name.startswith("psm_"))
    return count


_PROCESS = psutil.Process()


def memory() -> float:
    """Return the memory of this process in MiB; on Linux without mapped files.

    Pages of libraries count as resident when they are used, and no longer when the system needs their memory: a busy
    machine takes them away and gives them back.
    """
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("RssAnon:")).split()[1]) / 2**10
    return _PROCESS.memory_info().rss / 2**20


MEASURES = {
    # The allocator gives memory back in pieces of up to 32 MiB when it pleases; 1 MiB a minute is 1.4 GiB a day.
    "memory": Measure("MiB", memory, 1.0, 40.0),
    # These counts are exact and equal after every round. At the end, two objects may not be closed yet.
    "file descriptors": Measure("", _PROCESS.num_fds, 0.5, 2.0),
    "threads": Measure("", _PROCESS.num_threads, 0.5, 2.0),
    "child processes": Measure("", lambda: len(_children()), 0.5, 1.0),
    "shared memory files": Measure("", _shared_memory, 0.5, 1.0),
}


def _children() -> list[psutil.Process]:
    # Python's resource tracker and fork server stay until the program ends.
    found = []
    for process in _PROCESS.children():
        try:
            if not any(word in " ".join(process.cmdline()) for word in ("resource_tracker", "forkserver")):
                found.append(process)
        except psutil.Error:
            pass
    return found


def fitted(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the line with the least squares; 0 for fewer than three points."""
    if len(times) < 3:
        return 0.0
    return float(np.polyfit(np.asarray(times) - times[0], np.asarray(values), 1)[0])


@dataclass
class Soak:
    """The program, and what was counted.

    Attributes:
        folder: for data; empty.
        seed: decides what happens when.
    """

    folder: Path
    seed: int = 0
    batches: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    at_batch: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in MEASURES})

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        write_photo_folder(self.folder / "photos", images_per_class=6, longest_side=80)
        for number, path in enumerate(sorted((self.folder / "photos").glob("*/*.jpg"))):
            if number % 5 == 0:
                path.write_bytes(path.read_bytes()[: 20 + 30 * number])
        self._plain = self._training("replace")
        self._plain.build()

    def run(self, minutes: float, show: Callable[[str], None] = print) -> list[str]:
        """Run rounds; return what grew too much.

        Args:
            minutes: for all rounds; more where the machine is so slow that there would be few.
            show: gets lines for people.
        """
        started = shown = time.monotonic()
        scenarios = [self.train, self.resume, self.fork, self.interrupt, self.lose_workers, self.drop, self.call]
        while time.monotonic() - started < 60 * minutes or len(self.times) < _FEWEST_ROUNDS:
            for scenario in scenarios:
                scenario()
                name = scenario.__name__
                self.counts[name] = self.counts.get(name, 0) + 1
            now = time.monotonic()
            gc.collect()  # what cycles hold is no leak, and when Python looks for them is chance
            self._end_of_threads()
            self.times.append(now - started)
            self.at_batch.append(self.batches)
            for name, measure in MEASURES.items():
                self.values[name].append(float(measure.count()))
            if now - shown > 5:
                shown = now
                show(
                    f"{now - started:4.0f} s  {self.batches:6,} batches  " + ", ".join(self._last(n) for n in MEASURES)
                )
        return self.growth(show)

    def _end_of_threads(self) -> None:
        """Wait until threads of closed pipelines, and terminated processes have ended."""
        end = time.monotonic() + 2
        known = min(self.values["threads"][-20:], default=0)
        while time.monotonic() < end and (_PROCESS.num_threads() > known or _children()):
            time.sleep(0.02)

    def _last(self, name: str) -> str:
        return f"{name} {self.values[name][-1]:.0f}{' ' + MEASURES[name].unit if MEASURES[name].unit else ''}"

    def growth(self, show: Callable[[str], None]) -> list[str]:
        """Fit lines, show them, and return what grew too much."""
        first = int(_WARM_UP * len(self.times))
        minutes = [second / 60 for second in self.times[first:]]
        thousands = [batch / 1000 for batch in self.at_batch[first:]]
        show(
            f"{len(self.times)} rounds, {self.batches:,} batches; "
            + ", ".join(f"{v} x {k}" for k, v in self.counts.items())
        )
        failures = []
        for name, measure in MEASURES.items():
            values = self.values[name][first:]
            slope = fitted(minutes, values)
            grown = slope * (minutes[-1] - minutes[0])
            unit = f" {measure.unit}" if measure.unit else ""
            line = f"{name}: {slope:+.3f}{unit} per minute, {fitted(thousands, values):+.3f}{unit} per 1,000 batches"
            line += f" ({values[0]:.0f} to {values[-1]:.0f}{unit})"
            is_bad = slope > measure.per_minute and grown > measure.in_all
            show(f"{line}{'  TOO MUCH' if is_bad else ''}")
            if is_bad:
                failures.append(line)
        return failures

    # -- what a round does ---------------------------------------------------------------------------------------------

    def _training(self, on_error: str, **options: Any) -> Any:
        def graph() -> Any:
            encoded, labels = fn.readers.file(file_root=str(self.folder / "photos"), random_shuffle=True, name="Reader")
            images = fn.random_resized_crop(fn.decoders.image(encoded), size=[24, 24])
            normal = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[120.0] * 3, std=[60.0] * 3)
            return normal, labels

        given = {"batch_size": _BATCH, "num_threads": 2, "device_id": None, "seed": 7, "on_error": on_error, **options}
        return dalify.pipeline_def(graph)(**given)

    def _some(self, pipe: Any, count: int) -> list[list[np.ndarray]]:
        found = []
        for _ in range(count):
            outputs = pipe.run()
            found.append([np.array(batch.at(index)) for batch in outputs for index in range(len(batch))])
            self.batches += 1
        return found

    def train(self) -> None:
        """Run some batches of the pipeline that is kept."""
        self._some(self._plain, 20)

    def resume(self) -> None:
        """Save the state in the middle of an epoch; a new pipeline returns the same batches as the old one."""
        policy = self._random.choice(("skip", "replace"))
        pipe = self._training(policy)
        self._some(pipe, self._random.randrange(12))
        state = pipe.state_dict()
        expected = self._some(pipe, 4)
        pipe.close()
        again = self._training(policy)
        again.load_state_dict(state)
        for one, other in zip(self._some(again, 4), expected, strict=True):
            for x, y in zip(one, other, strict=True):
                np.testing.assert_array_equal(x, y)
        again.close()

    def fork(self) -> None:
        """A child runs the pipeline that it has inherited, and so does the parent."""
        process = os.fork()
        if process == 0:
            status = 1
            faulthandler.dump_traceback_later(_FORK_SECONDS - 10)  # stacks of the threads, if it does not end
            try:
                self._plain.run()
                status = 0
            finally:
                os._exit(status)
        self._some(self._plain, 2)
        end = time.monotonic() + _FORK_SECONDS
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > end:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                raise AssertionError(f"a forked child did not finish its batch within {_FORK_SECONDS} s")
            time.sleep(0.01)
        assert os.waitstatus_to_exitcode(status) == 0, f"a forked child ended with {os.waitstatus_to_exitcode(status)}"

    def interrupt(self) -> None:
        """A KeyboardInterrupt at any moment of a run; the next run gives a batch."""
        pipe = self._training("replace")
        pipe.build()
        for _ in range(3):
            with _interrupted(self._random.uniform(0.0005, 0.02)):
                self._some(pipe, 10_000)
            self._some(pipe, 1)
        pipe.close()

    def lose_workers(self) -> None:
        """A worker process of a parallel source is killed: one batch is lost, and its place is taken."""
        pipe = self._parallel()
        self._some(pipe, 3)
        for process in _children():
            process.kill()
        lost = 0
        for _ in range(5):
            try:
                self._some(pipe, 1)
            except WorkerError:
                lost += 1
        assert lost <= 2, f"{lost} of 5 batches were lost with one worker"  # two are under way
        self._some(pipe, 2)
        pipe.close()

    def _parallel(self) -> Any:
        def graph() -> Any:
            photos = fn.external_source(source=_photo, batch=False, parallel=True, dtype=types.UINT8, layout="HWC")
            return fn.flip(photos)

        return dalify.pipeline_def(graph)(batch_size=_BATCH, num_threads=1, device_id=None, py_num_workers=1)

    def drop(self) -> None:
        """Create pipelines without closing them; some have run."""
        for number in range(4):
            pipe = self._training("skip", prefetch_queue_depth=3)
            if number:
                self._some(pipe, number)
            del pipe

    def call(self) -> None:
        """Operators without a pipeline, immediate and deferred."""
        photo = drawn_photo(30, 40, self._random.randrange(100))
        for _ in range(5):
            turned = eager.rotate(photo, angle=self._random.uniform(-90.0, 90.0))
            eager.resize(turned, size=[9, self._random.randrange(5, 30)])
            with dalify.lazy():
                small = eager.resize(photo, size=[20, 20])
                np.asarray(eager.flip(small))
            self.batches += 1


def _photo(sample: Any) -> np.ndarray:
    """Return a photo; the source of worker processes."""
    return drawn_photo(12, 16, sample.idx_in_epoch % 20)


@contextmanager
def _interrupted(seconds: float) -> Iterator[None]:
    """Send SIGINT, as Ctrl-C does, after some time, and catch the KeyboardInterrupt."""
    # A program that a shell started in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = signal.signal(signal.SIGALRM, lambda number, frame: os.kill(os.getpid(), signal.SIGINT))
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, before)


def main() -> int:
    """Run for some minutes; the exit status is 1 where something grew too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.soak")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    assert threading.current_thread() is threading.main_thread(), "signals are for the main thread"
    jpeg_decoder.compile()  # otherwise after 4,096 images, and its 60 MiB would be growth
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BadSampleWarning)
        failures = Soak(Path(folder), given.seed).run(given.minutes, lambda line: print(line, flush=True))
    print(f"{len(failures)} of {len(MEASURES)} measures grew too much" if failures else "nothing grew")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
