"""A short soak run, and the fit that decides whether a figure grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.soak import fitted

_PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_short_soak():
    """In a process of its own: it forks, sends signals, and counts all that the process has."""
    command = [sys.executable, "-m", "tests.fuzz.soak", "--minutes", "0.33"]
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "nothing grew" in done.stdout


def test_fitted():
    times = np.arange(20.0) + 5
    assert fitted(times, 3 * times + 1) == pytest.approx(3)
    assert fitted(times, np.full(20, 7.0)) == pytest.approx(0)
    assert fitted([1.0], [2.0]) == 0
