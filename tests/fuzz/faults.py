"""Ctrl-C, kill -9 and deaths of workers at random moments, counted: ``python -m tests.fuzz.faults``.

Prints a table for each. What is wrong whatever the machine does (a status, a batch, something left behind) is a
failure; times are printed only, since other programs may have the processors. The first rows are programs without
dalify, so that times can be compared.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from dalify import fn
from dalify.base.errors import WorkerError
from dalify.pipeline import Pipeline
from tests.helpers.endless_programs import BEGIN, PROGRAMS, session_of
from tests.helpers.photos import write_photo_folder
from tests.helpers.programs import LIMIT_S, running

_BARE = "bare Python"
_TORCH = "torch and torchvision, without dalify"  # for comparison: the time that they take to end
_PROGRAMS = {
    _BARE: "ready()\nwhile True: time.sleep(3600)",
    _TORCH: "import torch\n"
    "from tests.helpers.torchvision_import import import_torchvision\n"
    "import_torchvision('torchvision.datasets')\nready()\nwhile True: time.sleep(3600)",
    **PROGRAMS,
}
_WITH_WORKERS = (
    "parallel, fork",
    "parallel, spawn",
    "parallel, forkserver",
    "parallel, late",
    "dataset",
    "dataset, late",
)
_BATCH = 4
_WORKERS = 3
_LATEST_S = 0.7  # after a program is ready
_CALL_S = 0.5  # longest call in a worker, where calls are bounded


@dataclass
class Row:
    """What happened in one mode.

    Attributes:
        count: of interrupts, kills or deaths.
        seconds: how long each took to have its effect.
        cpu: seconds of processors from an interrupt to the end, by the program and its children; hardly depends on what
            else the machine does.
        wrong: what should not have happened, and how often.
        notes: what else is worth a column.
    """

    count: int = 0
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wrong: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, seconds: float) -> None:
        """Count one that had its effect after some time."""
        self.count += 1
        self.seconds.append(seconds)


def _shared_memory() -> set[str]:
    folder = Path("/dev/shm")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@contextmanager
def _ready(name: str, folder: Path, place: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a program, and wait until it reports that it is ready."""
    path = place / "program.py"
    path.write_text(BEGIN + _PROGRAMS[name])
    with running(path, folder) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "ready\n", process.communicate(timeout=LIMIT_S)[1]
        yield process


def _until_gone(process: int) -> float:
    """Return the seconds until no process of a session is left."""
    begins = time.monotonic()
    while session_of(process) and time.monotonic() - begins < LIMIT_S:
        time.sleep(0.005)
    return time.monotonic() - begins


def press(name: str, count: int, folder: Path, chance: random.Random) -> Row:
    """Interrupt a program at random moments, a new one each time."""
    row = Row()
    with tempfile.TemporaryDirectory() as place:
        for _ in range(count):
            with _ready(name, folder, Path(place)) as process:
                time.sleep(chance.uniform(0, _LATEST_S))
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                so_far = psutil.Process(process.pid).cpu_times()
                begins = time.monotonic()
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
                errors = process.communicate(timeout=LIMIT_S)[1]
                row.add(time.monotonic() - begins)
                in_all = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu = in_all.ru_utime + in_all.ru_stime - used.ru_utime - used.ru_stime
                row.cpu.append(max(0.0, cpu - so_far.user - so_far.system))
                row.notes[f"status {process.returncode}"] += 1
                is_right = process.returncode == -signal.SIGINT
                if not is_right:
                    row.wrong[f"status {process.returncode}"] += 1
                # Worker processes of torch print one each.
                count_raised = errors.splitlines().count("KeyboardInterrupt")
                if name != "loader with processes" and count_raised != 1:
                    row.wrong[f"{count_raised} KeyboardInterrupts"] += 1
                    is_right = False
                if not is_right:
                    print(f"{name}:\n{errors}", file=sys.stderr)
                if _until_gone(process.pid) > 2:
                    row.wrong["processes left after 2 s"] += 1
    return row


