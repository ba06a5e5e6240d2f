"""A Python process that has imported and compiled what programs need, and is forked for each of them.

Several times faster than a new process for each. For programs that do not depend on how Python was started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from subprocess import CompletedProcess

from tests.helpers.orphans import MARK

# Reads a line for each program: its text, its environment, and the folders from which it imports.
_SERVER = """
import json, os, sys, tempfile, traceback

def run(order):
    os.environ.clear()
    os.environ.update(order["environment"])
    tempfile.tempdir = None  # the variable TMPDIR may be another one
    sys.path[1:1] = order["paths"]
    prepare()
    exec(compile(order["program"], "<string>", "exec"), {"__name__": "__main__"})

namespace = {}
exec(sys.argv[1], namespace)
prepare = namespace["prepare"]
for line in sys.stdin:
    order = json.loads(line)
    outputs = [tempfile.TemporaryFile() for _ in range(2)]
    child = os.fork()
    if not child:
        for number, output in enumerate(outputs, 1):
            os.dup2(output.fileno(), number)
        status = 1
        try:
            run(order)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for output in outputs:
        output.seek(0)
        texts.append(output.read().decode())
        output.close()
    print(json.dumps([status, *texts]), flush=True)
"""


class WarmPython:
    """Runs programs, one at a time.

    Args:
        preparation: program that imports the common modules, and defines ``prepare()``, which is called in each forked
            process after its environment is set.
        environment: environment of the process that runs it.
    """

    def __init__(self, preparation: str, environment: dict[str, str]) -> None:
        command = [sys.executable, "-c", _SERVER, preparation]
        mark = {MARK: os.environ[MARK]} if MARK in os.environ else {}
        self._process = subprocess.Popen(
            command, env={**environment, **mark}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, program: str, environment: dict[str, str], paths: list[str]) -> CompletedProcess[str]:
        """Run a program; ``paths`` are folders for imports in addition to those of the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"program": program, "environment": environment, "paths": paths}
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        status, out, err = json.loads(self._process.stdout.readline())
        return CompletedProcess(program, status, out, err)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
