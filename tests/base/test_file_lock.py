"""A lock between processes: one holder at a time, and none after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from dalify.base.file_lock import LOCK_FLAGS, locked, try_lock

_HOLDER = """
import sys, time
from pathlib import Path
from dalify.base.file_lock import locked
with locked(Path(sys.argv[1]), 5.0) as lock:
    print("held" if lock is not None else "refused", flush=True)
    time.sleep(60)
"""


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, 1.0) as one:
        assert one is not None
        began = time.monotonic()
        with locked(path, 0.05) as other:
            assert other is None
        assert 0.04 < time.monotonic() - began < 30.0
    with locked(path, 0.0) as again:
        assert again is not None


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"held"
        with locked(path, 0.02) as lock:
            assert lock is None
        process.kill()
    with locked(path, 5.0) as lock:
        assert lock is not None


def test_closing_releases(tmp_path: Path) -> None:
    one = os.open(tmp_path / "lock", LOCK_FLAGS)
    other = os.open(tmp_path / "lock", LOCK_FLAGS)
    assert try_lock(one)
    assert not try_lock(other)
    os.close(one)
    assert try_lock(other)
    os.close(other)
