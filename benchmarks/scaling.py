"""Measure how pipelines scale with cores, and the fraction of time in which workers hold the GIL.

For each pipeline:

- samples per second with one and two threads, compared with DALI and torch's DataLoader, measured alternately;
- the fraction of time in which a worker holds the GIL, by py-spy, and the fraction of its CPU time outside compiled
  calls, by a recording. They differ by NumPy's computations without the GIL;
- a simulation of up to 64 threads (see `benchmarks.simulation`), and a check with two simulated and two real threads;
- the real curve up to the number of cores, or for the numbers of ``--threads``.

Use an idle machine. With other load, a thread that waits for a core while it holds the GIL cannot be distinguished from
a thread that needs the GIL, and wall times are unreliable. Then compare CPU time per sample and ratios within a round.

``--json`` writes the figures to a file. ``--only training,ssd`` selects pipelines.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from dataclasses import replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import (
    OURS,
    Contender,
    Options,
    check_names,
    compare,
    library,
    pipelines,
    run_pipeline,
    take_turn,
    wait_until_idle,
)
from benchmarks.lock_share import lock_share
from benchmarks.scaling_pipelines import Workload, make_workload, workload_names
from benchmarks.simulation import Recording, Simulated, recording, simulating

SIMULATED_THREADS = (1, 2, 4, 8, 16, 32, 64)
SMOKE_THREADS = (1, 4)
WARM_UP_BATCHES = 3
SHORTEST_TURN_S = 1.0


def main(options: Options) -> None:
    """Measure the pipelines one after the other."""
    check_names("scaling", options, workload_names())
    if not options.is_smoke:
        options = replace(options, seconds=max(options.seconds, SHORTEST_TURN_S))
    found: dict[str, Any] = {"machine": _machine(), "pipelines": {}}
    for name in options.only or workload_names():
        found["pipelines"][name] = _measure(name, options)
        if options.json is not None:  # after each pipeline, so that an interrupted run saves its figures
            options.json.write_text(json.dumps(found, indent=2))


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def _measure(name: str, options: Options) -> dict[str, Any]:
    workload = make_workload(name, options)
    found: dict[str, Any] = {"unit": workload.unit, "samples_per_second": {}, "cpu_us_per_sample": {}}
    for threads in (1,) if options.is_smoke else (1, 2):
        contenders = [*pipelines(workload.define, num_threads=threads), workload.loader(threads)]
        medians = compare(
            f"{workload.title}, {_counted(threads)}",
            contenders,
            options,
            unit=workload.unit,
            warm_up_batches=WARM_UP_BATCHES,
        )
        found["samples_per_second"][str(threads)] = {name: turn.samples_per_second for name, turn in medians.items()}
        found["cpu_us_per_sample"][str(threads)] = {
            contender.name: medians[contender.name].cpu_us_per_sample
            for contender in contenders
            if contender.is_in_process and contender.name in medians
        }
    found["real"] = real = _real_curve(workload, options)
    found["lock_share"] = share = lock_share(name, options)
    made, outside = _record(workload, options)
    found["share_outside_compiled_calls"] = outside
    found["simulated"] = simulated = _simulate(workload, made, options)
    _print_curves(workload, real, simulated)
    text = f"{share:.1%}" if isinstance(share, float) else share
    Console().print(
        f"holds the GIL: {text}; CPU time outside compiled calls: {outside:.1%}; "
        f"compiled time executed in the simulation: {simulated['real_share']:.1%}\n"
    )
    return found


def _counted(threads: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}"


def _real_curve(workload: Workload, options: Options) -> dict[str, dict[str, float]]:
    """Time dalify with several numbers of threads alternately."""
    cores = os.cpu_count() or 1
    counts = options.threads or tuple(n for n in SIMULATED_THREADS if n <= cores)
    contenders = [
        Contender(
            f"dalify, {_counted(threads)}",
            partial(_open, workload, threads),
        )
        for threads in counts
    ]
    medians = compare(
        f"{workload.title}, real cores", contenders, options, unit=workload.unit, warm_up_batches=WARM_UP_BATCHES
    )
    return {
        str(threads): {
            "samples_per_second": turn.samples_per_second,
            "ratio": turn.samples_per_second / medians[contenders[0].name].samples_per_second,
        }
        for threads, turn in zip(counts, medians.values(), strict=True)
    }


def _open(workload: Workload, threads: int) -> Any:
    return run_pipeline(workload.define(library(OURS), num_threads=threads))


def _record(workload: Workload, options: Options) -> tuple[Recording, float]:
    """Record the compiled calls of one thread; return them and the fraction of CPU time outside of them."""
    seconds = 0.2 if options.is_smoke else max(3.0, 2 * options.seconds)
    with _open(workload, 1) as run_batch:
        for _ in range(WARM_UP_BATCHES):
            run_batch()
        wait_until_idle()
        with recording() as made:
            start, cpu_start = time.perf_counter(), time.process_time()
            while time.perf_counter() - start < seconds:
                run_batch()
            cpu_s, compiled_s = time.process_time() - cpu_start - made.overhead_s, made.thread_s
            wait_until_idle()  # prefetched batches must be computed with the recording
    return made, 1 - compiled_s / cpu_s


def _simulate(workload: Workload, made: Recording, options: Options) -> dict[str, Any]:
    """Run simulated threads, several alternating rounds of each number."""
    counts = SMOKE_THREADS if options.is_smoke else SIMULATED_THREADS
    rounds, seconds = (1, 0.05) if options.is_smoke else (min(options.rounds, 3), options.seconds)
    rates: dict[int, list[float]] = {threads: [] for threads in counts}
    done = Simulated()
    for _ in range(rounds):
        for threads in counts:
            with simulating(made, done), _open(workload, threads) as run_batch:
                # Up to one batch per thread is in progress, and the first batches are divided differently.
                warm_up = WARM_UP_BATCHES if options.is_smoke else WARM_UP_BATCHES * (threads + 1)
                rates[threads].append(take_turn(run_batch, seconds, warm_up).samples_per_second)
    medians = {threads: statistics.median(of) for threads, of in rates.items()}
    return {
        "real_share": done.real_share,
        "threads": {
            str(threads): {"samples_per_second": rate, "ratio": rate / medians[counts[0]]}
            for threads, rate in medians.items()
        },
    }


def _print_curves(workload: Workload, real: dict[str, Any], simulated: dict[str, Any]) -> None:
    table = Table(title=f"{workload.title}: speedup by threads", title_justify="left")
    for heading in ("threads", f"real {workload.unit}", "× 1 thread", f"simulated {workload.unit}", "× 1 thread"):
        table.add_column(heading, justify="right")
    for threads in sorted({*real, *simulated["threads"]}, key=int):
        cells: list[str] = []
        for curve in (real, simulated["threads"]):
            point = curve.get(threads)
            cells += ["", ""] if point is None else [f"{point['samples_per_second']:,.0f}", f"{point['ratio']:.2f}"]
        table.add_row(threads, *cells)
    Console().print(table)
