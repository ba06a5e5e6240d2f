"""Execute tutorials as continuous integration does: each in a process of its own; a failing one stops the run.

A tutorial is a Python file in cells: `# %%` begins code, `# %% [markdown]` begins text. Editors open it as a notebook,
and `python tutorials/01_from_dataloader_to_dalify.py` runs it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
# What a tutorial needs beyond `make install`; `make test-frameworks` runs those of frameworks.
NEEDS = {"13_training_with_flax.py": "flax"}


def main() -> None:
    """Run the tutorials whose names contain a word of the command line; all of them without one."""
    words = sys.argv[1:]
    for path in sorted(FOLDER.glob("[0-9][0-9]_*.py")):
        if words and not any(word in path.name for word in words):
            continue
        needed = NEEDS.get(path.name)
        if needed is not None and importlib.util.find_spec(needed) is None:
            print(f"\n=== {path.name}: skipped, {needed} is not installed here; make test-frameworks runs it")
            continue
        print(f"\n=== {path.name}", flush=True)
        start = time.perf_counter()
        result = subprocess.run([sys.executable, str(path)], env={**os.environ, "PYTHONUNBUFFERED": "1"}, check=False)
        if result.returncode:
            sys.exit(f"{path.name} failed")
        print(f"=== {path.name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
