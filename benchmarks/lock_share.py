"""Measure the fraction of time in which a worker holds the GIL. py-spy samples another process.

py-spy does not pause that process, because pausing increased the result by up to a third: threads are often paused in a
system call while they hold the GIL, and continue with a cold CPU cache. Samples that py-spy cannot read because the
stack changes are counted as holding the GIL.

As a program, this file is the other process: a pipeline with one worker that runs until its standard input ends.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from benchmarks.common import OURS, Options, library
from benchmarks.scaling_pipelines import make_workload
from dalify.codecs.decode_batch import jpeg_decoder

SAMPLES_PER_SECOND = 200
MIN_SECONDS = 10  # with 2,000 samples, the standard error of 4 % is 0.4 %
WORKER = "dalify-"  # name of the worker threads
_ERRORS = re.compile(r"Errors: (\d+)")


def lock_share(name: str, options: Options) -> float | str:
    """Return the fraction of time in which the worker of a pipeline with one thread holds the GIL.

    Args:
        name: name of a workload; see `benchmarks.scaling_pipelines`.
        options: the options of the benchmark.

    Returns:
        The fraction, or the reason why it cannot be measured.
    """
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    program = shutil.which("py-spy", path=os.pathsep.join(folders))
    if program is None:
        return "py-spy is not installed"
    seconds = 1 if options.is_smoke else max(MIN_SECONDS, round(2 * options.seconds))
    command = [sys.executable, "-m", "benchmarks.lock_share", name]
    command += [f"--data={options.data}"] * (options.data is not None) + ["--smoke"] * options.is_smoke
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            if child.stdout.readline().strip() != "ready":
                return "the pipeline failed"
            target = Path(folder) / "stacks.txt"
            command = [
                program,
                "record",
                "--gil",
                "--nonblocking",
                "--threads",
                "--format",
                "raw",
                "--output",
                str(target),
            ]
            command += ["--rate", str(SAMPLES_PER_SECOND), "--duration", str(seconds), "--pid", str(child.pid)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode or not target.exists():
                lines = (result.stderr or result.stdout).strip().splitlines()
                return f"py-spy: {lines[-1] if lines else 'failed'}"
            unread = _ERRORS.search(result.stdout + result.stderr)
            held = _samples_of_workers(target.read_text()) + (int(unread[1]) if unread else 0)
            return held / (SAMPLES_PER_SECOND * seconds)
        finally:
            child.stdin.close()


def _samples_of_workers(stacks: str) -> int:
    """Return the number of samples in lines such as ``thread (123): dalify-0-0;_work (threads.py:3);… 17``."""
    total = 0
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        if WORKER in stack.split(";")[0]:
            total += int(count)
    return total


def _run_until_input_ends(name: str, options: Options) -> None:
    pipeline: Any = make_workload(name, options).define(library(OURS), num_threads=1)
    pipeline.build()
    jpeg_decoder.compile()  # otherwise after many images, during the measurement
    for _ in range(3):
        pipeline.run()
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        pipeline.run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    _run_until_input_ends(arguments.name, Options(data=arguments.data, is_smoke=arguments.smoke))
