"""``scripts/device_check.sh`` runs all its parts, and all tests for accelerators without collecting the others."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/device_check.sh"


def test_files_of_all_tests_for_devices_are_found(request: pytest.FixtureRequest) -> None:
    """Of the tests that were collected with this one: all of them in a run of the whole suite."""
    pattern = re.search("^for_devices='(.+)'$", SCRIPT.read_text(), re.MULTILINE)
    assert pattern is not None
    files = {item.path for item in request.session.items if item.get_closest_marker("gpu") is not None}
    missing = [path for path in files if not re.search(pattern[1], path.read_text(), re.MULTILINE)]
    assert not missing


@pytest.mark.parametrize(
    ("ending", "benchmark_runs"),
    # Passed, failed, stopped after its time, device unusable, ended by a signal.
    [("exit 0", 1), ("exit 1", 1), ("exit 124", 1), ("exit 3", 3), ("kill -SEGV $$", 3)],
)
def test_a_part_that_fails_hides_no_other(ending: str, benchmark_runs: int, tmp_path: Path) -> None:
    python, report = tmp_path / "python", tmp_path / "out/report.txt"
    python.write_text(f'#!/bin/sh\necho "ran $*"\n{ending}\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "SMOKE": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [SCRIPT, report], env=environment, capture_output=True, text=True, timeout=100, check=False
    )  # fmt: skip
    text = report.read_text()
    assert done.returncode == (0 if ending == "exit 0" else 1), done.stderr
    assert text.splitlines()[-1].endswith("all passed" if ending == "exit 0" else "something failed")
    counts = {part: len(re.findall(f"^ran {part}", text, re.MULTILINE)) for part in
              ("-c $", ".*tests/executor/test_on_device.py$", ".*tests/operators/decoders/test_mixed.py$",
               "-m benchmarks gpu", "-m benchmarks gpu .*--resume", "-m benchmarks scaling")}  # fmt: skip
    assert list(counts.values()) == [1, 1, 1, benchmark_runs, benchmark_runs - 1, 1]