def kill_programs(name: str, count: int, folder: Path, chance: random.Random) -> Row:
    """Kill a program that has worker processes; the time is measured until the last of them has ended."""
    row = Row()
    before = _shared_memory()
    with tempfile.TemporaryDirectory() as place:
        for _ in range(count):
            with _ready(name, folder, Path(place)) as process:
                time.sleep(chance.uniform(0, _LATEST_S))
                process.kill()
                process.wait(LIMIT_S)
                row.add(_until_gone(process.pid))
                if row.seconds[-1] > 2:
                    row.notes["later than 2 s"] += 1
    left = [path for path in _shared_memory() - before if "dalify" in path or path.startswith("psm_")]
    row.wrong.update({"files left in /dev/shm": len(left)} if left else {})
    return row


def _workers(*, is_server: bool = False) -> set[int]:
    """Return the worker processes of this one, or its fork server."""
    found: set[int] = set()
    for process in psutil.Process().children():
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            if "resource_tracker" in command:
                continue
            if is_server or "multiprocessing.forkserver" not in command:
                found.add(process.pid)
            else:
                found.update(child.pid for child in process.children())
    return found


def _source(info: Any) -> np.ndarray:
    time.sleep(0.001)
    return np.full((10, 10), info.idx_in_epoch)


class _Items:
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, number: int) -> tuple[np.ndarray]:
        time.sleep(0.001)
        return (np.full((10, 10), number),)


def _pipeline(kind: str, method: str, source: Callable[[Any], np.ndarray] = _source, **options: Any) -> Pipeline:
    given: dict[str, Any] = {
        "batch_size": _BATCH,
        "num_threads": 2,
        "py_num_workers": _WORKERS,
        "py_start_method": method,
    }
    pipe = Pipeline(**given, prefetch_queue_depth=2, **options)
    with pipe:
        if kind == "source":
            pipe.set_outputs(fn.external_source(source, batch=False, parallel=True, prefetch_queue_depth=3))
        else:
            pipe.set_outputs(fn.readers.dataset(dataset=_Items(), num_outputs=1, processes=_WORKERS))
    pipe.build()
    return pipe


def kill_workers(kind: str, method: str, count: int, chance: random.Random) -> Row:
    """Kill workers of a pipeline at random moments while it runs; the time is that until its next good batch."""
    row = Row()
    known = _workers()
    before = _shared_memory()
    pipe = _pipeline("source" if kind == "fork server" else kind, method)
    pipe.run()
    ends, killed = threading.Event(), []

    def kill() -> None:
        while len(killed) < count and not ends.is_set():
            time.sleep(chance.uniform(0, 0.05))
            workers = sorted(_workers(is_server=kind == "fork server") - known)
            if workers:
                os.kill(chance.choice(workers), signal.SIGKILL)
                killed.append(time.monotonic())

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        number, handled, after = 1, 0, 0
        while after < 20:
            try:
                (batch,) = pipe.run()
                now = time.monotonic()
                if np.array(batch.at(0)).flat[0] != number * _BATCH:
                    row.wrong["wrong batch"] += 1
                while handled < len(killed) and killed[handled] < now:
                    row.add(now - killed[handled])
                    handled += 1
                after += not thread.is_alive()
            except WorkerError:
                row.notes["lost batches"] += 1
            number += 1
    finally:
        ends.set()
        thread.join()
        pipe.close()
    if row.notes["lost batches"] > row.count * (_WORKERS if kind == "fork server" else 1):
        row.wrong["more lost batches than deaths"] += 1
    left = _shared_memory() - before
    row.wrong.update({"files left in /dev/shm": len(left)} if left else {})
    return row


def _dies(way: str) -> None:
    if way == "exit":
        os._exit(3)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "segmentation fault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "files closed":
        os.closerange(2, 1024)  # with that for errors: multiprocessing would print one
    if way == "sleep":
        time.sleep(3600)
    if way == "computation":
        _ = 7 ** (10**9)


WAYS = ("exit", "kill", "segmentation fault", "files closed", "sleep", "computation")


def death_of_workers(way: str, count: int) -> Row:
    """Let a worker die in every third batch; the time is that of the run() that raises the error."""
    row = Row()
    last = _BATCH * 3 * count

    def source(info: Any) -> np.ndarray:
        if info.idx_in_epoch % (3 * _BATCH) == _BATCH + 1 and info.idx_in_epoch < last:
            _dies(way)
        return np.full((10, 10), info.idx_in_epoch)

    pipe = _pipeline("source", "fork", source, callback_timeout_s=_CALL_S)
    try:
        for number in range(3 * count + 3):
            begins = time.monotonic()
            try:
                (batch,) = pipe.run()
                if np.array(batch.at(0)).flat[0] != number * _BATCH:
                    row.wrong["wrong batch"] += 1
                if number % 3 == 1 and number < 3 * count:
                    row.wrong["no error"] += 1
            except WorkerError as error:
                row.add(time.monotonic() - begins)
                # On a machine without processors to spare, a good call may take longer than it may.
                is_late = "took longer" in str(error) and way not in ("sleep", "computation")
                if number % 3 != 1 or is_late:
                    row.notes["calls that were late by chance"] += 1
    finally:
        pipe.close()
    return row


def table(title: str, rows: dict[str, Row]) -> str:
    """Return a table as Markdown."""
    lines = [f"| {title} | count | median | worst | worst CPU | wrong | notes |", "|---|---|---|---|---|---|---|"]
    total = Row()
    for name, row in rows.items():
        lines.append(_line(name, row))
        if name not in (_BARE, _TORCH):
            total.count += row.count
            total.seconds += row.seconds
            total.cpu += row.cpu
            total.wrong += row.wrong
            total.notes += row.notes
    return "\n".join([*lines, _line("all", total)])


def _line(name: str, row: Row) -> str:
    strings = [
        ", ".join(f"{count} x {what}" for what, count in sorted(found.items())) for found in (row.wrong, row.notes)
    ]
    median, worst = (statistics.median(row.seconds), max(row.seconds)) if row.seconds else (0.0, 0.0)
    cpu = f"{max(row.cpu):.2f} s" if row.cpu else ""
    return f"| {name} | {row.count} | {median:.3f} s | {worst:.3f} s | {cpu} | {strings[0] or 'none'} | {strings[1]} |"


def main() -> int:
    """Do all of it; the exit status is 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.faults")
    parser.add_argument("--presses", type=int, default=5, help="of Ctrl-C in each mode")
    parser.add_argument("--kills", type=int, default=40, help="of workers in each mode; a third as many of programs")
    parser.add_argument("--deaths", type=int, default=10, help="of workers in each way")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    tables: list[dict[str, Row]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_photo_folder(folder)

        def show(title: str, rows: dict[str, Row]) -> None:
            tables.append(rows)
            print(f"{table(title, rows)}\n(load of the machine: {os.getloadavg()[0]:.1f})\n", flush=True)

        if given.presses:
            show("Ctrl-C", {name: press(name, given.presses, folder, chance) for name in _PROGRAMS})
        if given.kills:
            kinds = [(kind, method) for kind in ("source", "dataset") for method in ("fork", "spawn", "forkserver")]
            kinds.append(("fork server", "forkserver"))
            show("kill -9 of workers", {f"{k}, {m}": kill_workers(k, m, given.kills, chance) for k, m in kinds})
            count = -(-given.kills // 3)
            show("kill -9 of programs", {n: kill_programs(n, count, folder, chance) for n in (_BARE, *_WITH_WORKERS)})
        if given.deaths:
            show("deaths of workers", {way: death_of_workers(way, given.deaths) for way in WAYS})
    return int(any(row.wrong for rows in tables for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
