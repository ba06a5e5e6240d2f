"""What `conftest.py` does around the tests: programs end with the run, fixtures are freed, messages are not delayed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.orphans import GRACE_S
from tests.helpers.platforms import needs_posix
from tests.helpers.processes import is_running
from tests.helpers.programs import LIMIT_S, PROJECT, running

CONFTEST = """
    from tests.conftest import pytest_runtest_protocol, pytest_sessionstart
"""
# Two programs that do not follow the end of their parent, the second one started by the first in a session of its own.
PROGRAMS = """
    import os, subprocess, sys
    from pathlib import Path
    from tests.helpers.programs import running

    ENDLESS = "import time; time.sleep(3600)"
    PARENT = f'''
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", {ENDLESS!r}], start_new_session=True)
    print(child.pid, flush=True)
    time.sleep(3600)
    '''

    def test_programs():
        other = subprocess.Popen([sys.executable, "-c", ENDLESS], env={**os.environ, "ADDED": "1"})
        with running(PARENT) as process:
            child = process.stdout.readline().strip()
            Path("new").write_text(f"{process.pid} {child} {other.pid}")
            Path("new").rename("processes")
            process.wait()
"""
FIRST = """
    import sys, weakref
    import pytest

    class Holder:
        def __init__(self):
            self.itself = self

    @pytest.fixture
    def holder():
        yield Holder()

    def test_a_fixture_with_a_cycle(holder):
        sys.kept = weakref.ref(holder)
"""
SECOND = """
    import sys

    def test_the_fixture_is_freed():
        assert sys.kept() is None
"""


def _write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))


@needs_posix
def test_programs_end_when_the_run_is_killed(tmp_path: Path) -> None:
    _write(tmp_path, conftest=CONFTEST, test_programs=PROGRAMS)
    arguments = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    program = f"import os, sys, pytest; os.chdir({str(tmp_path)!r}); sys.exit(pytest.main(sys.argv[1:]))"
    found = tmp_path / "processes"
    with running(program, *arguments) as run:
        deadline = time.monotonic() + LIMIT_S
        while not found.exists():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        programs = [int(word) for word in found.read_text().split()]
        assert len(programs) == 3
        assert all(map(is_running, programs))
        run.send_signal(signal.SIGKILL)
        run.wait(LIMIT_S)
        deadline = time.monotonic() + GRACE_S + LIMIT_S
        while any(map(is_running, programs)):
            assert time.monotonic() < deadline, "programs stayed behind"
            time.sleep(0.05)


def test_fixtures_are_freed_after_their_module(tmp_path: Path) -> None:
    _write(tmp_path, conftest=CONFTEST, test_1=FIRST, test_2=SECOND)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "2 passed" in done.stdout


def test_messages_between_processes_are_not_delayed(pytestconfig: pytest.Config) -> None:
    if not hasattr(pytestconfig, "workerinput"):
        pytest.skip("pytest runs in one process")
    config: Any = pytestconfig
    assert config.failures_db.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
