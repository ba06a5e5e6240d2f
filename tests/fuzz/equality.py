"""Compare batches of threads with those of worker processes, as a table: ``python -m tests.fuzz.equality``.

For the pipelines whose scaling is measured: two epochs with ``processes=2``, with workers that are killed at random
moments, and with states that one kind takes over from the other. Batches are compared byte by byte, by their digests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.common import Options, missing_package
from benchmarks.scaling_pipelines import make_workload, workload_names
from dalify import fn, types
from dalify.pipeline import Pipeline, pipeline_def
from dalify.pipeline.pipeline import parts_of
from tests.helpers.processes import killed

PROCESSES = 2
BATCH_SIZE = 4
EPOCHS = 2
# A batch is given up when five workers have died of it: kills come more slowly than batches.
BATCHES_PER_KILL = 3
HEADINGS = ("pipeline", "batches", "processes=2", "20 kills", "threads, then processes", "processes, then threads")

Define = Callable[[int], Pipeline]


@dataclass
class Row:
    """What was found for one pipeline.

    Attributes:
        batches: of two epochs.
        differ: by the name of a comparison, how many batches were other ones.
        deaths: of workers that were killed.
        compared_with_kills: batches that were computed meanwhile.
    """

    batches: int
    differ: dict[str, int] = field(default_factory=dict)
    deaths: int = 0
    compared_with_kills: int = 0


def _definition(name: str, method: str) -> Define:
    """Return a function from a number of processes to one of the pipelines of the benchmarks, in small batches."""
    workload = make_workload(name, Options(is_smoke=True))

    def define(processes: int) -> Pipeline:
        def smaller(**given: Any) -> Any:
            return pipeline_def(
                **{**given, "batch_size": BATCH_SIZE, "processes": processes, "py_start_method": method}
            )

        library = SimpleNamespace(fn=fn, types=types, pipeline_def=smaller)
        return workload.define(library, num_threads=2)

    return define


def _digest(outputs: Sequence[Any]) -> str:
    found = hashlib.sha256()
    for output in outputs:
        for place in range(len(output)):
            array = np.asarray(output.at(place))
            found.update(f"{array.dtype} {array.shape} {output.layout()} ".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _digests(pipe: Pipeline, count: int) -> list[str]:
    return [_digest(pipe.run()) for _ in range(count)]


def _unequal(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(mine != theirs for mine, theirs in zip(one, other, strict=True))


@contextmanager
def _made(define: Define, processes: int) -> Iterator[Pipeline]:
    pipe = define(processes)
    pipe.build()
    try:
        yield pipe
    finally:
        pipe.close()


def compared(name: str, kills: int, chance: random.Random, method: str = "fork") -> Row:
    """Compare one pipeline of the benchmarks.

    Args:
        name: see ``benchmarks.scaling_pipelines``.
        kills: of workers; two epochs are run again until so many were killed.
        chance: decides when and whom.
        method: how workers are started.
    """
    define = _definition(name, method)
    with _made(define, 0) as pipe:
        samples = next(iter(pipe.reader_meta().values()))["epoch_size"]
        count = -(-EPOCHS * samples // BATCH_SIZE)
        expected = _digests(pipe, count)
    row = Row(count)
    with _made(define, PROCESSES) as pipe:
        row.differ["processes=2"] = _unequal(_digests(pipe, count), expected)
    row.differ["20 kills"] = 0
    while row.deaths < kills:
        _compare_with_kills(define, expected, kills, chance, row)
    for heading, first, then in ((HEADINGS[4], 0, PROCESSES), (HEADINGS[5], PROCESSES, 0)):
        half = chance.randrange(1, count)
        with _made(define, first) as pipe:
            found = _digests(pipe, half)
            state = pipe.state_dict()
        with _made(define, then) as pipe:
            pipe.load_state_dict(state)
            found += _digests(pipe, count - half)
        row.differ[heading] = _unequal(found, expected)
    return row


def _compare_with_kills(define: Define, expected: Sequence[str], kills: int, chance: random.Random, row: Row) -> None:
    with _made(define, PROCESSES) as pipe:
        engine: Any = parts_of(pipe).builder.engine()
        begins = time.monotonic()
        found = _digests(pipe, 1)
        per_batch_s = max(0.002, time.monotonic() - begins)

        def kill() -> None:
            workers = engine.remote.process_ids
            row.deaths += bool(workers) and killed(chance.choice(workers))

        while len(found) < len(expected):
            killers = [threading.Timer(chance.uniform(0, per_batch_s), kill)] if row.deaths < kills else []
            for killer in killers:
                killer.start()
            begins = time.monotonic()
            found += _digests(pipe, min(BATCHES_PER_KILL, len(expected) - len(found)))
            per_batch_s = max(0.002, (time.monotonic() - begins) / BATCHES_PER_KILL)
            for killer in killers:
                killer.join()
        row.differ["20 kills"] += _unequal(found, expected)
        row.compared_with_kills += len(found)


def table(rows: dict[str, Row], kills: int) -> str:
    """Return a table as Markdown."""
    headings = [heading.replace("20 kills", f"{kills} kills") for heading in HEADINGS]
    lines = ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    for name, row in rows.items():
        cells = [name, str(row.batches)]
        for heading in HEADINGS[2:]:
            differ = row.differ[heading]
            text = f"{differ} differ" if differ else "equal"
            if heading == "20 kills":
                text += f" ({row.deaths} killed, {row.compared_with_kills} batches)"
            cells.append(text)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Compare all pipelines; the exit status is 1 where a batch differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.equality")
    parser.add_argument("names", nargs="*", choices=[[], *workload_names()], help="of pipelines; default: all")
    parser.add_argument("--kills", type=int, default=20, help="of workers of each pipeline")
    parser.add_argument("--method", choices=("fork", "spawn", "forkserver"), default="fork", help="to start workers")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    rows: dict[str, Row] = {}
    for name in given.names or workload_names():
        if name == "speech" and missing_package(["soundfile"]):
            print("speech: soundfile is not installed", file=sys.stderr)
            continue
        rows[name] = compared(name, given.kills, chance, given.method)
    print(f"{table(rows, given.kills)}\n(workers by {given.method}; load of the machine: {os.getloadavg()[0]:.1f})")
    return int(any(differ for row in rows.values() for differ in row.differ.values()))


if __name__ == "__main__":
    sys.exit(main())
