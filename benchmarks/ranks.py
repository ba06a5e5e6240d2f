"""Measure the sampler of one of 10,000 ranks: the first batch, resuming, and a change of the world size.

Only samplers are measured, without data. Each figure is for one rank. It does not depend on the number of samples or
ranks, unless the states of all ranks are passed.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import Options
from dalify.sources.sampler import Sampler
from dalify.sources.sampler_options import SamplerOptions

BATCH_SIZE = 64
MAX_RANKS = 10_000
SIZES = (10**3, 10**5, 10**7, 10**9)
MODES: dict[str, dict[str, Any]] = {
    "in order": {},
    "random_shuffle": {"random_shuffle": True},
    "shuffle_after_epoch": {"shuffle_after_epoch": True},
}


def main(options: Options) -> None:
    """Print a table per mode, and the cost of passing all states."""
    rounds = 2 if options.is_smoke else 20
    for title, mode in MODES.items():
        table = Table(title=f"one rank, {title}: microseconds of CPU time (peak memory in kB)")
        headings = (
            "samples",
            "ranks",
            "first batch",
            "next batch",
            "epoch 1,000",
            "resume",
            "new world size",
            "state",
        )
        for heading in headings:
            table.add_column(heading, justify="right")
        for size in SIZES:
            table.add_row(*_row(size, min(MAX_RANKS, size // 10), mode, rounds))
        Console().print(table)
    _print_all_states(rounds)


def _row(size: int, ranks: int, mode: dict[str, Any], rounds: int) -> list[str]:
    rank = ranks // 3

    def fresh(shard: int = rank, count: int = ranks) -> Sampler:
        return Sampler(SamplerOptions(size, shard, count, seed=5, shuffle_after_epoch_seed=5, **mode))

    running = fresh()
    running.next_batch(BATCH_SIZE)
    saved = json.dumps(running.state())

    def in_later_epoch() -> None:
        sampler = fresh()
        sampler.start_epoch(1_000)
        sampler.next_batch(BATCH_SIZE)

    def resumed(state: str = saved, count: int = ranks) -> Sampler:
        sampler = fresh(rank // 2, count) if count != ranks else fresh()
        sampler.restore(json.loads(state))
        sampler.next_batch(BATCH_SIZE)
        return sampler

    other = max(1, ranks * 3 // 4)
    measured = [
        _cost(lambda: fresh().next_batch(BATCH_SIZE), rounds),
        _cost(lambda: running.next_batch(BATCH_SIZE), rounds),
        _cost(in_later_epoch, rounds),
        _cost(resumed, rounds),
    ]
    if "random_shuffle" in mode:  # needs the states of all ranks, see below
        length = len(saved)
    else:
        measured.append(_cost(lambda: resumed(saved, other), rounds))
        length = len(json.dumps(resumed(saved, other).state()))
    cells = [f"{microseconds:,.0f} ({size_bytes / 1e3:,.0f})" for microseconds, size_bytes in measured]
    return [f"{size:,}", f"{ranks:,}", *cells, *["all states"] * (5 - len(cells)), f"{length} bytes"]


def _cost(action: Callable[[], object], rounds: int) -> tuple[float, int]:
    """Return the median of the CPU time in microseconds, and the peak memory in bytes."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.process_time_ns()
        action()
        times.append((time.process_time_ns() - start) / 1e3)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return statistics.median(times), most - before


def _print_all_states(rounds: int) -> None:
    """Measure ``random_shuffle``, where a new world size needs all states, because shards have different seeds."""
    table = Table(title="one rank, random_shuffle, new world size: the states of all ranks are read")
    for heading in (
        "samples",
        "ranks",
        "ms of CPU time",
        "kB of memory",
        "new state, equal seeds",
        "seeds differ",
    ):
        table.add_column(heading, justify="right")
    for ranks in (10, 100, 1_000, MAX_RANKS):
        size = 10**9
        lengths: list[int] = []
        for differ in (0, 1):
            states = [
                {**Sampler(SamplerOptions(size, shard, ranks, random_shuffle=True, seed=differ * shard)).state()}
                | {"position": 6400}
                for shard in range(ranks)
            ]
            sampler = Sampler(SamplerOptions(size, 1, ranks * 3 // 4, random_shuffle=True, seed=9))

            def restore(sampler: Sampler = sampler, states: list[dict[str, Any]] = states) -> None:
                sampler.restore({"shards": states})
                sampler.next_batch(BATCH_SIZE)

            microseconds, size_bytes = _cost(restore, max(2, rounds // 4))
            lengths.append(len(json.dumps(sampler.state())))
        table.add_row(
            f"{size:,}",
            f"{ranks:,}",
            f"{microseconds / 1e3:,.1f}",
            f"{size_bytes / 1e3:,.0f}",
            *(f"{length:,} bytes" for length in lengths),
        )
    Console().print(table)
