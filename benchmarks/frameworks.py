"""Measure the overhead of framework iterators over the iterator of NumPy arrays, with batches of 64 images in memory.

Each framework runs in its environment of `make test-frameworks`, or in this environment if it is installed here. The
iterators of NumPy and of the framework alternate.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import Options, missing_package

PROJECT = Path(__file__).parent.parent
ENVIRONMENTS = PROJECT / ".venv-frameworks"
# Name of the row: package, plugin, environment.
FRAMEWORKS = {
    "torch": ("torch", "pytorch", ""),
    "jax": ("jax", "jax", "jax"),
    "tensorflow": ("tensorflow", "tf", "tensorflow"),
    "tensorflow, DALIDataset": ("tensorflow", "tf", "tensorflow"),
    "paddle": ("paddle", "paddle", "paddle"),
}
BATCH = 64
SHAPE = (224, 224, 3)


def _pipeline() -> tuple[Any, int]:
    """Return the pipeline and the address of its images."""
    from dalify import fn, pipeline_def
    from dalify.data.pool import pageable

    images = pageable(BATCH * int(np.prod(SHAPE))).reshape(BATCH, *SHAPE)
    images[...] = 1
    labels = np.zeros((BATCH, 1), np.int32)

    @pipeline_def(batch_size=BATCH, num_threads=1)
    def ready() -> Any:
        # The data are in memory and are not copied, so only the iterator is measured.
        return tuple(fn.external_source(source=lambda: (images, labels), num_outputs=2, no_copy=True))

    return ready(), images.ctypes.data


def _address(tensor: Any) -> int:
    if hasattr(tensor, "unsafe_buffer_pointer"):
        return tensor.unsafe_buffer_pointer()
    if hasattr(tensor, "data_ptr"):
        return tensor.data_ptr()
    array = tensor if isinstance(tensor, np.ndarray) else np.from_dlpack(tensor)
    return array.__array_interface__["data"][0]


def _contender(name: str) -> tuple[Callable[[], Any], int]:
    """Return a function that returns the next images, and the address of the source images."""
    pipeline, address = _pipeline()
    if name.endswith("DALIDataset"):
        from dalify.plugin import tf

        # The dataset creates its own pipeline with the same data.
        batches = iter(tf.DALIDataset(pipeline))
        return lambda: next(batches)[0], address
    plugin = "numpy" if name == "numpy" else FRAMEWORKS[name][1]
    loader = importlib.import_module(f"dalify.plugin.{plugin}").DALIGenericIterator(pipeline, ["x", "y"])
    if name == "jax":
        return lambda: next(loader)["x"], address
    return lambda: next(loader)[0]["x"], address


def measure(name: str, rounds: int, batches: int) -> dict[str, Any]:
    """Return milliseconds per batch of NumPy and of a framework, measured alternately, and the fraction of copies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = importlib.import_module(FRAMEWORKS[name][0])
    following_of, address = _contender(name)
    contenders = {"numpy": _contender("numpy")[0], name: following_of}
    copies = sum(_address(following_of()) != address for _ in range(10)) / 10
    found: dict[str, Any] = {"version": package.__version__, "copies": copies}
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for _ in range(rounds):
        for key, following in contenders.items():
            start = time.perf_counter()
            for _ in range(batches):
                following()
            times[key].append((time.perf_counter() - start) / batches * 1e3)
    return {**found, "numpy": times["numpy"], "framework": times[name]}


def main(options: Options) -> None:
    """Measure each framework in a new process."""
    rounds, batches = (1, 20) if options.is_smoke else (max(5, options.rounds) * 3, 200)
    table = Table(title=f"iterators, batches of {BATCH} × {SHAPE} uint8", title_justify="left")
    for heading in ("", "version", "ms per batch", "NumPy, ms", "overhead over NumPy, ms", "images/s", "copies"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, (package, _, environment) in FRAMEWORKS.items():
        python = ENVIRONMENTS / environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if not environment or not python.exists():
            python = Path(sys.executable)
            if missing_package([package]):
                table.add_row(name, f"[dim]{package} is not installed[/dim]", "", "", "", "", "")
                continue
        done = subprocess.run(
            [python, "-m", "benchmarks.frameworks", name, str(rounds), str(batches)],
            cwd=PROJECT,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"the process of {name} failed:\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        theirs, numpy = statistics.median(found["framework"]), statistics.median(found["numpy"])
        above = statistics.median(a - b for a, b in zip(found["framework"], found["numpy"], strict=True))
        copies = f"{found['copies']:.0f}"
        row = (
            found["version"],
            f"{theirs:.3f}",
            f"{numpy:.3f}",
            f"{above:.3f}",
            f"{BATCH / theirs * 1e3:,.0f}",
            copies,
        )
        table.add_row(name, *row)
    Console().print(table)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
