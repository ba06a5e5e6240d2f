"""Execute tutorials as in continuous integration: each in its own process. The first failure stops the run.

A tutorial is a Python file with cells: `# %%` starts a code cell, `# %% [markdown]` starts a text cell. Editors open it
as a notebook, and `python tutorials/01_from_dataloader_to_dalify.py` runs it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
# Packages that `make install` does not install; `make test-frameworks` runs these tutorials.
NEEDS = {"13_training_with_flax.py": "flax"}


def main() -> None:
    """Run the tutorials whose names contain one of the words of the command line, or all without words."""
    words = sys.argv[1:]
    for path in sorted(FOLDER.glob("[0-9][0-9]_*.py")):
        if words and not any(word in path.name for word in words):
            continue
        needed = NEEDS.get(path.name)
        if needed is not None and importlib.util.find_spec(needed) is None:
            print(f"\n=== {path.name}: skipped, {needed} is not installed; make test-frameworks runs it")
            continue
        print(f"\n=== {path.name}", flush=True)
        start = time.perf_counter()
        result = subprocess.run([sys.executable, str(path)], env={**os.environ, "PYTHONUNBUFFERED": "1"}, check=False)
        if result.returncode:
            sys.exit(f"{path.name} failed")
        print(f"=== {path.name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
