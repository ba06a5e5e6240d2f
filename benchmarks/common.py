"""Time contenders alternately in one run, so that load on the machine affects all of them.

A contender is a function that produces one batch and returns its number of samples. Before each measurement a few
batches are discarded, because a contender may have prefetched them. After each measurement the next one waits until the
process is idle, because prefetching would slow it down.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from tutorials.photos import make_photos

OURS = "dalify"
RIVAL = "nvidia.dali"

# A process is idle if it used less than this fraction of a core during this interval. The system counts CPU time in
# ticks of 10 ms.
IDLE_INTERVAL_S = 0.1
IDLE_SHARE = 0.15

MIN_PHOTOS = 64  # the largest batch

RunBatch = Callable[[], int]


class UsageError(Exception):
    """An invalid command line; the message contains a correction."""


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    data: Path | None = None  # folder of class folders of JPEG files; None to generate photographs
    rounds: int = 5
    seconds: float = 1.5  # per contender and round
    is_smoke: bool = False  # only check that the benchmark runs
    only: tuple[str, ...] = ()  # names for the benchmarks operators, scaling and image_formats; empty for all
    threads: tuple[int, ...] = ()  # real numbers of threads for the benchmark scaling; empty for 1, 2, 4, … all cores
    json: Path | None = None  # file for the figures of the benchmarks scaling and gpu
    resumes: bool = False  # omit measurements of the benchmark gpu that were begun according to the file of figures


@dataclass(frozen=True)
class Contender:
    """One row of a table.

    Attributes:
        name: label of the row.
        open: returns a context manager with the function to time.
        needs: required packages; if one is missing, the row contains "not installed".
        is_in_process: False if other processes compute, so that the CPU time of this process is not shown.
    """

    name: str
    open: Callable[[], Any]
    needs: tuple[str, ...] = ()
    is_in_process: bool = True


@dataclass(frozen=True)
class Turn:
    """Measurement of one contender in one round."""

    samples_per_second: float
    cpu_us_per_sample: float  # CPU time of all threads of this process; on a busy machine more precise than wall time


def missing_package(names: Sequence[str]) -> str | None:
    """Return the first package of `names` that is not installed."""
    for name in names:
        try:
            if importlib.util.find_spec(name) is None:
                return name
        except ModuleNotFoundError:  # the parent package is not installed
            return name
    return None


def library(root: str) -> SimpleNamespace:
    """Return `pipeline_def`, `fn` and `types` of dalify or of the real DALI."""
    modules = {name: importlib.import_module(f"{root}.{name}") for name in ("fn", "types")}
    return SimpleNamespace(pipeline_def=importlib.import_module(root).pipeline_def, **modules)


@contextmanager
def run_pipeline(pipeline: Any) -> Iterator[RunBatch]:
    """Time a pipeline of either library."""
    pipeline.build()
    yield lambda: len(pipeline.run()[0])


def pipelines(define: Callable[..., Any], **arguments: Any) -> list[Contender]:
    """Return contenders for one definition: dalify first, then the real DALI.

    Args:
        define: function of a library and `arguments` that returns a pipeline.
        arguments: passed to `define`.
    """
    return [
        Contender(
            name,
            # A default argument binds the current value of the loop variable.
            lambda root=root: run_pipeline(define(library(root), **arguments)),
            (root,),
        )
        for name, root in (("dalify", OURS), ("DALI", RIVAL))
    ]


def take_turn(run_batch: RunBatch, seconds: float, warm_up_batches: int) -> Turn:
    """Run batches for `seconds` and return the speed."""
    for _ in range(warm_up_batches):
        run_batch()
    samples, start, cpu_start = 0, time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - start) < seconds:
        samples += run_batch()
    turn = Turn(samples / elapsed, (time.process_time() - cpu_start) / samples * 1e6)
    wait_until_idle()
    return turn


def wait_until_idle(timeout_s: float = 5.0) -> None:
    """Wait until this process and its children are idle."""
    end = time.monotonic() + timeout_s
    processes = [psutil.Process()]
    processes += processes[0].children(recursive=True)
    before = _cpu_seconds(processes)
    while time.monotonic() < end:
        time.sleep(IDLE_INTERVAL_S)
        now = _cpu_seconds(processes)
        if now - before < IDLE_SHARE * IDLE_INTERVAL_S:
            return
        before = now


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def compare(
    title: str, contenders: Sequence[Contender], options: Options, *, unit: str = "images/s", warm_up_batches: int = 3
) -> dict[str, Turn]:
    """Time contenders alternately, A B C A B C, and print a table.

    The last column is the ratio of the first contender to this one, as the median over the rounds.

    Returns:
        Medians by name.
    """
    rounds, seconds = (1, 0.05) if options.is_smoke else (options.rounds, options.seconds)
    turns: dict[str, list[Turn]] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        running: dict[str, RunBatch] = {}
        for contender in contenders:
            if package := missing_package(contender.needs):
                absent[contender.name] = package
            else:
                running[contender.name] = stack.enter_context(contender.open())
                turns[contender.name] = []
        for _ in range(rounds):
            for name, run_batch in running.items():
                turns[name].append(take_turn(run_batch, seconds, warm_up_batches))

    print_table(title, contenders, turns, absent, unit)
    return {
        name: Turn(
            statistics.median(turn.samples_per_second for turn in of),
            statistics.median(turn.cpu_us_per_sample for turn in of),
        )
        for name, of in turns.items()
    }


def print_table(
    title: str, contenders: Sequence[Contender], turns: dict[str, list[Turn]], absent: dict[str, str], unit: str
) -> None:
    """Print medians, spread, CPU time and ratios."""
    first = contenders[0].name
    table = Table(title=title, title_justify="left")
    for heading in ("", unit, "slowest – fastest round", "CPU µs each", f"{first} is"):
        table.add_column(heading, justify="right" if heading else "left")
    for contender in contenders:
        name = contender.name
        if name in absent:
            table.add_row(name, f"[dim]{absent[name]} is not installed[/dim]", "", "", "")
            continue
        rates = [turn.samples_per_second for turn in turns[name]]
        cpu = statistics.median(turn.cpu_us_per_sample for turn in turns[name])
        ratio = ""
        if name != first and first in turns:
            first_rates = [turn.samples_per_second for turn in turns[first]]
            ratio = f"{statistics.median(a / b for a, b in zip(first_rates, rates, strict=True)):.2f} ×"
        spread = f"{min(rates):,.0f} – {max(rates):,.0f}"
        cpu_text = f"{cpu:,.1f}" if contender.is_in_process else ""
        table.add_row(name, f"{statistics.median(rates):,.0f}", spread, cpu_text, ratio)
    Console().print(table)


def check_names(benchmark: str, options: Options, names: Sequence[str]) -> None:
    """Check the names of `--only`.

    Raises:
        UsageError: a name is not one of `names`.
    """
    if unknown := [name for name in options.only if name not in names]:
        raise UsageError(f"{benchmark}: --only does not know {', '.join(unknown)}; there are {', '.join(names)}")


def photo_folder(options: Options) -> Path:
    """Return the folder of the command line, or generate photographs of ImageNet's size: 500 pixels, about 70 kB.

    Raises:
        UsageError: the folder of the command line has too few files, or another layout.
    """
    if options.data is not None:
        found = sum(1 for _ in islice(options.data.glob("*/*.jpg"), MIN_PHOTOS))
        if found < MIN_PHOTOS:
            raise UsageError(
                f"--data {options.data}: needs at least {MIN_PHOTOS} JPEG files named CLASS/NAME.jpg in this folder; "
                f"there are {found}"
            )
        return options.data
    images_per_class = 4 if options.is_smoke else 16
    return make_photos(Path(f"out/photos_{images_per_class}"), images_per_class=images_per_class, longest_side=500)
