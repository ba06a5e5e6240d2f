"""Run tests with other versions, each in its own environment: ``make test-versions``.

``lowest`` has the lowest versions of the dependencies that ``pyproject.toml`` allows, except for torch, which is that
of ``.venv``: old ones with CUDA take several gigabytes. ``newest`` has the newest Python on this machine that dalify
supports, without torch, which the core does not need. An environment that cannot be created is skipped with one line
of output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

from tests.helpers.framework_environments import PROJECT, pip_install, put_below, run_in_project

FOLDER = PROJECT / ".venv-versions"
CONSTRAINTS = PROJECT / "constraints-dev.txt"
MINOR_VERSIONS = (13, 12)  # of Python 3, from the newest
TEST_PACKAGES = ["hypothesis", "psutil", "pytest", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist"]
# In the first, the CPU kernels of most operators are compared with the GPU kernels, which do not use OpenCV and numba.
# OpenCV 4 interpolates cubically at fewer positions. In the second, tests that depend on Python itself, and on packages
# with newer releases for it.
LOWEST_TESTS = ["tests/executor/test_device_samples.py", "tests/base/test_compiling.py"]
LOWEST_TESTS += ["-k", "(what_the_cpu_does or results_of_the_cpu or test_compiling) and not cubic"]
NEWEST_TESTS = ["tests/frontend", "tests/graph", "tests/pipeline/test_conditionals.py", "tests/base/test_interrupts.py"]
NEWEST_TESTS += ["tests/codecs/test_damaged_videos.py"]
NEWEST_PACKAGES = ["av"]  # newer releases than other Python versions get


def dependencies() -> dict[str, str]:
    """Return the lowest version of each dependency in ``pyproject.toml``."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = {}
    for requirement in project["dependencies"]:
        name, _, version = requirement.partition(">=")
        found[name] = version
    return found


def newest_python() -> str | None:
    """Return the newest Python above that of this process, on the path or of pyenv; None if there is none."""
    for minor in MINOR_VERSIONS:
        if sys.version_info[:2] >= (3, minor):
            return None
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))]
        for candidate in candidates:
            # pyenv has commands for versions that are not selected; they fail.
            if candidate is not None and not subprocess.run([candidate, "-c", ""], capture_output=True).returncode:
                return str(candidate)
    return None


def python_of(name: str) -> Path:
    """Return the interpreter of an environment."""
    return FOLDER / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def lowest() -> Path:
    """Return an interpreter with the lowest versions; other packages are those of ``.venv``.

    Raises:
        CalledProcessError: the environment cannot be created.
    """
    packages = [f"{name}=={version}" for name, version in dependencies().items() if name != "torch"]
    created = python_of("lowest")
    venv.create(FOLDER / "lowest", clear=True)
    subprocess.run([*pip_install(created), *packages], check=True, capture_output=True, text=True)
    put_below(created)
    return created


def newest() -> Path | None:
    """Return an interpreter of the newest Python with the dependencies except for torch; None if this one is newest.

    Raises:
        CalledProcessError: the environment cannot be created.
    """
    python = newest_python()
    if python is None:
        return None
    packages = [name for name in dependencies() if name != "torch"]
    created = python_of("newest")
    # With its own pip: that of another Python may not run with a newer one.
    subprocess.run([python, "-m", "venv", "--clear", FOLDER / "newest"], check=True, capture_output=True, text=True)
    pip = [created, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--retries", "1"]
    packages += [*NEWEST_PACKAGES, *TEST_PACKAGES]
    subprocess.run([*pip, "-c", CONSTRAINTS, *packages], check=True, capture_output=True, text=True)
    return created


def check(name: str, python: Path, tests: list[str]) -> bool:
    """Run tests, print the output, and return whether they passed."""
    begin = time.monotonic()
    # The folder of this environment also separates the compiled kernels: they depend on the version of numba.
    settings = {**os.environ, "PYTHONPATH": str(PROJECT), "NUMBA_CACHE_DIR": str(FOLDER / name / "kernels")}
    run = run_in_project([python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests], settings)
    print(f"{name}: tested in {time.monotonic() - begin:.0f} s", run.stdout, sep="\n", flush=True)
    return not run.returncode


def main() -> int:
    """Run the tests in both environments; return 1 if a test failed."""
    passed = True
    for make, tests in ((lowest, LOWEST_TESTS), (newest, NEWEST_TESTS)):
        name = make.__name__
        try:
            python = make()
        except subprocess.CalledProcessError as error:
            lines = (error.stderr or "").strip().splitlines() or ["the command failed"]
            print(f"{name} cannot be created, its tests are skipped: {lines[-1]}", flush=True)
            continue
        if python is None:
            print(f"{name}: this Python is the newest one here", flush=True)
        else:
            passed &= check(name, python, tests)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
