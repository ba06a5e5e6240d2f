"""Built-in base classes of the errors of the real DALI, for tables of mistakes.

Each program runs in a forked process: some mistakes end the process, and others leave threads behind.
Run as ``python -m tests.compatibility.kinds``: it prints a dictionary as JSON; None where DALI raises nothing or dies.
"""

from __future__ import annotations

import importlib
import json
import os
import warnings
from typing import Any

from tests.compatibility.iterator_mistakes import ITERATOR_MISTAKES
from tests.compatibility.pipeline_mistakes import PIPELINE_MISTAKES
from tests.compatibility.programs import Program

ALL_MISTAKES: dict[str, Program] = {
    **{f"iterator: {name}": program for name, program in ITERATOR_MISTAKES.items()},
    **{f"pipeline: {name}": program for name, program in PIPELINE_MISTAKES.items()},
}


def _kind(program: Program, dali: Any) -> str | None:
    """Return the name of the built-in class of what a program raises."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        kind = ""
        try:
            program(dali)
        except Exception as error:
            kind = next(item.__name__ for item in type(error).__mro__ if item.__module__ == "builtins")
        finally:
            os.write(write, kind.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(child, 0)
    return found or None


def main() -> None:
    warnings.simplefilter("ignore")
    dali = importlib.import_module("nvidia.dali")
    for name in ("plugin.pytorch", "plugin.base_iterator"):
        importlib.import_module(f"nvidia.dali.{name}")
    print(json.dumps({name: _kind(program, dali) for name, program in ALL_MISTAKES.items()}))


if __name__ == "__main__":
    main()
