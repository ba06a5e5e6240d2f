"""The progress line about compilation: when it is printed, and that it is erased."""

from __future__ import annotations

import io
import re
import sys
import types as python_types
from types import SimpleNamespace

import pytest

from dalify.base import compile_progress
from dalify.base.compile_progress import CompileProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(text: str) -> str:
    """Return the line that a terminal shows after `text` with carriage returns and clear sequences."""
    return re.split(r"\r\x1b\[2K", text)[-1]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(compile_progress.time, "monotonic", lambda: now.seconds)
    monkeypatch.delenv("DALIFY_PROGRESS", raising=False)
    return now


def event_of(module: str) -> SimpleNamespace:
    function = python_types.FunctionType((lambda: None).__code__, {"__name__": module})
    function.__module__ = module
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def compile_one(progress: CompileProgress, clock: SimpleNamespace, seconds: float, module: str = "dalify.x") -> None:
    """Compile a function that calls one of numba's, each for half of the time."""
    progress.on_start(event_of(module))
    progress.on_start(event_of("numba.y"))
    clock.seconds += seconds / 2
    progress.on_end(event_of("numba.y"))
    clock.seconds += seconds / 2
    progress.on_end(event_of(module))


def test_nothing_within_two_seconds(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = CompileProgress()
    for _ in range(3):
        compile_one(progress, clock, 0.6)
    assert terminal.getvalue() == ""
    assert progress.functions == 6
    assert progress.seconds == pytest.approx(1.8)


def test_a_line_with_a_count_that_is_cleared(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = CompileProgress()
    compile_one(progress, clock, 1.5)
    progress.on_start(event_of("dalify.x"))
    progress.on_start(event_of("dalify.y"))
    clock.seconds += 1.0
    progress.on_end(event_of("dalify.y"))
    assert "3 functions" in shown(terminal.getvalue())
    assert "\n" not in terminal.getvalue()
    progress.on_end(event_of("dalify.x"))
    assert shown(terminal.getvalue()) == ""


@pytest.mark.parametrize("off", ["0", "off", "False"])
def test_can_be_switched_off(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("DALIFY_PROGRESS", off)
    compile_one(CompileProgress(), clock, 9.0)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_printed_without_a_terminal(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    compile_one(CompileProgress(), clock, 9.0)
    assert stream is None or stream.getvalue() == ""


def test_a_closed_stream_is_no_error(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    terminal.close()
    monkeypatch.setattr(sys, "stderr", terminal)
    compile_one(CompileProgress(), clock, 9.0)


def test_functions_of_users_are_not_counted(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = CompileProgress()
    compile_one(progress, clock, 9.0, module="users_program")
    assert terminal.getvalue() == ""
    assert progress.functions == 0
