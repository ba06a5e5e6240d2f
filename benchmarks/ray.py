"""Compare Ray actors, ``RayPipeline``, with worker processes and threads on one machine."""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import OURS, Options, library, photo_folder, wait_until_idle
from benchmarks.processes import large, photos


def main(options: Options) -> None:
    """Measure the throughput of two actors, two processes and two threads, and the cost of a large batch."""
    if importlib.util.find_spec("ray") is None:
        print("ray: not installed, skipped: pip install 'dalify[ray]'")
        return
    lib = library(OURS)
    folder = str(photo_folder(options).resolve())
    with _cluster() as on_ray:
        for title, define, is_rate in (
            (
                "JPEG photographs to batches of 64x3x224x224 float32: samples/s",
                lambda **given: photos(lib, folder, **given),
                True,
            ),
            ("batches of 39 MB without computation: ms per batch", lambda **given: large(lib, **given), False),
        ):
            kinds: dict[str, Callable[[], Any]] = {
                "2 Ray actors": lambda define=define: on_ray(define()),
                "processes=2": lambda define=define: define(processes=2, py_start_method="spawn"),
                "threads": define,
            }
            _print(title, kinds, options, is_rate=is_rate)


@contextmanager
def _cluster() -> Iterator[Callable[[Any], Any]]:
    import ray

    from dalify.plugin.ray import RayPipeline

    # By default actors have the niceness 15, unlike threads.
    os.environ.update(RAY_worker_niceness="0", RAY_USAGE_STATS_ENABLED="0")
    ray.init("local", num_cpus=2, object_store_memory=1 << 30, include_dashboard=False, logging_level="ERROR")
    try:
        yield lambda pipe: RayPipeline(pipe, workers=2)
    finally:
        ray.shutdown()


def _print(title: str, kinds: dict[str, Callable[[], Any]], options: Options, *, is_rate: bool) -> None:
    rounds, seconds = (1, 0.05) if options.is_smoke else (options.rounds, options.seconds)
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, make in kinds.items():
            pipe = make()
            found[name].append(_rate(pipe, seconds))
            pipe.close()
            wait_until_idle()
    table = Table(title=title, title_justify="left")
    for heading in ("", "median", "slowest – fastest round", "Ray is"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rates in found.items():
        shown = rates if is_rate else [64 / rate * 1e3 for rate in rates]
        ratio = statistics.median(own / other for own, other in zip(found["2 Ray actors"], rates, strict=True))
        table.add_row(
            name,
            f"{statistics.median(shown):,.1f}",
            f"{min(shown):,.1f} – {max(shown):,.1f}",
            "" if name == "2 Ray actors" else f"{ratio:.2f} ×",
        )
    Console().print(table)


def _rate(pipe: Any, seconds: float) -> float:
    for _ in range(8):
        pipe.run()
    samples, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        samples += len(pipe.run()[0])
    return samples / elapsed
