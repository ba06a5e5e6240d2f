"""Run the tests of each framework with its real package in a separate environment: ``make test-frameworks``.

The environments are folders of ``.venv-frameworks``, 4 GB in total. They also see the packages of ``.venv``, so each
contains only a framework and the packages that it needs in another version. A framework that cannot be installed is
skipped with one line of output.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / ".venv-frameworks"
CONSTRAINTS = PROJECT / "constraints-frameworks.txt"
# The framework with the longest tests is first.
PACKAGES = {
    "ray": ["ray[data,train]"],
    "triton": ["triton"],
    "jax": ["jax", "clu", "flax", "optax"],
    "tensorflow": ["tensorflow-cpu" if sys.platform.startswith("linux") else "tensorflow"],
    "paddle": ["paddlepaddle"],
}
TUTORIALS = {"jax": "13_training_with_flax"}
INSTALL_SECONDS = 400
TEST_SECONDS = 1200


def python_of(name: str) -> Path:
    """Return the interpreter of an environment."""
    return FOLDER / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(name: str) -> str | None:
    """Create the environment of a framework; return the reason if it cannot be installed, otherwise None."""
    mark = FOLDER / name / ".ready"
    wanted = CONSTRAINTS.read_text() + sysconfig.get_paths()["purelib"]
    if mark.is_file() and mark.read_text() == wanted:
        return None
    venv.create(FOLDER / name, clear=True)
    put_below(python_of(name))
    # Processes of Ray start at the same time: each would compile the same modules.
    pip = pip_install(python_of(name), is_compiled=name == "ray")
    try:
        done = subprocess.run(
            [*pip, "-c", CONSTRAINTS, *PACKAGES[name]],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"pip took more than {INSTALL_SECONDS} s"
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return (errors or done.stderr.splitlines() or ["pip failed"])[-1]
    mark.write_text(wanted)
    return None


def pip_install(python: Path, *, is_compiled: bool = False) -> list[str | Path]:
    """Return the command that installs in an environment of this Python, which needs no pip of its own.

    Args:
        python: interpreter of the environment.
        is_compiled: compile all modules now. Otherwise they are compiled when they are first imported; most never are.
    """
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet"]
    options = ["--no-warn-conflicts", "--retries", "1", *([] if is_compiled else ["--no-compile"])]
    return [*pip, "install", *options]


def put_below(python: Path) -> None:
    """Make the packages of ``.venv`` importable in an environment, with lower priority than its own."""
    program = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    Path(own, "below.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{PROJECT}\n")


def test(name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the tests of a framework, including the tests of names."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if name == "ray":  # no framework for arrays: it has tests of its own only
        chosen = [PROJECT / "tests/plugin/ray"]
    elif name == "triton":  # no framework either: its kernels run in its interpreter
        chosen = [PROJECT / "tests/kernels/triton"]
    else:
        chosen = ["-k", f"{name} or test_nothing_else_differs", PROJECT / "tests/plugin/test_frameworks.py"]
        chosen += [PROJECT / f"tests/plugin/test_{name}.py", PROJECT / "tests/docs/test_frameworks_page.py"]
        chosen.append(PROJECT / "tests/compatibility/test_walker.py")
    return run_in_project([python_of(name), "-m", "pytest", "-q", *chosen, *arguments], environment)


def run_tutorial(name: str) -> subprocess.CompletedProcess[str]:
    """Run the tutorial of a framework."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(PROJECT)}
    return run_in_project([python_of(name), PROJECT / "tutorials/run.py", TUTORIALS[name]], environment)


def run_in_project(command: list[str | Path], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder of the project; its errors are in its output."""
    return subprocess.run(
        command,
        cwd=PROJECT,
        env=environment,
        timeout=TEST_SECONDS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def check(name: str, arguments: list[str]) -> bool:
    """Install a framework, run its tests and its tutorial, then print their whole output.

    Returns:
        True if all passed, or if the framework cannot be installed.
    """
    start = time.monotonic()
    reason = install(name)
    if reason is not None:
        print(f"{name} cannot be installed, its tests are skipped: {reason}", flush=True)
        return True
    ready = time.monotonic()
    runs = [test(name, arguments)]
    if name in TUTORIALS and not runs[0].returncode:
        runs.append(run_tutorial(name))
    times = f"installed in {ready - start:.0f} s, tested in {time.monotonic() - ready:.0f} s"
    print(f"{name}: {times}", "".join(run.stdout for run in runs), sep="\n", flush=True)
    return not any(run.returncode for run in runs)


def main(arguments: list[str], *, only_install: bool = False) -> int:
    """Run all tests, two frameworks at a time, because the tests of Ray mostly wait. Return 1 if a test failed.

    Args:
        arguments: arguments of pytest.
        only_install: do not run tests.
    """
    with ThreadPoolExecutor(2) as pool:
        if only_install:
            list(pool.map(install, PACKAGES))
            return 0
        passed = dict(zip(PACKAGES, pool.map(lambda name: check(name, arguments), PACKAGES), strict=True))
    failed = [name for name, is_passed in passed.items() if not is_passed]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.framework_environments",
        description=__doc__,
        epilog="All other arguments are passed to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("--only-install", action="store_true", help="only prepare the environments")
    given, others = parser.parse_known_args()
    sys.exit(main(others, only_install=given.only_install))
