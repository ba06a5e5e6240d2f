"""The garbage collector is disabled during a call, and enabled afterwards."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from dalify.base.compiling import njit
from dalify.base.garbage import imported, uncollected


def test_it_is_disabled_during_the_call_only() -> None:
    assert not uncollected(gc.isenabled)
    assert gc.isenabled()


def test_it_is_enabled_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        uncollected(divmod, 1, 0)
    assert gc.isenabled()


def test_it_stays_disabled_where_the_user_disabled_it() -> None:
    gc.disable()
    try:
        uncollected(divmod, 1, 1)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_nested_calls() -> None:
    assert not uncollected(uncollected, gc.isenabled)
    assert gc.isenabled()


def test_functions_are_compiled_without_it() -> None:
    def added(x: int) -> int:
        return x + 1

    compiled: Any = njit()(added)
    collected: list[str] = []

    def note(phase: str, _: object) -> None:
        collected.append(phase)

    compiled.compile((numba.float32,))  # the first function of a process imports the compiler
    gc.collect()
    gc.callbacks.append(note)
    try:
        compiled.compile((numba.int64,))
        during = len(collected)
    finally:
        gc.callbacks.remove(note)
    assert compiled(2) == 3
    assert during <= 2  # at most one, after the compiler has returned
    assert gc.isenabled()


def test_objects_of_imported_modules_can_be_collected(tmp_path: Path) -> None:
    (tmp_path / "cyclic.py").write_text("class Node:\n    pass\n\n\nnode = Node()\nnode.itself = [node]\n")
    program = """
import gc, sys, weakref
from dalify.base.garbage import imported

module = imported("cyclic")
print(gc.isenabled(), gc.get_freeze_count(), any(item is module.node for item in gc.get_objects(generation=2)))
alive = weakref.ref(module.node)
del sys.modules["cyclic"], module
gc.collect()
print(alive())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True", "0", "True", "None"]


@pytest.fixture
def new_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that has not been imported."""
    (tmp_path / "imported_by_a_test.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_by_a_test", raising=False)
    return "imported_by_a_test"


def test_objects_that_the_user_has_frozen_stay_frozen(monkeypatch: pytest.MonkeyPatch, new_module: str) -> None:
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)
    monkeypatch.setattr(gc, "unfreeze", lambda: pytest.fail("unfrozen"))
    assert imported(new_module) is sys.modules[new_module]


def test_loaded_modules_are_not_counted_or_frozen(monkeypatch: pytest.MonkeyPatch, new_module: str) -> None:
    """Each pipeline requires its optional packages; counting frozen objects traverses all of them."""
    module = imported(new_module)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("counted"))
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("frozen"))
    assert imported(new_module) is module
