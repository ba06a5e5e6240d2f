"""A short soak run, and the fit that decides whether a figure grows."""

from __future__ import annotations

import mmap
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.soak import Soak, fitted, memory
from tests.helpers.platforms import needs_linux

_PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_short_soak():
    """In a separate process: it forks, sends signals, and counts all resources of the process."""
    command = [sys.executable, "-m", "tests.fuzz.soak", "--minutes", "0.33"]
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "nothing grew" in done.stdout


@needs_linux
def test_memory_counts_only_the_process(tmp_path: Path):
    """Mapped files, such as libraries, come and go with the load of the machine."""
    path = tmp_path / "file"
    path.write_bytes(bytes(64 << 20))
    before = memory()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert not any(mapped[::4096])
        assert memory() - before < 8
    allocated = np.ones(64 << 20, np.uint8)
    assert memory() - before > 56
    del allocated


def test_warm_up_is_a_fraction_of_the_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a busy machine, most of the time passes in the first round, which compiles."""
    soak = Soak(tmp_path)

    def scenario() -> None:
        soak.batches += 1

    with closing(soak._plain):
        for name in ("train", "resume", "fork", "interrupt", "lose_workers", "drop", "call"):
            monkeypatch.setattr(soak, name, scenario)
        assert soak.run(0, lambda line: None) == []
        assert len(soak.times) == 20, "a line through fewer says nothing"
        soak.times = [100.0 + number for number in range(20)]
        soak.values["memory"] = [*range(0, 140, 20), *[140.0] * 13]
        assert soak.growth(lambda line: None) == []
        soak.values["memory"] = [*[0.0] * 13, *range(20, 160, 20)]
        assert [line.split(":")[0] for line in soak.growth(lambda line: None)] == ["memory"]


def test_fitted():
    times = np.arange(20.0) + 5
    assert fitted(times, 3 * times + 1) == pytest.approx(3)
    assert fitted(times, np.full(20, 7.0)) == pytest.approx(0)
    assert fitted([1.0], [2.0]) == 0
