"""Run programs in separate processes: with SIGINT as in a terminal, and without leaving processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
# Much longer than any program, so that a test fails instead of hanging.
LIMIT_S = 120.0
# Python 3.12 and later warn about the forks of processes with threads, which tests do on purpose.
_WARNINGS = "ignore:This process:DeprecationWarning"


@contextmanager
def _default_sigint() -> Iterator[None]:
    # A test run in the background ignores SIGINT, and its children would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def running(
    program: str | Path, *arguments: Any, options: Sequence[str] = (), environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program in a new session; the processes of the session are killed at the end of the block.

    Args:
        program: text, or the path of a file.
        arguments: arguments of the program.
        options: options of the interpreter.
        environment: variables in addition to those of this process.
    """
    given = [str(program)] if isinstance(program, Path) else ["-c", textwrap.dedent(program)]
    with _default_sigint():
        process = subprocess.Popen(
            [sys.executable, *options, *given, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONWARNINGS": _WARNINGS, **(environment or {})},
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def finished(program: str | Path, *arguments: Any, **given: Any) -> tuple[int, str, str]:
    """Run a program to its end; return exit status, standard output and standard error. See ``running``."""
    with running(program, *arguments, **given) as process:
        out, errors = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, errors
