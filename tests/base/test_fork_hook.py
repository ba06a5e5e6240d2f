"""Owners and hooks in forked processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dalify.base.fork_hook import Owner, at_fork
from tests.helpers.platforms import needs_posix

PROGRAM = """
import os
from dalify.base.fork_hook import Owner, at_fork

calls = []
at_fork(lambda: calls.append("child 1"), before=lambda: calls.append("before 1"))
at_fork(
    lambda: calls.append("child 2"),
    before=lambda: calls.append("before 2"),
    in_parent=lambda: calls.append("parent 2"),
)
owner = Owner()
assert owner.is_this_process
assert not owner.take_over()
child = os.fork()
if child == 0:
    found = calls, owner.is_this_process, owner.take_over(), owner.is_this_process, owner.take_over()
    expected = ["before 2", "before 1", "child 1", "child 2"], False, True, True, False
    os._exit(found != expected)
assert os.waitpid(child, 0)[1] == 0
assert calls == ["before 2", "before 1", "parent 2"]
assert owner.is_this_process
"""


@needs_posix
def test_forked_children_are_not_owners_and_hooks_run_in_order() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_system_without_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    at_fork(lambda: None, before=lambda: None)
    assert Owner().is_this_process
