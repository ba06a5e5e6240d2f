"""Ctrl-C may come before a registered thread is started."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from dalify.base import threads

threads.was_interrupted = lambda: True
never_started = threading.Thread(target=print, daemon=True)
threads.ends_with_program(never_started, lambda: None)
"""


def test_a_thread_that_never_started_is_not_joined() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
