"""What does a fresh process pay: import, first batch, memory?"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.common import OURS, RIVAL, Options, missing_package, photo_folder

__all__ = ["main"]

# Runs in a process of its own; prints seconds of import, seconds to the first batch, and MB after ten more.
MEASURE = """
import importlib, json, resource, sys, time
root, folder = sys.argv[1:]
start = time.perf_counter()
importlib.import_module(root)
imported = time.perf_counter()
from benchmarks.common import library
from benchmarks.resnet_training import training
lib = library(root)
before = time.perf_counter()
pipeline = training(lib, folder, 1)
pipeline.build()
pipeline.run()
first = time.perf_counter()
for _ in range(10):
    pipeline.run()
try:  # the process's own peak; getrusage on Linux begins with that of the process that started it
    status = open("/proc/self/status").read()
    kilobytes = int(status.split("VmHWM:")[1].split()[0])
except OSError:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
print(json.dumps([imported - start, first - before, kilobytes / 1024, "torch" in sys.modules]))
"""


def main(options: Options) -> None:
    """Fresh processes in turn."""
    folder = photo_folder(options)
    runs = 1 if options.is_smoke else options.rounds
    roots = {"dalify": OURS, "DALI": RIVAL}
    figures: dict[str, list[list[float]]] = {name: [] for name, root in roots.items() if not missing_package([root])}
    if OURS in figures:
        measure(OURS, str(folder))  # fills the compiled kernels' cache on disk, which a user has from the second run on
    for _ in range(runs):
        for name in figures:
            figures[name].append(measure(roots[name], str(folder)))

    table = Table(title="a fresh process, ResNet-50 training, 1 thread", title_justify="left")
    for heading in ("", "import, s", "first batch, s", "largest resident memory, MB", "loads torch"):
        table.add_column(heading, justify="right" if heading else "left")
    for name in roots:
        if not figures.get(name):
            table.add_row(name, f"[dim]{roots[name]} is not installed[/dim]", "", "", "")
            continue
        imported, first, megabytes, loads_torch = (
            statistics.median(column) for column in zip(*figures[name], strict=True)
        )
        table.add_row(name, f"{imported:.3f}", f"{first:.2f}", f"{megabytes:.0f}", "yes" if loads_torch else "no")
    Console().print(table)


def measure(root: str, folder: str) -> list[float]:
    """Measure one library in a new process."""
    result = subprocess.run([sys.executable, "-c", MEASURE, root, folder], capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])
