"""Functions that are called when a process ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.platforms import needs_posix
from tests.helpers.programs import finished

CALLS = """
import multiprocessing, os, sys
from dalify.base.exit_hook import at_exit

if __name__ == "__main__":
    at_exit(lambda: print("first", name, flush=True))
    at_exit(lambda: print("second", name, flush=True))
    name = "child"
    if sys.argv[1] == "os.fork":
        child = os.fork()
        if not child:
            sys.exit(0)
        os.waitpid(child, 0)
    else:
        process = multiprocessing.get_context("fork").Process(target=print, args=("runs",), kwargs=dict(flush=True))
        process.start()
        process.join()
    name = "parent"
"""

# What is registered in a process of its own, and before that process ends its child processes.
BEFORE_CHILDREN = """
import multiprocessing, sys, time

def child():
    from dalify.base.exit_hook import at_exit

    sleeper = multiprocessing.Process(target=time.sleep, args=(60,), daemon=True)
    sleeper.start()
    at_exit(lambda: print(sleeper.is_alive(), flush=True))
    sys.exit(3)

if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
"""


@needs_posix
@pytest.mark.parametrize(("kind", "runs"), [("os.fork", ""), ("multiprocessing", "runs\n")])
def test_functions_are_called_in_forked_processes_too(kind: str, runs: str) -> None:
    expected = runs + "second child\nfirst child\nsecond parent\nfirst parent\n"
    assert finished(CALLS, kind) == (0, expected, "")


@needs_posix
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_functions_are_called_before_child_processes_are_ended(tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(BEFORE_CHILDREN)
    assert finished(program, method) == (0, "True\n3\n", "")
