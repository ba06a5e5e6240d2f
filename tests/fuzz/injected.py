"""A MemoryError at each line of the code between stages and processes: ``python -m tests.fuzz.injected``.

Python may raise MemoryError in any line, and a user's object may raise anything where it is pickled. Wherever it
happens, a pipeline must return the right batch or raise an error, never wait forever, and leave nothing when it is
closed. Each case runs in a forked child: the first thread of a kind that reaches the line gets the error, once.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import linecache
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

import dalify
from dalify import eager, fn, lazy, pipeline_def
from dalify.base.threads import HelperThreads
from dalify.executor import read_ahead
from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin.iterators import ThreadIterator
from tests.helpers.photos import encode_image
from tests.helpers.processes import children
from tests.helpers.torchvision_import import import_torchvision

BATCH_SIZE = 4
BATCHES = 5
# Much longer than a case takes on a busy machine.
_LIMIT_S = 30.0
_ROOT = Path(dalify.__file__).parent
# What runs between the operators. Errors in operators, and in what they call, belong to samples.
_FILES = {
    str(_ROOT / name)
    for name in (
        "base/first_error.py",
        "base/threads.py",
        "executor/batch_source.py",
        "executor/engine.py",
        "executor/iteration.py",
        "executor/process_stages.py",
        "executor/read_ahead.py",
        "executor/remote.py",
        "executor/stage_state.py",
        "immediate/lazy/compiled_graph.py",
        "plugin/pytorch/dropin/iterators.py",
        "sources/parallel.py",
        "sources/reader_processes.py",
        "sources/worker_pool.py",
    )
}
# Lines without code that could fail; an error there would be outside of the block that they begin or end.
_EMPTY = ("try:", "finally:", "else:", "pass", "while True:", "return", "continue")
_HANG, _WRONG, _LEFT = 97, 98, 99

Step = Callable[[], Any]


class Site(NamedTuple):
    """A line, and who gets the error there.

    Attributes:
        file: path of the module.
        line: number of the line.
        is_library: whether a thread of the library gets it; otherwise the caller.
    """

    file: str
    line: int
    is_library: bool

    def __str__(self) -> str:
        """Return one line with the code."""
        who = "thread" if self.is_library else "caller"
        code = linecache.getline(self.file, self.line).strip()
        return f"{Path(self.file).relative_to(_ROOT)}:{self.line} ({who}): {code}"


# -- what runs ---------------------------------------------------------------------------------------------------------


class Items:
    """A dataset."""

    def __len__(self) -> int:
        return BATCH_SIZE * BATCHES

    def __getitem__(self, number: int) -> np.ndarray:
        return np.full(3, number)


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _sample(info: Any) -> np.ndarray:
    return np.full(3, info.idx_in_epoch % (BATCH_SIZE * BATCHES))


@contextmanager
def _steps_of(graph: Callable[[], Any], **options: Any) -> Iterator[Step]:
    pipe = pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None, **options)(graph)()
    try:
        yield lambda: [int(np.array(sample)[0]) for sample in pipe.run()[0]]
    finally:
        pipe.close()


def _dataset() -> Any:
    return fn.python_function(fn.readers.dataset(dataset=Items(), num_outputs=1) + 0, function=_same) + 0


def _reading_processes() -> Any:
    return fn.readers.dataset(dataset=Items(), num_outputs=1, processes=2) + 0


def _source() -> Any:
    return fn.external_source(_sample, batch=False, parallel=True) + 0


@contextmanager
def _read_ahead() -> Iterator[Step]:
    yield lambda: [read_ahead._submit(lambda number=number: number).result() for number in range(BATCH_SIZE)]


@contextmanager
def _helpers() -> Iterator[Step]:
    threads = HelperThreads(3, "dalify-helpers")
    yield lambda: threads.run([lambda number=number: number for number in range(BATCH_SIZE)])


@contextmanager
def _lazy() -> Iterator[Step]:
    batch = [np.full(3, number) for number in range(BATCH_SIZE)]

    def step() -> list[int]:
        with lazy():
            result = eager.cast(batch, dtype=np.int32) + 0
        return [int(np.array(sample)[0]) for sample in result]

    yield step


@contextmanager
def _loader(**options: Any) -> Iterator[Step]:
    """A loader of a folder of images, each in a class of its own."""
    transforms = import_torchvision("torchvision.transforms.v2")
    datasets = import_torchvision("torchvision.datasets")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(BATCH_SIZE * BATCHES):
            path = Path(folder, f"{number:02}", "image.png")
            path.parent.mkdir()
            path.write_bytes(encode_image(Image.new("RGB", (6, 5), (number,) * 3), "PNG"))
        steps = [transforms.RandomHorizontalFlip(), transforms.ToImage(), transforms.ToDtype(torch.float32)]
        data = datasets.ImageFolder(folder, transforms.Compose(steps))
        loader = DataLoader(data, batch_size=BATCH_SIZE, num_workers=2, prefetch_factor=1, **options)
        kept = [iter(loader)]
        assert type(kept[0]) is ThreadIterator, "the loader does not use threads"

        def labels_of(batch: Any) -> list[int]:
            images, labels = batch
            assert [int(image[0, 0, 0]) for image in images] == labels.tolist()
            return labels.tolist()

        def epoch() -> list[int]:
            kept[:] = [iter(loader)]
            found = [number for batch in kept[0] for number in labels_of(batch)]
            assert found == list(range(BATCH_SIZE * BATCHES))
            return found[:BATCH_SIZE]

        try:
            yield epoch if loader.persistent_workers else lambda: labels_of(next(kept[0]))
        finally:
            kept.clear()
            loader._iterator = None
            gc.collect()  # torch re-raises an error of a worker in a cycle of its traceback and itself


def _collated(samples: Any) -> Any:
    images, labels = zip(*samples, strict=True)
    return torch.stack([image.as_subclass(torch.Tensor) for image in images]), torch.tensor(labels)


SCENARIOS: dict[str, Callable[[], Any]] = {
    "threads": lambda: _steps_of(_dataset),
    "processes": lambda: _steps_of(_dataset, processes=2),
    "reading processes": lambda: _steps_of(_reading_processes),
    "parallel source": lambda: _steps_of(_source, py_num_workers=2),
    "read ahead": _read_ahead,
    "helper threads": _helpers,
    "lazy": _lazy,
    "loader": _loader,
    "loader, own collate": lambda: _loader(collate_fn=_collated),
    "persistent loader": lambda: _loader(persistent_workers=True),
}
"""Each yields a function that returns the numbers of the samples of the next batch."""


def _is_expected(name: str, got: list[int], call: int, *, is_of_caller: bool) -> bool:
    if name in ("read ahead", "helper threads", "lazy", "persistent loader"):
        return got == list(range(BATCH_SIZE))
    batch = got[0] // BATCH_SIZE
    # An error of the caller may come before it requests a batch, or when the batch is lost.
    is_next = abs(batch - call) <= 1 if is_of_caller else batch == call
    return is_next and got == [BATCH_SIZE * batch + place for place in range(BATCH_SIZE)]


def _run(name: str, tracer: _Tracer, *, is_of_caller: bool) -> str:
    """Run a scenario; return what was wrong."""
    wrong = ""
    with tracer.active(), SCENARIOS[name]() as step:
        for call in range(BATCHES - 1):
            try:
                tracer.is_calling = True
                got = step()
            except AssertionError as error:
                wrong = f"call {call}: wrong data: {error}"
                continue
            except (Exception, SystemExit):
                continue
            finally:
                tracer.is_calling = False
            if not _is_expected(name, got, call, is_of_caller=is_of_caller):
                wrong = f"call {call} returned {got}"
    return wrong


# -- injection ---------------------------------------------------------------------------------------------------------


class _Tracer:
    """Records the lines that threads execute, or raises an error at one of them.

    Args:
        site: where to raise; None: record.

    Attributes:
        seen: the lines.
        is_calling: whether the caller requests a batch; otherwise only other threads are traced.
    """

    def __init__(self, site: Site | None = None) -> None:
        self.seen: set[Site] = set()
        self.is_calling = False
        self._site = site
        self._process = os.getpid()
        self._caller = threading.main_thread()

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        """Trace a call of a function."""
        if frame.f_code.co_filename not in _FILES or os.getpid() != self._process:
            return None
        thread = threading.current_thread()
        if thread is not self._caller and not thread.name.startswith("dalify"):
            return None
        is_library = thread is not self._caller
        if not (is_library or self.is_calling):
            return None
        visited: set[int] = set()

        def line(frame: Any, event: str, argument: Any) -> Any:
            # A block is left on the line of its with, where an error would not be handled by the block.
            if event == "line" and frame.f_lineno not in visited:
                visited.add(frame.f_lineno)
                site = Site(frame.f_code.co_filename, frame.f_lineno, is_library)
                if self._site is None:
                    self.seen.add(site)
                elif site == self._site:
                    self._site = Site("", 0, False)
                    raise MemoryError("injected")
            return line

        return line

    @contextmanager
    def active(self) -> Iterator[None]:
        """Trace all threads that are started in the block, and the caller."""
        threading.settrace(self)
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # pyright: ignore[reportArgumentType]


def _in_child(function: Callable[[], int]) -> tuple[int, str]:
    """Return the exit status of a function in a forked child, and what it has printed."""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setsid()
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                signal.alarm(int(2 * _LIMIT_S))
                faulthandler.dump_traceback_later(_LIMIT_S, exit=False, file=output.fileno())
                status = function()
                sys.stdout.flush()
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", flush=True)
            finally:
                os._exit(status)
        deadline = time.monotonic() + _LIMIT_S
        status = None
        while status is None and time.monotonic() < deadline:
            ended, code = os.waitpid(child, os.WNOHANG)
            if ended:
                status = os.waitstatus_to_exitcode(code)
            else:
                time.sleep(0.005)
        if status is None:
            time.sleep(0.5)  # for the traceback
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if status is None:
            os.waitpid(child, 0)
            status = _HANG
        output.seek(0)
        return status, output.read()


def _warm_up(name: str) -> None:
    """Run a scenario, so that its children do not have to import and compile, which takes long when it is traced."""
    _run(name, _Tracer(Site("", 0, False)), is_of_caller=False)
    gc.collect()
    gc.freeze()  # children that collect garbage do not copy what torch has


def sites(name: str) -> list[Site]:
    """Return the lines that a scenario executes, in a stable order."""

    def record() -> int:
        tracer = _Tracer()
        wrong = _run(name, tracer, is_of_caller=False)
        for site in list(tracer.seen):
            print(f"{site.file}\t{site.line}\t{site.is_library:d}")
        print(f"wrong: {wrong}" if wrong else "", flush=True)
        return _WRONG if wrong else 0

    _warm_up(name)
    status, text = _in_child(record)
    if status:
        raise RuntimeError(f"{name}, without an error: {status}\n{text}")
    found: list[Site] = []
    for fields in map(str.split, text.splitlines()):
        if len(fields) == 3:
            site = Site(fields[0], int(fields[1]), bool(int(fields[2])))
            code = linecache.getline(site.file, site.line).split("#")[0].strip()
            if code not in _EMPTY:
                found.append(site)
    return sorted(found)


def injected(name: str, site: Site) -> str:
    """Run a scenario with an error at a line.

    Returns:
        what was wrong: a wrong batch, something that was left, or a hang with the tracebacks of all threads.
    """

    def run() -> int:
        wrong = _run(name, _Tracer(site), is_of_caller=not site.is_library)
        if wrong:
            print(wrong)
            return _WRONG
        deadline = time.monotonic() + 5.0
        left: list[str] = []
        while time.monotonic() < deadline:
            left = [
                one.name for one in threading.enumerate() if one.name.startswith(("dalify-collect", "dalify-loader"))
            ]
            left += [f"process {process}" for process in children()]
            if not left:
                return 0
            time.sleep(0.01)
        print(f"left: {left}")
        return _LEFT

    status, text = _in_child(run)
    return "" if status == 0 else f"{name}, {site}: status {status}\n{text}"


def wrong_at(name: str, lines: Sequence[tuple[bool, str, str]]) -> str:
    """Run a scenario with errors at some lines; return what was wrong.

    Args:
        name: of the scenario.
        lines: whether a thread of the library gets the error, module, and code of the line. A module may contain the
            same code several times.
    """
    _warm_up(name)
    wrong: list[str] = []
    for is_library, module, code in lines:
        file = str(_ROOT / module)
        numbers = [number for number, line in enumerate(linecache.getlines(file), 1) if line.strip() == code]
        if not numbers:
            wrong.append(f"{module} has no line {code!r}")
        wrong += [injected(name, Site(file, number, is_library)) for number in numbers]
    return "\n".join(filter(None, wrong))


def main() -> int:
    """Try all lines; the exit status is 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.injected")
    parser.add_argument("names", nargs="*", default=[], help="of scenarios")
    parser.add_argument("--every", type=int, default=1, help="try one of so many lines")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for name in given.names or SCENARIOS:
        found = sites(name)
        random.Random(given.seed).shuffle(found)
        chosen = found[:: given.every]
        for site in chosen:
            counts["lines"] += 1
            wrong = injected(name, site)
            if wrong:
                counts["wrong"] += 1
                print(wrong, flush=True)
        print(f"{name}: {len(chosen)} of {len(found)} lines", flush=True)
    print(dict(counts))
    return int(bool(counts["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
