"""No kernel reads or writes outside its arrays, for any data and arguments.

`hostile_runs.py` tests it in a separate process: compiled with a check of every index, and with arrays that lie
next to memory that must not be accessed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.platforms import needs_linux

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)  # two minutes of a free core; many on a busy machine
@needs_linux
def test_no_kernel_leaves_its_arrays(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # Code with checks must not be mistaken for code without. Where pytest keeps a cache, kernels that call no others
    # are compiled once.
    cache = getattr(request.config, "cache", None)
    compiled = cache.mkdir("bounds-checked-kernels") if cache is not None else tmp_path
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_OPT": "0",  # most of the time is compilation
        "NUMBA_CACHE_DIR": str(compiled),
        "DALIFY_BOUNDS_EXAMPLES": "15",
    }
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # One process: several would each compile the kernels that call others.
    done = subprocess.run(
        [*command, "tests/kernels/hostile_runs.py"],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert not done.returncode, done.stdout[-8000:]
