"""The tutorial about Ray, which `make tutorials` skips in an environment without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.frameworks import imported

imported("ray")
from tests.helpers.ray_cluster import SETTINGS  # noqa: E402

TUTORIAL = Path(__file__).parents[3] / "tutorials/14_a_ray_cluster_feeds_trainers.py"


@pytest.mark.timeout(400)
def test_the_tutorial_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, TUTORIAL],
        cwd=tmp_path,
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        timeout=360,
        errors="replace",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "losses of the first epoch" in done.stdout
