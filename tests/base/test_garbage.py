"""The garbage collector is disabled during a call, and enabled afterwards."""

from __future__ import annotations

import gc
from typing import Any

import numba
import pytest

from dalify.base.compiling import njit
from dalify.base.garbage import uncollected


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
