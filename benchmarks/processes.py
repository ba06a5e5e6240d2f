"""Compare worker processes, ``Pipeline(processes=N)``, with threads."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.common import OURS, Options, RunBatch, library, photo_folder, run_pipeline, wait_until_idle

BATCH_SIZE = 64
# Factor for the time of a turn, because each process has a batch in progress at its end, which distorts short turns.
LONG = 4
IMAGE = np.random.default_rng(0).integers(0, 255, (224, 224, 3), dtype=np.uint8)
# Runs in a separate process: seconds of import, seconds to the first batch, MB of this process or of its worker.
MEASURE = """
import importlib, json, sys, time
method, folder = sys.argv[1:]
start = time.perf_counter()
importlib.import_module("dalify")
from benchmarks.common import library
from benchmarks import processes
imported = time.perf_counter() - start
if __name__ == "__main__":
    options = {"processes": 1, "py_start_method": method} if method else {}
    pipe = processes.photos(library("dalify"), folder, num_threads=1, **options)
    start = time.perf_counter()
    pipe.build()
    pipe.run()
    first = time.perf_counter() - start
    for _ in range(10):
        pipe.run()
    import multiprocessing
    import psutil
    measured = psutil.Process(multiprocessing.active_children()[0].pid if method else None)
    memory = measured.memory_full_info()
    print(json.dumps([imported, first, memory.uss / 1e6, memory.rss / 1e6]))
"""


def photos(lib: Any, folder: str, num_threads: int = 2, **options: Any) -> Any:
    """Define a training pipeline with compiled operators only."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1, **options)
    def pipeline():
        encoded, label = fn.readers.file(file_root=folder, random_shuffle=True)
        image = fn.random_resized_crop(fn.decoders.image(encoded), size=(224, 224))
        image = fn.crop_mirror_normalize(
            image,
            dtype=types.FLOAT,
            output_layout="CHW",
            mirror=fn.random.coin_flip(),
            mean=[123.7, 116.3, 103.5],
            std=[58.4, 57.1, 57.4],
        )
        return image, label

    return pipeline()


def python_only(lib: Any, num_threads: int = 2, **options: Any) -> Any:
    """Define a pipeline that spends its time in a Python function that does not release the GIL."""

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1, **options)
    def pipeline():
        return lib.fn.python_function(lib.fn.random.uniform(range=[0.0, 1.0]), function=_computed, parallel=True)

    return pipeline()


def _computed(value: np.ndarray) -> np.ndarray:
    total = 0.0
    for number in range(5_000):
        total += number * 0.5
    return np.array([total + float(value)], np.float32)


def large(lib: Any, **options: Any) -> Any:
    """Define a fast pipeline with large outputs: 64x3x224x224 floats."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, seed=1, exec_pipelined=False, **options)
    def pipeline():
        image = fn.brightness(types.Constant(IMAGE), brightness=fn.random.uniform(range=[0.5, 1.5]))
        return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip())

    return pipeline()


def main(options: Options) -> None:
    """Measure throughput, overhead per batch, and start time and memory of a worker."""
    lib = library(OURS)
    folder = str(photo_folder(options).resolve())
    for title, define in (
        ("compiled operators, 2 threads or 2 processes of 1 thread", partial(photos, lib, folder)),
        ("a pure Python function, 2 threads or 2 processes of 1 thread", partial(python_only, lib)),
    ):
        _print_throughput(title, define, options)
    _print_overhead(lib, 3 if options.is_smoke else 100, 1 if options.is_smoke else options.rounds)
    _print_start(folder, 1 if options.is_smoke else options.rounds)


def _print_throughput(title: str, define: Any, options: Options) -> None:
    """Time both alternately; unlike wall time, the CPU time of all processes is reliable on a busy machine."""
    rounds, seconds = (1, 0.05) if options.is_smoke else (options.rounds, LONG * options.seconds)
    found: dict[str, list[tuple[float, float]]] = {"processes=2": [], "threads": []}
    with ExitStack() as stack:
        run = {
            name: stack.enter_context(run_pipeline(define(**({"processes": 2} if name != "threads" else {}))))
            for name in found
        }
        for _ in range(rounds):
            for name, turns in found.items():
                turns.append(_turn(run[name], seconds))
    table = Table(title=title, title_justify="left")
    for heading in ("", "samples/s", "slowest – fastest round", "CPU µs each, all processes", "processes=2 is"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, turns in found.items():
        rates = [rate for rate, _ in turns]
        ratio = statistics.median(own[0] / other[0] for own, other in zip(found["processes=2"], turns, strict=True))
        cpu = statistics.median(each for _, each in turns) * 1e6
        table.add_row(
            name,
            f"{statistics.median(rates):,.0f}",
            f"{min(rates):,.0f} – {max(rates):,.0f}",
            f"{cpu:,.0f}",
            "" if name == "processes=2" else f"{ratio:.2f} ×",
        )
    Console().print(table)


def _turn(run_batch: RunBatch, seconds: float) -> tuple[float, float]:
    """Return samples per second, and CPU seconds per sample of this process and its children."""
    for _ in range(6):
        run_batch()
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    samples, start, before = 0, time.perf_counter(), _cpu_seconds(family)
    while (elapsed := time.perf_counter() - start) < seconds:
        samples += run_batch()
    cpu = _cpu_seconds(family) - before
    wait_until_idle()
    return samples / elapsed, cpu / samples


def _cpu_seconds(family: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in family)


def _print_overhead(lib: Any, batches: int, rounds: int) -> None:
    """Time batches without prefetching; the difference is the overhead.

    The pipelines alternate batch by batch, so that load on the machine affects both.
    """
    pipes = {"threads": large(lib), "processes=1": large(lib, processes=1)}
    table = Table(title="a batch of 64x3x224x224 floats, not prefetched", title_justify="left")
    for heading in ("", "ms, median", "quickest"):
        table.add_column(heading, justify="right" if heading else "left")
    times: dict[str, list[float]] = {name: [] for name in pipes}
    for number in range(rounds * batches + 5):
        for name, pipe in pipes.items():
            start = time.perf_counter()
            pipe.run()
            if number >= 5:
                times[name].append((time.perf_counter() - start) * 1e3)
    for pipe in pipes.values():
        pipe.close()
    differences = [other - own for own, other in zip(*times.values(), strict=True)]
    for name, found in times.items():
        table.add_row(name, f"{statistics.median(found):.2f}", f"{min(found):.2f}")
    quickest = min(times["processes=1"]) - min(times["threads"])
    table.add_row("difference", f"{statistics.median(differences):.2f}", f"{quickest:.2f}")
    Console().print(table)


def _print_start(folder: str, rounds: int) -> None:
    table = Table(title="start and memory, compiled operators, 1 thread", title_justify="left")
    for heading in ("", "import, s", "first batch, s", "unique memory, MB", "resident memory, MB"):
        table.add_column(heading, justify="right" if heading else "left")
    for method in ("", "fork", "forkserver", "spawn"):
        rows = np.median([_measured(method, folder) for _ in range(rounds)], axis=0)
        name = f"a worker, {method}" if method else "this process"
        table.add_row(name, *(f"{value:.2f}" for value in rows[:2]), *(f"{value:.0f}" for value in rows[2:]))
    Console().print(table)


def _measured(method: str, folder: str) -> list[float]:
    program = Path("out/processes_start.py")  # spawned workers import this module
    program.parent.mkdir(exist_ok=True)
    program.write_text(MEASURE)
    ran = subprocess.run(
        [sys.executable, str(program), method, folder],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    return json.loads(ran.stdout)
