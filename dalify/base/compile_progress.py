"""A status line in the terminal while kernels are compiled, which takes seconds in the first run on a machine.

The line is written to terminals only, and removed when compilation ends. The environment variable DALIFY_PROGRESS=0
disables it.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any, TextIO

from numba.core import event

_SHOWN_AFTER_S = 2.0
_OFF = ("0", "false", "no", "off")
_PACKAGE = __name__.partition(".")[0]


class CompileProgress(event.Listener):
    """Counts the functions that numba compiles for dalify, and shows the count if that takes long.

    numba calls it in the thread that compiles; compilations are serialized.

    Attributes:
        functions: number of functions compiled in this process, including functions of numba that they call.
        seconds: total compile time.
    """

    def __init__(self) -> None:
        self.functions = 0
        self.seconds = 0.0
        self._depth = 0
        self._start = 0.0
        self._is_shown = False

    def on_start(self, event: Any) -> None:
        """Handle the start of a compilation."""
        if self._depth == 0:
            module: str | None = event.data[
                "dispatcher"
            ].py_func.__module__  # None in code that was executed as a string
            if (module or "").partition(".")[0] != _PACKAGE:
                return  # a function of the user
            self._start = time.monotonic()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Handle the end of a compilation."""
        if self._depth == 0:
            return
        self._depth -= 1
        self.functions += 1
        elapsed = time.monotonic() - self._start
        if self._depth == 0:
            self.seconds += elapsed
            self._show("")
        elif self.seconds + elapsed > _SHOWN_AFTER_S:
            total = self.seconds + elapsed
            self._show(f"compiling kernels, in the first run only: {self.functions} functions, {total:.0f} s")

    def _show(self, text: str) -> None:
        """Replace the line in the terminal; an empty string removes it."""
        if not (text or self._is_shown) or os.environ.get("DALIFY_PROGRESS", "").lower() in _OFF:
            return
        stream: TextIO | None = sys.stderr
        with suppress(Exception):  # ignore a closed or replaced stream
            if stream is not None and stream.isatty():
                stream.write(f"\r\x1b[2K{text}")
                stream.flush()
                self._is_shown = bool(text)
