"""Helper processes: their end, and the end of their children."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dalify.base.errors import MissingPackageError, ReaderError
from dalify.base.optional import LazyModule
from dalify.base.recent import Recent
from dalify.formats.files import helper_main, helper_process

PROGRAM = f"""
import importlib.util, os, signal, sys, time
import numpy as np
spec = importlib.util.spec_from_file_location("helper_main", {helper_main.__file__!r})
main = importlib.util.module_from_spec(spec)
spec.loader.exec_module(main)

def spin(path, *arguments):
    while True:
        pass

def missing(path):
    raise ImportError("no such library")

main.FUNCTIONS.update(
    crash=lambda path: os.kill(os.getpid(), signal.SIGSEGV),
    spin=spin,
    leave=lambda path: os._exit(3),
    fail=lambda path: 1 / 0,
    missing=missing,
    process=lambda path: os.getpid(),
    text=lambda path: np.fromfile(path, np.uint8),
    array=lambda path: np.arange(200_000.0).reshape(2, -1),
    lists=lambda path: [np.arange(n) for n in range(4)],
    noise=lambda path: (print("noise", flush=True), os.write(1, b"noise"), sys.stderr.write("noise"))[1],
    grow=lambda path: len(bytearray(1 << 40)),
)
main._main(int(sys.argv[1]))
"""
LIBRARY = LazyModule("no_such_library_at_all", "the test", "dalify[test]")


@pytest.fixture(name="path")
def _path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr(helper_main, "__file__", str(program))
    monkeypatch.setattr(helper_process, "_helpers", helper_process._Helpers())
    monkeypatch.setattr(helper_process, "_failures", Recent(9))
    yield str(program)
    helper_process._helpers.end()


def call(function: str, path: str, *arguments: Any, **options: Any) -> Any:
    return helper_process.call(function, path, *arguments, library=LIBRARY, what="test", **options)


def test_results(path: str) -> None:
    np.testing.assert_array_equal(call("array", path), np.arange(200_000.0).reshape(2, -1))
    out = np.empty((2, 100_000))
    assert call("array", path, out=out) is out
    assert out[1, -1] == 199_999
    assert call("array", path, out=np.empty(3)).shape == (2, 100_000)
    assert [item.tolist() for item in call("lists", path)] == [[], [0], [0, 1], [0, 1, 2]]
    assert call("process", path) == call("process", path) != os.getpid()


def test_relative_paths_belong_to_the_folder_of_this_process(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The helper was started in another working folder, which may contain a file of the same name."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        monkeypatch.chdir(tmp_path / name)
        assert call("text", "file").tobytes().decode() == name
    monkeypatch.chdir(tmp_path / "one")
    with pytest.raises(ReaderError, match="SIGSEGV"):
        call("crash", "file")
    monkeypatch.chdir(tmp_path / "two")  # the file that crashed was another one
    with pytest.raises(ReaderError, match="ZeroDivisionError"):
        call("fail", "file")


def test_what_a_library_prints_does_not_matter(path: str) -> None:
    assert call("noise", path) == 5
    assert call("process", path) > 0


@pytest.mark.parametrize(
    ("function", "message"),
    [("crash", "SIGSEGV"), ("leave", "exit code 3"), ("fail", "ZeroDivisionError"), ("grow", "MemoryError")],
)
def test_what_ends_or_fails_is_an_error_of_the_file(path: str, function: str, message: str) -> None:
    before = call("process", path)
    with pytest.raises(ReaderError, match=rf"program\.py.*{message}"):
        call(function, path)
    after = call("process", path)
    assert (after == before) == (function in ("fail", "grow"))


def test_endless_calls_are_stopped_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_process, "_PROCESSOR_S", 0.3)
    with pytest.raises(ReaderError, match="processor time"):
        call("spin", path, "a", 1)
    monkeypatch.setattr(helper_process, "_Helper", None)  # no other helper is started
    helper_process._helpers.end()
    with pytest.raises(ReaderError, match="processor time"):
        call("spin", path, "a", 2)
    with pytest.raises(ReaderError, match="processor time"):
        call("process", path, "b")


def test_a_file_that_was_replaced_is_tried_again(path: str, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1")
    with pytest.raises(ReaderError, match="SIGSEGV"):
        call("crash", str(file))
    assert len(helper_process._failures) == 1
    file.write_bytes(b"12")
    with pytest.raises(ReaderError, match="SIGSEGV"):
        call("crash", str(file))
    assert len(helper_process._failures) == 2


def test_a_helper_that_ended_while_it_was_idle(path: str) -> None:
    process = psutil.Process(call("process", path))
    process.send_signal(signal.SIGKILL)
    while process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert call("process", path) != process.pid


def test_a_library_that_is_not_installed(path: str) -> None:
    with pytest.raises(MissingPackageError, match="no_such_library_at_all"):
        call("missing", path)


def test_pipes_and_folders_are_not_waited_for(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("pipe", "pipe"), ("", "folder"), ("none", "No such file")):
        with pytest.raises(ReaderError, match=message):
            call("process", str(tmp_path / name))


def test_after_a_fork_parent_and_child_have_their_own(path: str) -> None:
    mine = call("process", path)
    child = os.fork()
    if not child:
        is_other = False
        try:
            is_other = call("process", path) != mine
            helper_process._helpers.end()
        finally:
            os._exit(0 if is_other else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert call("process", path) == mine


def test_the_program_imports_nothing_of_dalify() -> None:
    """It starts before it receives the parent's `sys.path`, without which dalify may not be found."""
    program = f"import runpy, sys; sys.modules['dalify'] = None; runpy.run_path({helper_main.__file__!r})"
    subprocess.run([sys.executable, "-I", "-c", program], check=True)


def test_helpers_end_when_their_process_is_gone(path: str) -> None:
    program = f"""
        import os, sys
        sys.path.insert(0, {str(Path.cwd())!r})
        from dalify.formats.files import helper_main, helper_process
        helper_main.__file__ = {path!r}
        print(helper_process.call("process", {path!r}, library=None, what="test"), flush=True)
        os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    helper = int(done.stdout)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(helper) and psutil.Process(helper).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_processes_with_many_files(path: str) -> None:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 1200:
        pytest.skip("this process may not open as many files")
    source = os.open(path, os.O_RDONLY)
    held = [source, *(os.dup(source) for _ in range(1100))]
    try:
        assert call("process", path) != os.getpid()
    finally:
        for descriptor in held:
            os.close(descriptor)
