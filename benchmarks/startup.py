"""Measure a new process: import, first batch with and without cached compiled kernels, memory."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.common import OURS, RIVAL, Options, missing_package, photo_folder

# Runs in a separate process; prints seconds of import, seconds to the first batch, CPU seconds from the start of the
# process to the first batch, MB after ten more batches, and whether torch was loaded.
MEASURE = """
import importlib, json, resource, sys, time, types
root, folder = sys.argv[1:]
start = time.perf_counter()
importlib.import_module(root)
imported = time.perf_counter()
from benchmarks.training_pipeline import training
modules = {name: importlib.import_module(f"{root}.{name}") for name in ("fn", "types")}
lib = types.SimpleNamespace(pipeline_def=sys.modules[root].pipeline_def, **modules)
before = time.perf_counter()
pipeline = training(lib, folder, 1)
pipeline.build()
pipeline.run()
first, cpu = time.perf_counter(), time.process_time()
for _ in range(10):
    pipeline.run()
try:  # the peak of this process; on Linux, getrusage starts with the peak of the parent process
    status = open("/proc/self/status").read()
    kilobytes = int(status.split("VmHWM:")[1].split()[0])
except OSError:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
print(json.dumps([imported - start, first - before, cpu, kilobytes / 1024, "torch" in sys.modules]))
"""


PROJECT = Path(__file__).parent.parent
EMPTY = "dalify, no compiled kernels"


def main(options: Options) -> None:
    """Time new processes alternately."""
    folder = str(photo_folder(options).resolve())
    runs = 1 if options.is_smoke else options.rounds
    roots = {"dalify": OURS, EMPTY: OURS, "DALI": RIVAL}
    figures: dict[str, list[list[float]]] = {name: [] for name, root in roots.items() if not missing_package([root])}
    measure(OURS, folder, PROJECT)  # saves the compiled kernels for the other runs
    for _ in range(runs):
        for name in figures:
            if name == EMPTY:
                with copied_package() as source:
                    figures[name].append(measure(OURS, folder, source))
            else:
                figures[name].append(measure(roots[name], folder, PROJECT))

    table = Table(title="a new process, ResNet-50 training, 1 thread", title_justify="left")
    headings = (
        "",
        "import, s",
        "first batch, s",
        "CPU s to the first batch",
        "peak resident memory, MB",
        "loads torch",
    )
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    for name in roots:
        if not figures.get(name):
            table.add_row(name, f"[dim]{roots[name]} is not installed[/dim]", "", "", "", "")
            continue
        imported, first, cpu, megabytes, loads_torch = (
            statistics.median(column) for column in zip(*figures[name], strict=True)
        )
        row = (f"{imported:.3f}", f"{first:.2f}", f"{cpu:.2f}", f"{megabytes:.0f}", "yes" if loads_torch else "no")
        table.add_row(name, *row)
    Console().print(table)


@contextmanager
def copied_package() -> Iterator[Path]:
    """Copy dalify without its compiled kernels, which are saved next to the source files."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PROJECT / "dalify", Path(folder) / "dalify", ignore=shutil.ignore_patterns("*.nbc"))
        yield Path(folder)


def measure(root: str, folder: str, source: Path) -> list[float]:
    """Measure one library in a new process; dalify is imported from the folder `source`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(PROJECT)])}
    environment.pop("NUMBA_CACHE_DIR", None)
    # Bytecode is saved, as for an installed package; otherwise Python would compile dalify each time, but not DALI.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", MEASURE, root, folder]
    result = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])
