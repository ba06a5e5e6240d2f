"""Ctrl-C at any time in any mode: one KeyboardInterrupt, the exit status of SIGINT, and no remaining processes.

How long it takes is not tested: machines that run tests are busy.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.helpers.endless_programs import BEGIN, PROGRAMS, session_of
from tests.helpers.photos import write_photo_folder
from tests.helpers.platforms import needs_posix
from tests.helpers.programs import LIMIT_S, finished, running

pytestmark = needs_posix


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photos")
    write_photo_folder(path)
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c(folder: Path, tmp_path: Path, name: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(BEGIN + PROGRAMS[name])
    chance = random.Random(name)
    for _ in range(1 if "torch" in PROGRAMS[name] else 2):  # to import torch takes seconds
        with running(program, folder) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            time.sleep(chance.uniform(0, 0.7))
            os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes of the program
            _, errors = process.communicate(timeout=LIMIT_S)
            assert line == "ready\n", errors
            assert process.returncode == -signal.SIGINT, errors
            if name == "loader with processes":  # torch's workers also print tracebacks, in any order
                assert "KeyboardInterrupt" in errors, errors
            else:
                # There may be a second traceback, of a StopIteration that torch's iterator was handling.
                assert errors.splitlines().count("KeyboardInterrupt") == 1, errors
                assert errors.rstrip().endswith("KeyboardInterrupt"), errors
            deadline = time.monotonic() + LIMIT_S
            while session_of(process.pid):
                assert time.monotonic() < deadline, session_of(process.pid)
                time.sleep(0.02)


COMPILING = """
import atexit
atexit.register(time.sleep, 0.2)  # called after those of dalify, which is imported after this
from dalify.plugin.pytorch.dropin import iterators

def compile_all(self, indices, draws):
    while True:
        exec("1 + 1")

iterators.Fetcher.fetch = compile_all
"""


def test_while_threads_of_a_loader_compile(folder: Path, tmp_path: Path) -> None:
    """Compilers call exec() with strings, after which CPython would end the program with another status."""
    program = tmp_path / "program.py"
    program.write_text(BEGIN + COMPILING + PROGRAMS["loader with threads"])
    with running(program, folder) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == -signal.SIGINT, errors


def test_a_shell_loop_stops(folder: Path, tmp_path: Path) -> None:
    """A shell continues after a program with any other status, and would start the next training run."""
    (tmp_path / "program.py").write_text(BEGIN + PROGRAMS["pipeline"])
    loop = f"for number in 1 2 3; do '{sys.executable}' program.py '{folder}'; done; echo went on"
    wrapper = """
        import os, subprocess, sys
        sys.exit(subprocess.call(["/bin/bash", "-c", sys.argv[1]], cwd=sys.argv[2]))
    """
    with running(wrapper, loop, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=LIMIT_S)
        assert "went on" not in out
        assert "ready" not in out


def test_sigterm_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    before = set(shared.iterdir()) if shared.is_dir() else set()
    for name in ("parallel, fork", "parallel, late", "dataset, late", "processes, fork"):
        program = tmp_path / "program.py"
        program.write_text(BEGIN + PROGRAMS[name])
        with running(program, folder) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.terminate()
            process.wait(LIMIT_S)
            deadline = time.monotonic() + LIMIT_S
            while session_of(process.pid):
                assert time.monotonic() < deadline, session_of(process.pid)
                time.sleep(0.02)
    mine = [path for path in (set(shared.iterdir()) if shared.is_dir() else set()) - before if "dalify" in path.name]
    assert mine == []


CONTINUES = """
    import os, random, signal, sys, threading, time
    import numpy as np
    from dalify import fn, pipeline_def

    def source(info):
        return np.full((20, 20), info.idx_in_epoch)

    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=3, py_num_workers=2)
    def batches():
        numbers = fn.readers.dataset(dataset=[(number,) for number in range(10)], num_outputs=1)
        if sys.argv[1] == "parallel":
            return fn.external_source(source, batch=False, parallel=True, prefetch_queue_depth=2), numbers
        return fn.external_source(source, batch=False) + 0, numbers

    if __name__ == "__main__":
        pipe = batches()
        pipe.run()
        ends = threading.Event()

        def press():
            chance = random.Random(1)
            for _ in range(100):
                time.sleep(chance.uniform(0, 0.01))
                os.kill(os.getpid(), signal.SIGINT)
            ends.set()

        is_handled, count = False, 0

        def interrupt(number, frame):
            # Python's own handler would also raise where the program cannot handle it: in start() and in except blocks.
            global is_handled, count
            if is_handled:
                is_handled = False
                count += 1
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, interrupt)
        threading.Thread(target=press).start()
        seen = []
        while not ends.is_set() or len(seen) < 50:
            try:
                is_handled = True
                one, other = pipe.run()
                seen.append((int(one.as_array()[0, 0, 0]) // 4, int(other.as_array()[0]) // 2))
                is_handled = False
            except KeyboardInterrupt:
                pass
        assert seen == sorted(set(seen)), seen
        # A batch may be lost with the interrupt that comes while it is handed over, but never half of one.
        assert all(number * 2 % 5 == other for number, other in seen), seen
        assert seen[-1][0] - len(seen) <= count, (seen[-1], len(seen), count)
        print("fine", count > 50)
"""


@pytest.mark.parametrize("kind", ["parallel", "in this process"])
def test_a_program_that_handles_it_continues(tmp_path: Path, kind: str) -> None:
    """As in a notebook: after repeated interrupts, no call hangs, and sources and readers stay at the same batch."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(CONTINUES))
    code, out, errors = finished(program, kind)
    assert (code, errors) == (0, "")
    assert out == "fine True\n"


def test_tests_pass_in_the_background(tmp_path: Path) -> None:
    """A shell ignores SIGINT for background programs, and children inherit this."""
    test = "tests/integration/test_ctrl_c.py::test_ctrl_c[pipeline]"
    command = f"trap '' INT; exec '{sys.executable}' -m pytest -q -p no:cacheprovider -p no:xdist '{test}'"
    result = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout
